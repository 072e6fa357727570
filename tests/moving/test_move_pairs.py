"""Between every two stores: everything arrives as it was, to the field, and goes on there; and back again (S13)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from places import KINDS, PAIRS, move
from stock import contents, stock

from treadle import StoreMoved, open_store
from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import State
from treadle.core.outcome import Done
from treadle.core.transfer import Counts, Movable
from treadle.stores.memory import MemoryStore

ALL = Counts(pending=8, dead=3, done=2, intervals=1, schedules=2, documents=10)


def opened(url: str) -> Movable:
    store = MemoryStore() if url == "memory" else open_store(url, migrate=True)
    assert isinstance(store, Movable)
    return store


MEMORY = [("memory", kind) for kind in (*KINDS, "memory")] + [(kind, "memory") for kind in KINDS]


@pytest.mark.parametrize(("source", "target"), [*PAIRS, *MEMORY])
def test_everything_arrives_as_it_was(source, target, place):
    async def main():
        here, there = (opened("memory" if kind == "memory" else place(kind)) for kind in (source, target))
        try:
            make = await stock(here)
            before = await contents(here)
            report = await move(here, there).run()
            assert (report.source, report.target, report.left, report.already) == (ALL, ALL, 3, False)
            assert await contents(there) == before
            assert await contents(here) == before, "the source keeps what it had"
            with pytest.raises(StoreMoved, match="the store was moved to target: use that one"):
                await here.enqueue([make.new("more")])
            report = await move(here, there).run()
            assert (report.already, report.target) == (True, ALL)
            await works_on(there, make)
        finally:
            await here.close()
            await there.close()

    asyncio.run(main())


async def works_on(there: Movable, make) -> None:
    """Keys hold, and every job can be run, whatever store it came from."""
    make.store = there
    pending = await there.find(JobFilter(states=frozenset({State.PENDING})), limit=99)
    for job in pending:
        if job.key is not None:
            [answer] = await there.enqueue([replace(make.new(job.name), key=job.key, schedule=job.schedule)])
            assert (answer.created, answer.id) == (False, job.id)
    await there.run_now(EVERYTHING, now=make.clock.now())
    for job in pending:
        assert (await make.done(job.name + "-other")).state == "done"
        if job.name != "face":
            held = await make.claimed(job)
            assert held.job.attempts == job.attempts + 1
            assert held.job.failures == () or held.job.failures == job.failures


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_there_and_back(source, target, place):
    """What is done there is not done again here: the leftovers of the source go before it is filled."""

    async def main():
        here, there = opened(place(source)), opened(place(target))
        try:
            make = await stock(here)
            await move(here, there).run()
            make.store = there
            plain = next(job for job in await there.find(EVERYTHING, limit=99) if job.name == "plain")
            await there.run_now(JobFilter(ids=(plain.id,)), now=make.clock.now())
            await make.ended(await make.claimed(plain), Done())
            await there.delete(JobFilter(names=frozenset({"later"})))
            await there.delete_schedule("nightly")
            await there.delete_document("settings", "a")
            added = await make.pending("added", 1)
            before = await contents(there)
            report = await move(there, here).run()
            assert report.target == replace(ALL, pending=7, schedules=1, documents=9)
            assert await contents(here) == before
            states = {job.id: job.state for job in await here.find(EVERYTHING, limit=99)}
            assert plain.id not in states, "a job that was done over there must not wait here still"
            assert states[added.id] == "pending"
            assert sum(job.name == "behind" for job in await here.find(EVERYTHING, limit=99)) == 3
            await here.enqueue([make.new("more")])
            with pytest.raises(StoreMoved):
                await there.enqueue([make.new("more")])
            assert (await move(here, there).run()).already is False, "and there again"
            assert await contents(there) == await contents(here)
        finally:
            await here.close()
            await there.close()

    asyncio.run(main())
