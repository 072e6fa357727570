"""Stores broken in what they keep, show and share, each caught by the contract test that speaks of it."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from dataclasses import replace

import pytest
from broken_stores import MODEL, Rewriting, View, caught

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import FINISHED, Enqueued, State
from treadle.core.store import Claimed, Ending
from treadle.stores.memory.adapter import MemoryStore


def test_a_store_that_takes_an_empty_filter_for_none_is_caught():
    class Broken(MemoryStore):
        async def find(self, which, **options):
            return await super().find(replace(which, ids=which.ids or None, states=which.states or None), **options)

    caught(Broken, "find.nothing_asked_for_is_nothing_found")


def test_a_store_that_ignores_a_filter_that_is_combined_is_caught():
    class Broken(MemoryStore):
        async def count(self, which, **options):
            return await super().count(replace(which, keyed=None) if which.names else which, **options)

    caught(Broken, "find.every_combination_of_a_filter_means_the_same_everywhere")


def test_a_store_that_finds_the_oldest_first_is_caught():
    class Broken(MemoryStore):
        async def find(self, *args, **options):
            return (await super().find(*args, **options))[::-1]

    caught(Broken, "find.find_answers_the_newest_first", MODEL)


def test_a_store_that_begins_each_page_anew_is_caught():
    class Broken(MemoryStore):
        async def find(self, which, *, limit, before=None, now=None):
            return await super().find(which, limit=limit, now=now)

    caught(Broken, "find.pages_follow_on_each_other")


def test_a_store_that_gets_in_its_own_order_is_caught():
    class Broken(MemoryStore):
        async def get(self, ids):
            return sorted(await super().get(ids), key=lambda job: job.id)

    caught(Broken, "find.get_answers_in_the_order_of_the_ids")


def test_a_store_that_counts_finished_copies_as_duplicates_is_caught():
    class Broken(MemoryStore):
        async def stats(self, **options):
            right = await super().stats(**options)
            names = [job.name for job in await super().find(EVERYTHING, limit=1000)]
            copies = {name: names.count(name) for name in names if names.count(name) > 1}
            return replace(right, duplicates=copies, duplicate_names=len(copies))

    caught(Broken, "stats.duplicates_are_names_with_more_than_one_pending_copy", MODEL)


def test_a_store_that_names_jobs_that_do_not_wait_is_caught():
    class Broken(MemoryStore):
        async def pending_names(self, queues=None):
            return sorted({job.name for job in await super().find(EVERYTHING, limit=1000)})

    caught(Broken, "stats.pending_names_are_sorted_and_each_comes_once", MODEL)


def test_a_store_that_takes_future_jobs_for_due_is_caught():
    class Broken(MemoryStore):
        async def due(self, queues, **options):
            pending = await super().find(JobFilter(states=frozenset({State.PENDING})), limit=1000)
            return {job.queue for job in pending if job.queue in queues}

    caught(Broken, "stats.due_answers_the_queues_with_claimable_jobs", MODEL)


def test_a_store_that_turns_empty_lists_into_objects_is_caught():
    class Broken(Rewriting):
        def job_in(self, new):
            return replace(new, payload_json=new.payload_json.replace("[]", "{}"))

    caught(Broken, "payloads.every_kind_of_json_comes_back", "payloads.a_payload_survives_every_way_round")


def test_a_store_that_keeps_integers_as_floats_is_caught():
    class Broken(View):
        def seen(self, job):
            return replace(job, payload_json=json.dumps(json.loads(job.payload_json, parse_int=float)))

    caught(Broken, "payloads.every_kind_of_json_comes_back")


def test_a_store_that_sorts_the_keys_of_a_payload_is_caught():
    class Broken(View):
        def seen(self, job):
            return replace(job, payload_json=json.dumps(json.loads(job.payload_json), sort_keys=True))

    caught(Broken, "payloads.every_kind_of_json_comes_back")


def test_a_store_that_keeps_milliseconds_is_caught():
    class Broken(Rewriting):
        def job_in(self, new):
            run_at = new.run_at and new.run_at.replace(microsecond=new.run_at.microsecond // 1000 * 1000)
            return replace(new, run_at=run_at)

    caught(Broken, "times.microseconds_are_kept_and_count")


def test_a_store_that_answers_naive_moments_is_caught():
    class Broken(View):
        def seen(self, job):
            return replace(job, finished_at=job.finished_at and job.finished_at.replace(tzinfo=None))

    caught(Broken, "times.all_moments_are_aware_and_in_utc")


def test_a_store_that_runs_the_far_future_at_once_is_caught():
    class Broken(Rewriting):
        def job_in(self, new):
            far = new.run_at is not None and new.run_at.year > 2037
            return replace(new, run_at=new.run_at.replace(year=1970) if far else new.run_at)

    caught(Broken, "times.the_far_future_is_exact")


def test_a_store_that_forgets_the_next_copy_of_an_interval_is_caught():
    class Broken(MemoryStore):
        async def finish(self, endings, **options):
            return await super().finish([Ending(one.claim, one.outcome) for one in endings], **options)

    caught(Broken, "intervals.the_next_copy_comes_with_the_end_of_the_last", MODEL)


def test_a_store_that_makes_the_next_copy_of_a_late_result_is_caught():
    class Broken(MemoryStore):
        async def finish(self, endings, **options):
            took = await super().finish(endings, **options)
            await super().enqueue([replace(one.following, key=None) for one in endings if one.following], now=options["now"])
            return took

    caught(Broken, "intervals.a_late_result_makes_no_copy", "intervals.an_attempt_that_is_not_the_last_makes_no_copy", MODEL)


def test_a_store_that_puts_a_deleted_copy_back_due_now_is_caught():
    class Broken(MemoryStore):
        async def ensure(self, intervals, *, now=None):
            answers = await super().ensure(intervals, now=now)
            await super().run_now(JobFilter(ids=[one.id for one in answers if one]), now=now)
            return answers

    caught(Broken, "intervals.a_deleted_copy_is_put_back_due_as_before", MODEL)


def test_a_store_that_makes_a_copy_at_each_registration_is_caught():
    class Broken(MemoryStore):
        async def ensure(self, intervals, *, now=None):
            copies = [replace(interval.copy(one, 0.0), key=None) for interval, one in intervals]
            await super().ensure(intervals, now=now)
            return await super().enqueue(copies, now=now)

    caught(Broken, "intervals.an_unfinished_copy_is_kept", "intervals.many_processes_register_one_copy", MODEL)


def test_a_store_that_keeps_the_first_registration_is_caught():
    class Broken(MemoryStore):
        async def intervals(self, schedules):
            if not hasattr(self, "first"):
                self.first = await super().intervals(schedules)
            return self.first

        async def ensure(self, intervals, **options):
            answers = await super().ensure(intervals, **options)
            await self.intervals([interval.schedule for interval, _ in intervals])
            return answers

    caught(Broken, "intervals.the_last_registration_wins")


def test_a_store_that_ignores_the_expected_revision_is_caught():
    class Broken(MemoryStore):
        async def put_document(self, *args, expect=None, **options):
            return await super().put_document(*args, **options)

    caught(Broken, "documents.compare_and_set_writes_only_over_what_was_expected", "documents.counters_lose_no_step")


def test_a_store_that_compares_and_then_sets_is_caught():
    class Broken(MemoryStore):
        async def put_document(self, namespace, key, value, *, expect=None, expires_in=None, now=None):
            there = await super().get_document(namespace, key, now=now)
            if expect is not None and expect != (there.revision if there else 0):
                return None
            await asyncio.sleep(0)
            return await super().put_document(namespace, key, value, expires_in=expires_in, now=now)

    caught(Broken, "documents.of_many_writers_that_expect_the_same_one_wins", "documents.counters_lose_no_step")


def test_a_store_whose_documents_never_expire_is_caught():
    class Broken(MemoryStore):
        async def put_document(self, *args, expires_in=None, **options):
            return await super().put_document(*args, **options)

    caught(Broken, "documents.a_document_expires")


def test_a_store_whose_prefixes_have_wildcards_is_caught():
    class Broken(MemoryStore):
        async def list_documents(self, namespace, *, prefix="", **options):
            every = await super().list_documents(namespace, **options)
            pattern = re.escape(prefix).replace("%", ".*").replace("_", ".")
            return [document for document in every if re.match(pattern, document.key)]

    caught(Broken, "documents.a_prefix_means_itself")


def test_a_store_that_sorts_documents_by_language_is_caught():
    class Broken(MemoryStore):
        async def list_documents(self, *args, **options):
            return sorted(await super().list_documents(*args, **options), key=lambda document: document.key.lower())

    caught(Broken, "documents.a_list_is_in_code_point_order")


def test_a_store_that_migrates_by_starting_over_is_caught():
    class Broken(MemoryStore):
        async def migrate(self):
            await super().delete(EVERYTHING)
            return "made the tables anew"

    caught(Broken, "schema.migrating_is_idempotent")


def test_a_store_that_reads_and_then_claims_is_caught():
    class Broken(MemoryStore):
        async def claim(self, token, demands, **options):
            seen = await super().find(JobFilter(states=frozenset({State.PENDING})), limit=demands[0].limit)
            await asyncio.sleep(0)
            claimed = await super().claim(token, demands, **options)
            return Claimed(await super().get([job.id for job in seen]), claimed.next_in)

    caught(Broken, "concurrency.concurrent_claims_take_each_job_once")


def test_a_store_that_looks_for_a_key_and_then_enqueues_is_caught():
    class Broken(MemoryStore):
        async def enqueue(self, jobs, **options):
            key = jobs[0].key
            held = [job for job in await super().find(EVERYTHING, limit=1000) if key is not None and job.key == key]
            await asyncio.sleep(0)
            if held:
                return [Enqueued(held[0].id, False, held[0])]
            return await super().enqueue([replace(job, key=None) for job in jobs], **options)

    caught(Broken, "concurrency.concurrent_enqueuers_of_one_key_make_one_job")


def test_a_store_that_loses_a_request_to_a_holder_that_ends_is_caught():
    class Broken(MemoryStore):
        async def enqueue(self, jobs, **options):
            every = await super().find(EVERYTHING, limit=1000)
            held = [job for job in every if job.key and job.key == jobs[0].key and job.state not in FINISHED]
            for _ in range(3):
                await asyncio.sleep(0)
            if held:
                [holder] = await super().get([held[0].id])
                return [Enqueued(holder.id, False, holder)]
            return await super().enqueue(jobs, **options)

    caught(Broken, "concurrency.no_request_is_lost_while_the_holder_ends")


def test_a_store_whose_lease_keeper_does_nothing_is_caught():
    class Idle:
        def renew(self, claims, lease, now=None):
            return set(claims)

        def close(self):
            pass

    class Broken(MemoryStore):
        def lease_keeper(self):
            return Idle()

    caught(
        Broken,
        "concurrency.a_lease_keeper_renews_while_the_loop_is_blocked",
        "concurrency.a_lease_keeper_renews_by_the_stores_own_clock",
    )


def test_a_store_that_never_wakes_its_listeners_is_caught(monkeypatch: pytest.MonkeyPatch):
    class Broken(MemoryStore):
        async def listen(self, wake):
            return await super().listen(lambda: None)

    monkeypatch.setattr(sys.modules["treadle.testing.contract.concurrency"], "DEADLINE", 0.2)
    caught(Broken, "concurrency.a_listener_is_woken_by_an_enqueue", "concurrency.a_listener_is_woken_from_another_loop")
