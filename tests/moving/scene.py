"""A small move whose processes can be held, or killed, at any of their steps."""

from __future__ import annotations

import asyncio

import pytest
from places import move
from stock import contents

from treadle import Conflict
from treadle.core.filter import EVERYTHING
from treadle.core.job import Key, NewJob
from treadle.core.schedule import Interval
from treadle.core.transfer import Stage
from treadle.stores.memory import MemoryStore


class Steps:
    """Counts the calls of one process on both stores, and holds it before or after the n-th until it may go on."""

    def __init__(self, at: int = -1, after: bool = False):
        self.count, self.at, self.after = 0, at, after
        self.held, self.go = asyncio.Event(), asyncio.Event()

    def of(self, store):
        return Stepping(store, self)

    async def turn(self, now: bool) -> None:
        if now and self.count == self.at:
            self.held.set()
            await self.go.wait()


class Stepping:
    def __init__(self, inner, steps: Steps):
        self.inner, self.steps = inner, steps

    def __getattr__(self, name):
        operation = getattr(self.inner, name)

        async def call(*args, **options):
            self.steps.count += 1
            await self.steps.turn(not self.steps.after)
            answer = await operation(*args, **options)
            await self.steps.turn(self.steps.after)
            return answer

        return call


class Killed(BaseException):
    """As if the process had ended."""


class Dying(Stepping):
    """Stopped for good where others are held."""

    def __getattr__(self, name):
        operation = getattr(self.inner, name)

        async def call(*args, **options):
            self.steps.count += 1
            if self.steps.count >= self.steps.at:
                raise Killed
            return await operation(*args, **options)

        return call


def tick(name: str) -> Interval:
    return Interval.of(60.0, NewJob("", name, key=Key("schedule", f"every:{name}"), schedule=f"every:{name}"))


class Scene:
    """A source with a bit of everything, and a target with things of its own, one interval of the source among them."""

    async def begin(self):
        self.source, self.target = MemoryStore(), MemoryStore()
        await self.target.ensure([(tick("both"), "own-tick")])
        await self.target.delete(EVERYTHING)  # the copy is not there at the moment, but the interval is remembered
        await self.target.enqueue([NewJob("own", "own")])
        await self.source.enqueue([NewJob("1", "a", key=Key("dedupe", "k")), NewJob("2", "b"), NewJob("3", "c", delay=60.0)])
        await self.source.ensure([(tick("both"), "tick-both"), (tick("mine"), "tick-mine")])
        await self.source.put_document("settings", "a", 1)
        self.before, self.theirs = await contents(self.source), await contents(self.target)
        return self

    async def left_half_way(self, at: int) -> None:
        """By a mover that was killed, so that it could give nothing back."""
        with pytest.raises(Killed):
            await move(Dying(self.source, steps := Steps(at)), Dying(self.target, steps)).run()

    async def all_is_well(self, word: object, *, ended: bool) -> None:
        """No job can be taken from both, and none from neither once both commands have ended."""
        mine, theirs = await self.source.get_mark(), await self.target.get_mark()
        here = {job.id for job in await self.source.find(EVERYTHING, limit=99)}
        there = {job.id for job in await self.target.find(EVERYTHING, limit=99)}
        both_open = not fenced(mine) and not fenced(theirs)
        assert not (both_open and here & there), (word, "doubled")
        assert here == set(self.before["jobs"]), (word, "the source keeps what it had")
        if not fenced(theirs) and fenced(mine):
            assert mine.stage is not Stage.OVER or here <= there, (word, "lost")
        if ended:
            assert not (fenced(mine) and fenced(theirs)), (word, "both are closed", mine, theirs)

    async def is_as_before(self, word: object) -> None:
        assert (await self.source.get_mark(), await self.target.get_mark()) == (None, None), word
        assert await contents(self.source) == self.before, word
        there = await contents(self.target)
        # A copy that came and went has told its interval when it was due.
        assert names(there.pop("intervals")) == names(self.theirs["intervals"]) == {"every:both"}, word
        assert there == {kind: things for kind, things in self.theirs.items() if kind != "intervals"}, word

    async def gets_out(self, word: object) -> None:
        """By moving, if it was not moved."""
        await move(self.source, self.target).run()
        there = await contents(self.target)
        assert there["jobs"] == self.before["jobs"] | self.theirs["jobs"], word
        assert there["documents"] == self.before["documents"], word
        assert names(there["intervals"]) == {"every:both", "every:mine"}, word
        assert (await self.source.get_mark()).stage is Stage.OVER


def names(kept) -> set[str]:
    return {one.interval.schedule for one in kept}


def fenced(mark) -> bool:
    return mark is not None and mark.fence is not None


async def ended(command) -> str:
    try:
        await command
    except Conflict as error:
        return str(error)
    return ""


async def steps_of(command: str) -> int:
    scene, steps = await Scene().begin(), Steps()
    if command == "undo":
        await held_move(scene, await steps_of("move") - 3)
    await getattr(move(steps.of(scene.source), steps.of(scene.target)), "run" if command == "move" else "undo")()
    return steps.count


async def held_move(scene: Scene, at: int, after: bool = False):
    steps = Steps(at, after)
    return steps, await held(steps, move(steps.of(scene.source), steps.of(scene.target)).run())


async def held_undo(scene: Scene, at: int, after: bool = False):
    steps = Steps(at, after)
    return steps, await held(steps, move(steps.of(scene.source), steps.of(scene.target)).undo())


async def held(steps: Steps, command) -> asyncio.Task[str]:
    """The command, begun, as far as it comes."""
    running = asyncio.create_task(ended(command))
    waiting = asyncio.create_task(steps.held.wait())
    await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    return running


async def killed(running: asyncio.Task[str]) -> None:
    running.cancel()
    await asyncio.wait([running])
