"""Jobs in any state, made through the contract's own operations, so that it works on every store."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict, Unpack

from treadle.core.clock import to_micros
from treadle.core.job import Job, Key, NewJob
from treadle.core.outcome import Dead, Done, Outcome
from treadle.core.payload import JSON, encode
from treadle.core.store import Claim, Demand, Ending, Store
from treadle.testing.clock import START, ManualClock

LEASE = 60.0
WORKER = "worker-1"


class NewJobOptions(TypedDict, total=False):
    """What `JobFactory.new` takes beside name and payload: the fields of `NewJob`, and the two keys as plain text."""

    id: str
    queue: str
    delay: float
    run_at: datetime | None
    priority: int
    max_attempts: int | None
    key: Key | None
    schedule: str | None
    idempotency_key: str
    dedupe_key: str


@dataclass(frozen=True, slots=True)
class Held:
    """A running job and the claim that holds it."""

    job: Job
    claim: Claim


def uuid7(number: int, unix_ms: int = to_micros(START) // 1000) -> str:
    """The UUIDv7 with that number: valid, ascending with the number, and the same in every run."""
    high, low = divmod(number, 4096)
    text = f"{unix_ms + high:012x}7{low:03x}8{number:015x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class JobFactory:
    """Makes jobs on one store, in any state; ids ascend and are the same in every run.

    The moments are those of `clock`, a `ManualClock` that the factory makes if none is given.
    """

    def __init__(self, store: Store, clock: ManualClock | None = None) -> None:
        self.store = store
        self.clock = ManualClock() if clock is None else clock
        self._numbers = itertools.count(1)

    def id(self) -> str:
        """The next id, greater than those before."""
        return uuid7(next(self._numbers))

    def token(self) -> str:
        """A claim token that no other claim has."""
        return f"token-{self.id()}"

    def new(self, name: str = "job", payload: JSON = None, **options: Unpack[NewJobOptions]) -> NewJob:
        """A `NewJob` that is not stored yet."""
        idempotency, dedupe = options.get("idempotency_key"), options.get("dedupe_key")
        if idempotency is not None:
            key: Key | None = Key("idempotency", idempotency)
        elif dedupe is not None:
            key = Key("dedupe", dedupe)
        else:
            key = options.get("key")
        return NewJob(
            id=options.get("id") or self.id(),
            name=name,
            payload_json=encode(payload),
            queue=options.get("queue", "default"),
            delay=options.get("delay", 0.0),
            run_at=options.get("run_at"),
            priority=options.get("priority", 0),
            max_attempts=options.get("max_attempts"),
            key=key,
            schedule=options.get("schedule"),
        )

    async def pending(self, name: str = "job", payload: JSON = None, **options: Unpack[NewJobOptions]) -> Job:
        """A pending job, as the store answers it."""
        answers = await self.store.enqueue([self.new(name, payload, **options)], now=self.clock.now())
        if len(answers) != 1:
            raise AssertionError(f"the store must answer one enqueued job once; it answered {len(answers)} times")
        answer = answers[0]
        if not answer.created:
            raise AssertionError(f"the store answered that the new job {name!r} is not new; it named {answer.id} as the holder")
        return answer.job

    async def running(self, name: str = "job", payload: JSON = None, **options: Unpack[NewJobOptions]) -> Held:
        """A running job with the claim that holds it, leased for 60 s."""
        job = await self.pending(name, payload, **options)
        return await self.claimed(job)

    async def done(self, name: str = "job", payload: JSON = None, **options: Unpack[NewJobOptions]) -> Job:
        """A job that succeeded at its first attempt."""
        return await self.ended(await self.running(name, payload, **options), Done())

    async def dead(
        self, name: str = "job", payload: JSON = None, error: str = "ValueError: no", **options: Unpack[NewJobOptions]
    ) -> Job:
        """A dead letter that failed at its first attempt."""
        return await self.ended(await self.running(name, payload, **options), Dead(error))

    async def expired(self, name: str = "job", payload: JSON = None, **options: Unpack[NewJobOptions]) -> Held:
        """A running job whose lease is past by a second: moves the clock on."""
        held = await self.running(name, payload, **options)
        self.clock.advance(LEASE + 1.0)
        return held

    async def claimed(self, job: Job, *, lease: float = LEASE, worker: str = WORKER) -> Held:
        """That due job, claimed; it must be the best of its name in its queue."""
        token = self.token()
        demand = Demand(1, (job.queue,), {job.name: 5})
        claimed = await self.store.claim(token, [demand], worker=worker, lease=lease, now=self.clock.now())
        if [one.id for one in claimed.jobs] != [job.id]:
            raise AssertionError(
                f"a claim of one job named {job.name!r} in queue {job.queue!r} must take the due job {job.id}; "
                f"it took {[one.id for one in claimed.jobs]}"
            )
        return Held(claimed.jobs[0], Claim(job.id, token))

    async def ended(self, held: Held, outcome: Outcome) -> Job:
        """The held job after that outcome was applied to it."""
        took = await self.store.finish([Ending(held.claim, outcome)], now=self.clock.now())
        if took != {held.claim}:
            raise AssertionError(f"finish with a claim that holds must answer that claim; it answered {took or 'nothing'}")
        found = await self.store.get([held.claim.id])
        if len(found) != 1:
            raise AssertionError(f"get must answer the job {held.claim.id}, which was finished just now; it answered {found}")
        return found[0]
