"""A move given up while it is at work, each of the two held at any of its steps: it is over, or it is given up (S13)."""

from __future__ import annotations

import asyncio

import pytest
from places import move
from scene import Scene, ended, fenced, held_move, held_undo, killed, steps_of
from stock import contents

from treadle.core.transfer import Stage


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_mover_that_stands_at_any_step_is_given_up(after):
    async def main():
        given_up = 0
        for step in range(1, await steps_of("move") + 1):
            scene = await Scene().begin()
            steps, running = await held_move(scene, step, after)
            said = await ended(move(scene.source, scene.target).undo())
            await scene.all_is_well(step, ended=False)
            if not said:
                given_up += 1
                await scene.is_as_before(step)
            steps.go.set()
            moved = await running
            await scene.all_is_well(step, ended=True)
            assert "there is nothing to give up" in said or "is over" in said or "changed under way" in moved, step
            if not said:
                await scene.is_as_before(step)
            await scene.gets_out(step)
        assert given_up > 15

    asyncio.run(main())


@pytest.mark.parametrize("again", ["move", "undo"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_both_stand_at_any_of_their_steps_and_the_mover_goes_on_first(after, again):
    async def main():
        steps_of_both = await steps_of("move"), await steps_of("undo")
        assert steps_of_both > (25, 10)
        for at in range(3, steps_of_both[0] + 1):
            for stands in range(1, steps_of_both[1] + 1):
                word = (at, stands)
                scene = await Scene().begin()
                mover, running = await held_move(scene, at)
                undo, undoing = await held_undo(scene, stands, after)
                mover.go.set()
                await running
                await scene.all_is_well(word, ended=False)
                undo.go.set()
                await undoing
                await scene.all_is_well(word, ended=True)
                mine = await scene.source.get_mark()
                if again == "undo" and fenced(mine) and mine.stage is not Stage.OVER:
                    await move(scene.source, scene.target).undo()
                    await scene.is_as_before(word)
                await scene.gets_out(word)

    asyncio.run(main())


@pytest.mark.parametrize("again", ["move", "undo"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_undo_that_is_killed_anywhere_beside_a_mover_is_no_end(after, again):
    """The mover goes on, and can only fail; then either command gets both stores open."""

    async def main():
        steps_of_both = await steps_of("move"), await steps_of("undo")
        for at in range(3, steps_of_both[0] + 1):
            for last in range(1, steps_of_both[1] + 1):
                word = (at, last)
                scene = await Scene().begin()
                mover, running = await held_move(scene, at)
                _, undoing = await held_undo(scene, last, after)
                await killed(undoing)
                mover.go.set()
                await running
                await scene.all_is_well(word, ended=False)
                mine = await scene.source.get_mark()
                if again == "undo" and fenced(mine) and mine.stage is not Stage.OVER:
                    await move(scene.source, scene.target).undo()
                    await scene.is_as_before(word)
                await scene.gets_out(word)

    asyncio.run(main())


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_undo_that_stands_anywhere_while_the_move_is_run_again(after):
    """Whoever runs the move again gives it up first, so that what is held can neither take anything out nor open the source."""

    async def main():
        over = 0
        for at in (12, await steps_of("move") // 2, await steps_of("move") - 3):
            for stands in range(1, await steps_of("undo") + 1):
                word = (at, stands)
                scene = await Scene().begin()
                await scene.left_half_way(at)
                undo, undoing = await held_undo(scene, stands, after)
                moved = await ended(move(scene.source, scene.target).run())
                await scene.all_is_well(word, ended=False)
                undo.go.set()
                said = await undoing
                await scene.all_is_well(word, ended=True)
                if not moved:
                    over += 1
                    assert said or after or not undo.held.is_set(), word
                    assert (await contents(scene.target))["jobs"] == scene.before["jobs"] | scene.theirs["jobs"], word
                await scene.gets_out(word)
        assert over > 10

    asyncio.run(main())
