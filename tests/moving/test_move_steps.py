"""A move that stops anywhere and is run again; what it refuses; what it waits for; what it gives up (S13)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest
from places import move
from stock import contents, stock

from treadle import Conflict, InvalidArgument, StoreError, StoreMoved, StoreUnavailable
from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.outcome import Done
from treadle.core.store import Claim, Document, Ending
from treadle.core.transfer import Cargo, Counts, KeptDocument, Mark, Side, Stage
from treadle.stores.memory import MemoryStore
from treadle.stores.sqlite import SQLiteStore
from treadle.testing import JobFactory


class Killed(Exception):
    """As if the process had ended."""


class Mortal:
    """A store whose process is killed at its n-th call, before or after that took effect; the count is common to two stores."""

    def __init__(self, inner, count: list[int], at: int, after: bool):
        self.inner, self.calls, self.at, self.after = inner, count, at, after

    def __getattr__(self, name):
        operation = getattr(self.inner, name)

        async def call(*args, **options):
            self.calls[0] += 1
            if self.calls[0] == self.at and not self.after:
                raise Killed
            answer = await operation(*args, **options)
            if self.calls[0] == self.at:
                raise Killed
            return answer

        return call


def stores(kind: str):
    return (MemoryStore(), MemoryStore()) if kind == "memory" else (SQLiteStore(":memory:"), SQLiteStore(":memory:"))


async def calls_of_a_move(kind: str) -> int:
    source, target = stores(kind)
    await stock(source)
    count = [0]
    await move(Mortal(source, count, -1, False), Mortal(target, count, -1, False)).run()
    await source.close()
    await target.close()
    return count[0]


async def killed_half_way(source, target, names=("source", "target")):
    """With a part of what moves in the target."""
    count, step = [0], await calls_of_a_move("memory") - 12
    with pytest.raises(Killed):
        await move(Mortal(source, count, step, True), Mortal(target, count, step, True), names=names).run()
    assert await contains_any(target)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_step_it_goes_on(kind, after):
    async def main():
        steps = await calls_of_a_move(kind)
        assert steps > 40
        for step in range(1, steps + 1):
            source, target = stores(kind)
            make = await stock(source)
            before = await contents(source)
            count = [0]
            with pytest.raises(Killed):
                await move(Mortal(source, count, step, after), Mortal(target, count, step, after)).run()
            # Whatever stands, no job can be taken from both.
            open_ones = [store for store in (source, target) if await takes(store, make)]
            assert len(open_ones) <= 2 and (source not in open_ones or not await contains_any(target)), step
            if source in open_ones:
                before = await contents(source)
            report = await move(source, target).run()
            assert report.source == report.target
            assert await contents(target) == before, step
            assert (await source.get_mark()).stage is Stage.OVER
            with pytest.raises(StoreMoved):
                await source.enqueue([make.new("more")])
            await target.enqueue([make.new("more")])
            await source.close()
            await target.close()

    asyncio.run(main())


async def takes(store, make) -> bool:
    try:
        await store.put_document("probe", "x", 1)
    except StoreError:
        return False
    await store.delete_document("probe", "x")
    return True


async def contains_any(store) -> bool:
    return (await store.kept()).total > 0 or await store.count(EVERYTHING) > 0


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_step_it_can_be_given_up(after):
    async def main():
        steps = await calls_of_a_move("memory")
        undone = 0
        for step in range(1, steps + 1):
            source, target = stores("memory")
            own = JobFactory(target)
            own.id = lambda: "own"
            await own.pending("own", 1, dedupe_key="own")
            make = await stock(source)
            before, theirs = await contents(source), await contents(target)
            count = [0]
            with pytest.raises(Killed):
                await move(Mortal(source, count, step, after), Mortal(target, count, step, after)).run()
            mark = await source.get_mark()
            if mark is None:
                continue  # not begun
            if mark.stage is Stage.OVER:
                with pytest.raises(Conflict, match="is over: to go back, move from there to source"):
                    await move(source, target).undo()
                continue
            undone += 1
            count[0] = 0
            with suppress(Killed):  # and giving up is itself killed, and done again
                await move(Mortal(source, count, 4, after), Mortal(target, count, 4, after)).undo()
            if await source.get_mark() is not None:
                await move(source, target).undo()
            assert (await source.get_mark(), await target.get_mark()) == (None, None)
            assert await contents(source) == before
            assert await contents(target) == theirs, step
            await source.enqueue([make.new("more")])
            await target.enqueue([make.new("more")])
        assert undone > 20

    asyncio.run(main())


def test_nothing_to_give_up_is_said():
    async def main():
        with pytest.raises(Conflict, match="source is not being moved: there is nothing to give up"):
            await move(MemoryStore(), MemoryStore()).undo()

    asyncio.run(main())


# -- jobs that run


@pytest.mark.parametrize("where", ["source", "target"])
def test_running_jobs_are_refused_and_nothing_is_closed(where):
    async def main():
        source, target = stores("memory")
        store = source if where == "source" else target
        [answer] = await store.enqueue([JobFactory(store).new("busy")])
        await claim(store)
        with pytest.raises(Conflict, match=rf"jobs still run in {where}, and nothing was moved: busy {answer.id} on worker-9"):
            await move(source, target).run()
        assert (await source.get_mark(), await target.get_mark()) == (None, None)
        with pytest.raises(Conflict, match="jobs still run"):
            await move(source, target, wait=0.01).run()
        assert (await source.get_mark(), await target.get_mark()) == (None, None), "what could not be sealed is open again"
        await source.enqueue([JobFactory(store).new("more", id="more")])

    asyncio.run(main())


async def claim(store, lease: float = 60.0) -> Claim:
    from treadle.core.store import Demand

    claimed = await store.claim("token", [Demand(1)], worker="worker-9", lease=lease)
    return Claim(claimed.jobs[0].id, "token")


def test_running_jobs_are_waited_for_while_nothing_new_begins():
    async def main():
        source, target = stores("memory")
        make = JobFactory(source)
        await source.enqueue([make.new("busy"), make.new("next")])
        held = await claim(source)
        waiting = asyncio.Event()
        moving = asyncio.create_task(
            move(source, target, wait=30.0, progress=lambda doing, done, total: waiting.set() if done == 1 else None).run()
        )
        await waiting.wait()
        with pytest.raises(StoreMoved, match="is being moved to target: use that one as soon as the move is over"):
            await claim(source)
        with pytest.raises(StoreUnavailable, match="is being filled by a move from source"):
            await target.enqueue([make.new("early")])
        assert await source.finish([Ending(held, Done())]) == {held}
        report = await moving
        assert (report.target.pending, report.left) == (1, 1)

    asyncio.run(main())


def test_a_wait_that_is_broken_off_opens_both_again():
    async def main():
        source, target = stores("memory")
        await source.enqueue([JobFactory(source).new("busy")])
        await claim(source)
        waiting = asyncio.Event()
        moving = asyncio.create_task(move(source, target, wait=30.0, progress=lambda *_: waiting.set()).run())
        await waiting.wait()
        moving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await moving
        assert (await source.get_mark(), await target.get_mark()) == (None, None)

    asyncio.run(main())


def test_expired_leases_are_taken_back_as_a_worker_would():
    async def main():
        source, target = stores("memory")
        make = JobFactory(source)
        await source.enqueue([make.new("lost"), make.new("last", max_attempts=1)])
        for _ in range(2):
            await claim(source, lease=0.0)
        await move(source, target).run()
        jobs = {job.name: job for job in await target.find(EVERYTHING, limit=9)}
        assert (jobs["lost"].state, jobs["lost"].attempts) == ("pending", 1)
        assert (jobs["last"].state, jobs["last"].last_error) == ("dead", "visibility timeout exceeded")

    asyncio.run(main())


# -- what is in the way


def test_conflicts_are_told_before_anything_is_moved():
    async def main():
        source, target = stores("memory")
        await stock(source)
        mine, theirs = JobFactory(source), JobFactory(target)
        mine.id, theirs.id = iter([f"a{n}" for n in range(9)]).__next__, iter([f"b{n}" for n in range(9)]).__next__
        await mine.pending("welcome", 1, dedupe_key="k:1")
        await mine.done("charge", 1, idempotency_key="k:2")
        await theirs.pending("welcome", 2, dedupe_key="k:1")
        await theirs.dead("charge", 2, idempotency_key="k:2")
        await theirs.dead("once", 2, dedupe_key="once:1")  # holds its key no longer
        await target.put_document("settings", "a", 9)
        [nightly] = [one for one in await source.list_schedules() if one.name == "nightly"]
        await target.put_schedule(nightly)
        before = await contents(target)
        found = await move(source, target).survey(founded=True)
        assert found.clashes.number == 4
        assert found.clashes.known == [
            "the dedupe key 'k:1' of job a0 (welcome) is held there by job b0",
            "the idempotency key 'k:2' of job a1 (charge) is held there by job b1",
            "a schedule 'nightly' is there already",
            "a document 'a' of 'settings' is there already",
        ]
        with pytest.raises(Conflict, match="target holds what is in the way, and nothing was moved: the dedupe key 'k:1'"):
            await move(source, target).run()
        assert (await source.get_mark(), await target.get_mark()) == (None, None)
        assert await contents(target) == before
        await target.delete(EVERYTHING)
        await target.delete_document("settings", "a")
        await target.delete_schedule("nightly")
        assert (await move(source, target).run()).target.jobs == 15

    asyncio.run(main())


def test_a_target_in_use_keeps_what_it_has():
    async def main():
        source, target = stores("memory")
        await stock(source)
        theirs = JobFactory(target)
        theirs.id = iter([f"b{n}" for n in range(9)]).__next__
        job = await theirs.dead("mine", 2)
        await target.put_document("mine", "x", 9)
        await target.put_document("settings", "a", 9, expires_in=1.0, now=theirs.clock.now())  # expired: in nobody's way
        report = await move(source, target).run()
        assert report.target == report.source
        assert [one for one in await target.find(EVERYTHING, limit=99) if one.id == job.id] == [job]
        assert (await target.get_document("mine", "x")).value == 9
        assert (await target.get_document("settings", "a")).value == [None, True, 1e10]

    asyncio.run(main())


def test_a_dry_run_counts_what_the_move_moves_and_changes_nothing():
    async def main():
        source, target = stores("memory")
        await stock(source)
        survey = await move(source, target).survey(founded=True)
        assert await contains_any(target) is False
        assert (await source.get_mark(), await target.get_mark()) == (None, None)
        report = await move(source, target).run()
        assert (survey.source, survey.left) == (report.source, report.left)
        assert (await move(source, target).survey(founded=True)).already

    asyncio.run(main())


# -- marks of other moves


def test_a_store_cannot_be_moved_into_itself(tmp_path):
    async def main():
        one, same = SQLiteStore(tmp_path / "a.db"), SQLiteStore(tmp_path / "a.db")
        await stock(one)
        with pytest.raises(InvalidArgument, match="source and target are the same store"):
            await move(one, same).run()
        assert await one.get_mark() is None
        await one.close()
        await same.close()

    asyncio.run(main())


def test_who_was_moved_or_is_being_moved_elsewhere_is_no_end_of_another_move():
    async def main():
        a, b, c = MemoryStore(), MemoryStore(), MemoryStore()
        await stock(a)
        await move(a, b, names=("a", "b")).run()
        with pytest.raises(StoreMoved, match="a was moved to b: move from there"):
            await move(a, c, names=("a", "c")).run()
        with pytest.raises(Conflict, match="a was moved to b, and only that store may be moved back into it; --force"):
            await move(c, a, names=("c", "a")).run()
        await move(b, c, names=("b", "c")).run()
        with pytest.raises(Conflict, match="only that store may be moved back"):
            await move(c, a, names=("c", "a")).run()
        before = await contents(c)
        report = await move(c, a, names=("c", "a"), force=True).run()
        assert report.target == report.source
        assert await contents(a) == before

    asyncio.run(main())


def test_a_move_to_another_target_waits_for_the_one_that_was_begun():
    async def main():
        a, b, c = MemoryStore(), MemoryStore(), MemoryStore()
        await stock(a)
        before = await contents(a)
        await killed_half_way(a, b, names=("a", "b"))
        assert (await b.get_mark()).stage is Stage.SEALED
        with pytest.raises(Conflict, match="a is being moved to b: finish that move, or give it up with --undo, first"):
            await move(a, c, names=("a", "c")).run()
        with pytest.raises(Conflict, match="a is being moved to b, not to c"):
            await move(a, c, names=("a", "c")).undo()
        with pytest.raises(Conflict, match="b is being filled by a move from a: finish that"):
            await move(b, c, names=("b", "c")).run()
        with pytest.raises(Conflict, match=r"b is being filled by a move from a: .*--force empties it"):
            await move(c, b, names=("c", "b")).run()
        # The target is gone for good, and made anew: what it had is no loss.
        fresh = MemoryStore()
        report = await move(a, fresh, names=("a", "b")).run()
        assert report.target == report.source
        assert await contents(fresh) == before

    asyncio.run(main())


def test_a_mover_that_was_overtaken_puts_nothing_in():
    async def main():
        source, target = stores("memory")
        await stock(source)
        await killed_half_way(source, target)
        late = await target.get_mark()
        await move(source, target).undo()
        with pytest.raises(Conflict, match="the move has changed under way"):
            await target.restore(Cargo(documents=[KeptDocument("ns", Document("k", 1, 1))]), expect=late)
        assert not await contains_any(target)

    asyncio.run(main())


def test_counts_that_do_not_agree_leave_both_closed():
    class Forgetful(MemoryStore):
        async def restore(self, cargo, **options):
            await super().restore(replace(cargo, jobs=[job for job in cargo.jobs if job.name != "ever"]), **options)

    async def main():
        source, target = MemoryStore(), Forgetful()
        make = await stock(source)
        with pytest.raises(StoreError, match="the counts do not agree: 8 pending in the source, 7 in the target"):
            await move(source, target).run()
        for store in (source, target):
            with pytest.raises(StoreError):
                await store.enqueue([make.new("more")])

    asyncio.run(main())


def test_marks_say_what_was_replaced():
    assert Mark("m", Side.TARGET, Stage.SEALED, "x", base=Counts(pending=1)).fence is not None
    assert Mark("m", Side.TARGET, Stage.OVER, "x").fence is None


def test_large_payloads_come_in_pages_that_memory_holds():
    async def main():
        source, target = MemoryStore(), MemoryStore()
        make = JobFactory(source)
        await source.enqueue([make.new("large", "x" * 900_000) for _ in range(120)])
        sizes = []

        class Watched(MemoryStore):
            async def restore(self, cargo, **options):
                sizes.append(len(cargo.jobs))
                await super().restore(cargo, **options)

        target = Watched()
        await move(source, target).run()
        assert sizes[0] == 50 and max(sizes[1:]) <= 9
        assert await target.count(JobFilter(names=frozenset({"large"}))) == 120

    asyncio.run(main())
