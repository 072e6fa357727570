"""Retention: finished jobs go when they are old enough, those that guard a key later or never (E29)."""

from __future__ import annotations

from treadle.testing.contract import expect
from treadle.testing.library.bench import Bench
from treadle.testing.suite import Group

retention = Group[Bench]("retention")


async def _left(b: Bench) -> list[str]:
    return sorted(job.name for job in await b.jobs())


@retention
async def without_retention_everything_is_kept(b: Bench) -> None:
    """By default the library prunes nothing (E29)."""
    tasks = b.tasks()
    tasks.handle("done", lambda payload: None)
    await tasks.enqueue("done")
    await tasks.drain()
    b.clock.advance(10 * 365 * 86_400)
    await tasks.run_once()
    expect.equal(await _left(b), ["done"], "a done job is kept for ever without retention")


@retention
async def finished_jobs_go_at_their_age_and_keyed_ones_stay(b: Bench) -> None:
    """With retention, done and dead jobs go at that age; waiting ones and those with an idempotency key stay (E29)."""
    tasks = b.tasks(retention=100.0, max_attempts=1)

    @tasks.handler("dead")
    async def dead(payload: object) -> None:
        raise ValueError

    for name in ("done", "keyed", "later"):
        tasks.handle(name, lambda payload: None)
    for name in ("done", "dead"):
        await tasks.enqueue(name)
    await tasks.enqueue("keyed", idempotency_key="k")
    await tasks.enqueue("later", delay=1000)
    await tasks.drain()
    b.clock.advance(99.999)
    await tasks.run_once()
    expect.equal(await _left(b), ["dead", "done", "keyed", "later"], "nothing goes before its age")
    b.clock.advance(0.001)
    await tasks.run_once()
    expect.equal(await _left(b), ["keyed", "later"], "done and dead jobs go at their age, keyed and waiting ones stay")


@retention
async def keyed_jobs_go_by_a_retention_of_their_own(b: Bench) -> None:
    """With key_retention a job with an idempotency key goes at that age, and its key is free again (E29)."""
    tasks = b.tasks(retention=10.0, key_retention=100.0)
    tasks.handle("keyed", lambda payload: None)
    await tasks.enqueue("keyed", idempotency_key="k")
    await tasks.drain()
    b.clock.advance(50)
    await tasks.run_once()
    expect.equal(await _left(b), ["keyed"], "a keyed job outlives the retention of others")
    b.clock.advance(50)
    await tasks.run_once()
    expect.equal(await _left(b), [], "and goes at its own")
    expect.that((await tasks.enqueue("keyed", idempotency_key="k")).created, "its key is free again")


@retention
async def pruning_by_hand_keeps_to_its_bounds(b: Bench) -> None:
    """Prune deletes done and dead jobs of that age, a dry run counts them, and both mean the same (L5)."""
    tasks = b.tasks()
    tasks.handle("done", lambda payload: None)
    await tasks.enqueue_many([{"name": "done"}] * 700)
    await tasks.drain()
    b.clock.advance(60)
    await tasks.enqueue("done")
    await tasks.drain()
    preview = await tasks.prune(60, dry_run=True)
    expect.equal((preview.matched, preview.deleted), (700, 0), "a dry run counts and deletes nothing")
    pruned = await tasks.prune(60)
    expect.equal((pruned.matched, pruned.deleted), (700, 700), "pruning deletes what was counted")
    expect.equal(await _left(b), ["done"], "a younger job stays")
