"""Stores broken in what they hurry, each caught by the contract test that speaks of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from broken_stores import MODEL, caught

from treadle.core.filter import JobFilter
from treadle.core.job import State
from treadle.stores.memory.adapter import MemoryStore

HURRIED = "intervals.a_copy_that_was_run_now_and_deleted_is_due_when_it_was_hurried"
DUE_NOW = "run_now.a_waiting_job_is_due_at_once"
MATCHING = "run_now.only_jobs_that_match_are_run_now"
DUE_ALREADY = "run_now.a_job_that_is_due_already_is_not_put_back"
RETRY = "run_now.a_retry_does_not_have_to_wait"
PRIORITY = "run_now.a_hurried_job_keeps_to_priority"


def test_a_store_that_counts_what_it_does_not_hurry_is_caught():
    class Broken(MemoryStore):
        async def run_now(self, which, **options):
            return await super().count(replace(which, states=frozenset({State.PENDING})), **options)

    caught(Broken, DUE_NOW, MATCHING, RETRY, HURRIED, MODEL)


@pytest.mark.parametrize(
    "changed",
    [{"priority": 1000}, {"key": None}, {"attempts": 0}, {"payload_json": "null"}],
    ids=lambda changed: next(iter(changed)),
)
def test_a_store_that_changes_what_it_hurries_is_caught(changed):
    class Broken(MemoryStore):
        async def run_now(self, which, *, now=None):
            number = await super().run_now(which, now=now)
            for job in await super().find(replace(which, states=frozenset({State.PENDING})), limit=1000, now=now):
                other = self._ledger.jobs[job.id] = replace(job, **changed)
                self._ledger.lanes.moved(other, now)
            return number

    caught(Broken, RETRY if "attempts" in changed else DUE_NOW)


@pytest.mark.parametrize("ignored", ["names", "queues"])
def test_a_store_that_hurries_what_does_not_match_is_caught(ignored):
    class Broken(MemoryStore):
        async def run_now(self, which, **options):
            return await super().run_now(replace(which, **{ignored: None}), **options)

    caught(Broken, MATCHING)


def test_a_store_that_counts_only_what_was_not_due_is_caught():
    class Broken(MemoryStore):
        async def run_now(self, which, *, now=None):
            jobs = await super().find(replace(which, states=frozenset({State.PENDING})), limit=1000, now=now)
            await super().run_now(which, now=now)
            return sum(job.run_at > now for job in jobs)

    caught(Broken, DUE_ALREADY, MODEL)


def test_a_store_that_puts_back_what_is_due_is_caught():
    class Broken(MemoryStore):
        async def run_now(self, which, *, now=None):
            return await super().run_now(which, now=now + timedelta(seconds=1))

    caught(Broken, DUE_ALREADY, DUE_NOW, MATCHING)


def test_a_store_that_hurries_past_what_is_due_is_caught():
    class Broken(MemoryStore):
        async def run_now(self, which, *, now=None):
            return await super().run_now(which, now=now - timedelta(days=1))

    caught(Broken, PRIORITY, DUE_NOW)


def test_a_store_that_hurries_no_retries_is_caught():
    class Broken(MemoryStore):
        async def run_now(self, which, *, now=None):
            fresh = [job.id for job in await super().find(which, limit=1000, now=now) if not job.attempts]
            return await super().run_now(JobFilter(ids=fresh), now=now)

    caught(Broken, RETRY, MODEL)
