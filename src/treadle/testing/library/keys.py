"""Keys: an idempotency key outlives its job's run, a dedupe key does not (E6, E7)."""

from __future__ import annotations

from treadle.core.job import State
from treadle.testing.contract import expect
from treadle.testing.library.bench import Bench
from treadle.testing.suite import Group

keys = Group[Bench]("keys")


@keys
async def a_repeat_with_other_content_changes_nothing(b: Bench) -> None:
    """The same idempotency key after the run, with another payload, answers the first job as it was (scenario 72)."""
    tasks = b.tasks()
    runs: list[object] = []
    tasks.handle("welcome-email", runs.append)
    first = await tasks.enqueue("welcome-email", {"email": "a@example.org"}, idempotency_key="welcome:1")
    await tasks.drain()
    again = await tasks.enqueue("welcome-email", {"email": "b@example.org"}, idempotency_key="welcome:1")
    await tasks.drain()
    expect.equal((again.created, again.id), (False, first.id), "a repeat is answered with the first job")
    expect.equal(again.job.payload, {"email": "a@example.org"}, "its payload is the first one's")
    expect.equal(runs, [{"email": "a@example.org"}], "the handler ran once")
    expect.equal(len(await tasks.list()), 1, "one job is listed")


@keys
async def a_dedupe_key_does_not_outlive_its_job(b: Bench) -> None:
    """After a success and after a death the key is free, and the next job runs (scenario 68)."""
    tasks = b.tasks(max_attempts=1)

    @tasks.handler("job")
    async def handler(payload: str) -> None:
        if payload == "fail":
            raise ValueError

    states = []
    for payload in ("fail", "succeed", "fail", "succeed"):
        enqueued = await tasks.enqueue("job", payload, dedupe_key="k")
        expect.that(enqueued.created, f"the key is free for the job that is to {payload}")
        twin = await tasks.enqueue("job", payload, dedupe_key="k")
        expect.equal((twin.created, twin.id), (False, enqueued.id), "while it waits the key is held")
        await tasks.drain()
        states.append((await b.job(enqueued.id)).state)
    expect.equal(states, [State.DEAD, State.DONE] * 2, "each job ran")
