"""The public API as a type checker sees it: this file is checked by mypy in strict mode, and never run."""

from dataclasses import dataclass
from typing import Any, assert_type

from treadle import Context, Enqueued, Exponential, Handler, Job, NewJob, Schedule, Tasks

tasks = Tasks("memory:", retry=Exponential(1, 900, jitter=0.1), queues=["mails"])


@dataclass
class Mail:
    to: str


@tasks.handler("mail", max_attempts=3, timeout=10)
async def mail(payload: Mail, ctx: Context) -> None:
    assert_type(ctx.job, Job)
    assert_type(ctx.attempt, int)
    await ctx.extend_lease(60)


@tasks.handler("count")
def count(payload: int) -> int:
    return payload + 1


async def use() -> None:
    assert_type(await mail.enqueue(Mail("ada"), delay=5, idempotency_key="mail:1"), Enqueued)
    await mail.enqueue({"to": "ada"})  # type: ignore[arg-type]  # a payload of another type
    await mail.enqueue(Mail("ada"), dely=5)  # type: ignore[call-arg]  # an unknown option
    assert_type(count(1), int)
    assert_type(await tasks.enqueue("mail", {"to": "ada"}), Enqueued)
    assert_type(await tasks.enqueue_many([NewJob("mail", {"to": "ada"}), {"name": "mail"}]), list[Enqueued])
    assert_type(await tasks.get("id"), Job | None)
    assert_type(await tasks.list(states=["done"]), list[Job])
    assert_type(tasks.sync.enqueue("mail"), Enqueued)
    assert_type(tasks.sync.list(), list[Job])
    assert_type(await tasks.schedules.list(), list[Schedule])
    assert_type(await tasks.schedules.run_now("nightly"), Enqueued)
    assert_type(tasks.sync.schedules.get("nightly"), Schedule)


async def plain(payload: Any) -> None: ...


handler: Handler[Any, [], Any] = tasks.handle("plain", plain)
