"""What a move leaves that cannot go on, or was given up: one of `move` and `move --undo` opens what is closed (S13)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from places import KINDS, move
from scene import Killed, Scene, fenced, steps_of, tick

from treadle import Conflict, StoreError, StoreUnavailable, open_store
from treadle.core.filter import EVERYTHING
from treadle.core.job import NewJob
from treadle.core.transfer import mark_of
from treadle.stores.memory import MemoryStore


class Away(MemoryStore):
    """A store that cannot be reached from a call on, the n-th that replaces its mark."""

    def __init__(self, at: int, *, stored: bool, reads: bool):
        super().__init__()
        self.left, self.stored, self.reads, self.away = at, stored, reads, False

    async def put_mark(self, mark, *, expect):
        self.left -= 1
        if self.left > 0:
            return await super().put_mark(mark, expect=expect)
        if self.stored and not self.away:
            await super().put_mark(mark, expect=expect)
        self.away = True
        raise StoreUnavailable("the target cannot be reached")

    async def get_mark(self):
        if self.away and not self.reads:
            raise StoreUnavailable("the target cannot be reached")
        return await super().get_mark()

    def is_back(self):
        self.left, self.away = 10**9, False


@pytest.mark.parametrize("reads", [True, False], ids=["reads", "does not read"])
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
@pytest.mark.parametrize("at", [1, 2])
def test_a_target_that_goes_away_before_anything_was_moved_leaves_the_source_open(at, stored, reads):
    async def main():
        source, target = MemoryStore(), Away(at, stored=stored, reads=reads)
        await source.enqueue([NewJob("1", "a")])
        with pytest.raises(StoreUnavailable, match="the target cannot be reached"):
            await move(source, target).run()
        assert await source.get_mark() is None
        await source.enqueue([NewJob("2", "a")])
        target.is_back()
        if await target.get_mark() is not None:
            with pytest.raises(Conflict, match="target is being filled by a move from source: finish that, or give it up"):
                await move(source, target).run()
            await move(source, target).undo()
            assert await target.get_mark() is None
        assert (await move(source, target).run()).target.pending == 2

    asyncio.run(main())


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
def test_a_target_that_was_counted_and_got_nothing_is_opened_too(stored):
    async def main():
        source, target = MemoryStore(), Away(3, stored=stored, reads=False)
        await source.enqueue([NewJob("1", "a")])
        await target.enqueue([NewJob("own", "own")])
        with pytest.raises(StoreUnavailable):
            await move(source, target).run()
        assert await source.get_mark() is None
        target.is_back()
        assert ((await target.get_mark()).base is not None) == stored
        await move(source, target).undo()
        assert await target.get_mark() is None
        assert {job.id for job in await target.find(EVERYTHING, limit=9)} == {"own"}

    asyncio.run(main())


def test_a_target_that_goes_away_while_it_is_filled_leaves_both_closed():
    async def main():
        scene = await Scene().begin()

        async def away(*args, **options):
            raise StoreUnavailable("the target cannot be reached")

        scene.target.restore = away
        with pytest.raises(StoreUnavailable):
            await move(scene.source, scene.target).run()
        for store in (scene.source, scene.target):
            with pytest.raises(StoreError):
                await store.enqueue([NewJob("more", "a")])
        del scene.target.restore
        await scene.gets_out("")

    asyncio.run(main())


def test_a_target_that_still_holds_things_of_a_move_is_not_opened():
    """It was given up in the source, and what is here would be run here as well."""

    async def main():
        scene = await Scene().begin()
        await scene.left_half_way(await steps_of("move") - 3)
        await scene.source.put_mark(None, expect=await scene.source.get_mark())
        with pytest.raises(Conflict, match="source is not being moved"):
            await move(scene.source, scene.target).undo()
        assert fenced(await scene.target.get_mark())

    asyncio.run(main())


def test_a_target_that_another_store_fills_is_left_alone():
    async def main():
        scene = await Scene().begin()
        await scene.left_half_way(await steps_of("move") - 3)
        other = MemoryStore()
        with pytest.raises(Conflict, match="other is not being moved"):
            await move(other, scene.target, names=("other", "target")).undo()
        assert (await scene.target.get_mark()).other == "source"

    asyncio.run(main())


def test_an_undo_of_an_older_version_that_came_to_no_end_is_gone_on_with():
    async def main():
        scene = await Scene().begin()
        await scene.left_half_way(await steps_of("move") - 3)
        theirs = await scene.target.get_mark()
        await scene.target.put_mark(replace(theirs, emptying=True, own=()), expect=theirs)
        await scene.gets_out("")

    asyncio.run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_every_store_remembers_which_intervals_were_its_own(kind, place):
    async def main():
        scene = await Scene().begin()
        target = open_store(place(kind), migrate=True)
        await target.migrate()
        await target.ensure([(tick("both"), "own-tick")])
        await target.delete(EVERYTHING)
        scene.target, scene.theirs = target, {**scene.theirs, "jobs": {}}
        with pytest.raises(Killed):
            await move(scene.source, target, progress=killed_at_the_first_page).run()
        assert (await target.get_mark()).own == ("every:both",)
        assert {one.interval.schedule for one in await target.kept_intervals()} == {"every:both"}
        await move(scene.source, target, progress=lambda *_: None).undo()
        assert {one.interval.schedule for one in await target.kept_intervals()} == {"every:both"}
        assert (await scene.source.get_mark(), await target.get_mark()) == (None, None)
        await scene.gets_out(kind)
        await target.close()

    asyncio.run(main())


def killed_at_the_first_page(doing, done, total):
    if doing == "Moving":
        raise Killed


def test_marks_are_read_as_they_were_written_by_older_versions_too():
    mark = replace(mark_of(OLD), own=("every:a", "every:ü"))
    assert mark_of(mark.text()) == mark
    assert mark_of(OLD).text() == OLD, "by compare-and-set of texts too"
    assert mark_of(OLD).own == ()


OLD = (
    '{"base": null, "before": {"base": null, "before": null, "emptying": false, "move": "m", "other": "a", "side": "source", '
    '"stage": "over"}, "emptying": true, "move": "n", "other": "b", "side": "target", "stage": "draining"}'
)
