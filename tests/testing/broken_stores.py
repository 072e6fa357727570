"""Runs contract tests on stores that are broken on purpose, and asks that the right one fails, in words."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from treadle.core.job import Job, NewJob
from treadle.core.outcome import Outcome
from treadle.core.store import Claim, Claimed, Ending
from treadle.stores.memory.adapter import MemoryStore
from treadle.testing import store_contract, tasks_contract
from treadle.testing.contract import MODEL_EXAMPLES
from treadle.testing.contract.state_machine import drive

MODEL = "model.random_operations_agree"
EXAMPLES = 50


class TokenReader(MemoryStore):
    """A healthy store that remembers the token of each claim, for mutations that need it."""

    def __init__(self) -> None:
        super().__init__()
        self.current: dict[str, str] = {}

    async def claim(self, token: str, *args: Any, **options: Any) -> Claimed:
        claimed = await super().claim(token, *args, **options)
        self.current |= {job.id: token for job in claimed.jobs}
        return claimed

    def now_held(self, claim: Claim) -> Claim:
        """The claim under which that job was taken last, whatever token the caller has."""
        return Claim(claim.id, self.current.get(claim.id, claim.token))


class View(MemoryStore):
    """A store that shows its jobs otherwise than they are: `seen` is what a broken column or codec makes of them."""

    def seen(self, job: Job) -> Job:
        return job

    async def get(self, *args: Any, **options: Any) -> list[Job]:
        return [self.seen(job) for job in await super().get(*args, **options)]

    async def find(self, *args: Any, **options: Any) -> list[Job]:
        return [self.seen(job) for job in await super().find(*args, **options)]

    async def claim(self, *args: Any, **options: Any) -> Claimed:
        claimed = await super().claim(*args, **options)
        return Claimed([self.seen(job) for job in claimed.jobs], claimed.next_in)


class Rewriting(MemoryStore):
    """A store that changes what comes in: new jobs and outcomes."""

    def job_in(self, new: NewJob) -> NewJob:
        return new

    def outcome_in(self, outcome: Outcome) -> Outcome:
        return outcome

    async def enqueue(self, jobs: Any, **options: Any) -> Any:
        return await super().enqueue([self.job_in(new) for new in jobs], **options)

    async def finish(self, endings: Any, **options: Any) -> set[Claim]:
        rewritten = [Ending(one.claim, self.outcome_in(one.outcome), one.following) for one in endings]
        return await super().finish(rewritten, **options)


def run(store: Callable[[], object], test: str) -> None:
    """Run one test of the contract, named 'group.test', on that kind of store."""
    if test == MODEL:
        drive(store, EXAMPLES, shorten=False)
    else:
        group, name = test.split(".")
        getattr(store_contract("broken", store)(), f"test_{group}__{name}")()


@cache
def healthy(test: str) -> None:
    """The healthy store passes the test; as many random histories as are the contract's own measure."""
    if test == MODEL:
        drive(MemoryStore, MODEL_EXAMPLES)
    else:
        run(MemoryStore, test)


def caught(store: Callable[[], object], *tests: str) -> None:
    """Each of these contract tests passes on the healthy store, and fails on the broken one with a sentence."""
    for test in tests:
        healthy(test)
        with pytest.raises(AssertionError, match="the contract asks: "):
            run(store, test)


def caught_under_tasks(store: Callable[[], object], *tests: str) -> None:
    """The same for the contract of the library on top of a store."""
    for test in tests:
        method = "test_" + test.replace(".", "__")
        getattr(tasks_contract("healthy", MemoryStore)(), method)()
        with pytest.raises(AssertionError, match="the contract asks: "):
            getattr(tasks_contract("broken", store)(), method)()
