"""Stores broken in what the library builds on, each caught by the contract of `Tasks` on top of it."""

from __future__ import annotations

from dataclasses import replace

from broken_stores import Rewriting, View, caught_under_tasks

from treadle.core.outcome import Released, RetryAfter
from treadle.core.store import Ending
from treadle.stores.memory import MemoryStore


def test_a_store_that_never_gives_a_lost_job_back_is_caught():
    class Broken(MemoryStore):
        async def expired(self, limit, **options):
            return []

    caught_under_tasks(
        Broken,
        "leases.a_lost_attempt_runs_again_elsewhere",
        "leases.a_job_is_dead_only_when_its_tries_are_used_up",
        "leases.a_worker_that_does_not_know_a_job_takes_it_back_unharmed",
    )


def test_a_store_that_goes_by_its_own_clock_is_caught():
    class Broken(MemoryStore):
        async def claim(self, *args, now=None, **options):
            return await super().claim(*args, **options)

    caught_under_tasks(
        Broken, "running.what_is_due_later_waits_and_disturbs_nobody", "retrying.the_wait_doubles_until_the_job_is_dead"
    )


def test_a_store_that_ends_an_interval_with_its_run_is_caught():
    class Broken(MemoryStore):
        async def finish(self, endings, **options):
            return await super().finish([Ending(one.claim, one.outcome) for one in endings], **options)

    caught_under_tasks(Broken, "intervals.it_runs_at_once_and_then_each_interval_after_the_last")


def test_a_store_that_makes_a_second_copy_is_caught():
    class Broken(MemoryStore):
        moments = frozenset()

        async def ensure(self, intervals, *, now=None):
            if now not in self.moments:  # once a moment, or a drain would go on for ever
                self.moments |= {now}
                await super().enqueue([replace(one.copy(id_, 0.0), key=None) for one, id_ in intervals], now=now)
            return await super().ensure(intervals, now=now)

    caught_under_tasks(Broken, "intervals.many_processes_keep_one_copy", "intervals.a_restart_does_not_push_it_away")


def test_a_store_that_spends_the_attempt_of_what_was_cut_short_is_caught():
    class Broken(Rewriting):
        def outcome_in(self, outcome):
            return RetryAfter(outcome.seconds, "cut short") if isinstance(outcome, Released) else outcome

    caught_under_tasks(
        Broken, "stopping.what_outlasts_the_grace_is_given_back", "retrying.a_signal_ends_the_attempt_as_it_says"
    )


def test_a_store_that_hands_out_names_nobody_handles_is_caught():
    class Broken(MemoryStore):
        async def pending_names(self, queues=None):
            return []

    caught_under_tasks(Broken, "names.an_unknown_name_waits_and_is_warned_about_once")


def test_a_store_that_turns_empty_lists_into_objects_is_caught():
    class Broken(View):
        def seen(self, job):
            return replace(job, payload_json=job.payload_json.replace("[]", "{}"))

    caught_under_tasks(Broken, "values.a_handler_gets_exactly_what_was_enqueued")


def test_a_store_that_forgets_which_jobs_are_keyed_is_caught():
    class Broken(MemoryStore):
        async def delete(self, which, **options):
            return await super().delete(replace(which, keyed=None), **options)

    caught_under_tasks(Broken, "retention.finished_jobs_go_at_their_age_and_keyed_ones_stay")
