"""The model: what a store must do, in plain lists and dicts, slow and obvious. It shares no code with any store (S3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from treadle.core.filter import JobFilter
from treadle.core.job import FINISHED, UNFINISHED, Failure, Job, NewJob, State
from treadle.core.outcome import Dead, Done, Outcome, Released, RetryAfter
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.schedule import Interval
from treadle.core.store import Claim, Demand, Stats


class Model:
    """All jobs in a list, the tokens of the running ones in a dict, and what is remembered of intervals."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.tokens: dict[str, str] = {}
        self.intervals: dict[str, Interval] = {}
        self.last_due: dict[str, datetime] = {}

    # --- the parts that the operations are made of

    def job(self, id: str) -> Job | None:
        """The stored job of that id."""
        return next((job for job in self.jobs if job.id == id), None)

    def holder(self, new: NewJob) -> Job | None:
        """The job that holds the new one's id or key."""
        for job in self.jobs:
            if job.id == new.id:
                return job
        for job in self.jobs:
            holds = job.key is not None and (job.key.kind == "idempotency" or job.state in UNFINISHED)
            if holds and (job.name, job.key) == (new.name, new.key):
                return job
        return None

    def put(self, job: Job) -> None:
        """Store the job in the place of the one with its id."""
        self.jobs = [other for other in self.jobs if other.id != job.id] + [job]
        if job.state is not State.RUNNING:
            self.tokens.pop(job.id, None)

    def note_due(self, job: Job) -> None:
        """Remember when the waiting copy of an interval is due, for putting it back."""
        if job.key is not None and job.key.kind == "schedule" and job.state is State.PENDING:
            self.last_due[job.key.text] = job.run_at

    def remove(self, job: Job) -> None:
        """Forget the job; a pending copy of an interval leaves behind when it was due."""
        self.jobs = [other for other in self.jobs if other.id != job.id]
        self.note_due(job)

    def matching(self, which: JobFilter, now: datetime, states: frozenset[State] = frozenset(State)) -> list[Job]:
        """The jobs that match and are in one of these states, oldest id first."""
        found = [job for job in self.jobs if job.state in states and which.matches(job, now)]
        return sorted(found, key=lambda job: job.id)

    # --- the operations, named like the store's

    def enqueue(self, new: NewJob, now: datetime) -> tuple[Job, bool]:
        """The stored job and whether it is new."""
        holder = self.holder(new)
        if holder is not None:
            return holder, False
        job = new.stored(now, new.run_at or now + timedelta(seconds=new.delay))
        self.put(job)
        self.note_due(job)
        return job, True

    def claim(self, token: str, demand: Demand, worker: str, lease: float, now: datetime) -> tuple[list[Job], float | None]:
        """The claimed jobs, and the seconds until the next one that the demand is about."""

        def meant(job: Job) -> bool:
            if demand.queues is None:
                queue = job.queue != "functions" and not job.queue.startswith("plugin:")
            else:
                queue = job.queue in demand.queues
            return job.state is State.PENDING and queue and (demand.names is None or job.name in demand.names)

        due = [job for job in self.jobs if meant(job) and job.run_at <= now]
        due.sort(key=lambda job: (-job.priority, job.run_at, job.id))
        claimed = []
        for job in due[: demand.limit]:
            default = demand.max_attempts if demand.names is None else demand.names[job.name]
            running = replace(
                job,
                state=State.RUNNING,
                attempts=job.attempts + 1,
                max_attempts=default if job.max_attempts is None else job.max_attempts,
                started_at=now,
                worker=worker,
                lease_until=now + timedelta(seconds=lease),
            )
            self.put(running)
            self.tokens[job.id] = token
            claimed.append(running)
        waiting = [job.run_at for job in self.jobs if meant(job)]
        return claimed, max(0.0, (min(waiting) - now).total_seconds()) if waiting else None

    def held(self, claim: Claim) -> Job | None:
        """The running job that the claim holds."""
        return self.job(claim.id) if self.tokens.get(claim.id) == claim.token else None

    def renew(self, claim: Claim, lease: float, now: datetime) -> bool:
        """Whether the claim held."""
        job = self.held(claim)
        if job is not None:
            self.put(replace(job, lease_until=now + timedelta(seconds=lease)))
        return job is not None

    def finish(self, claim: Claim, outcome: Outcome, following: NewJob | None, now: datetime) -> bool:
        """Whether the claim held."""
        job = self.held(claim)
        if job is None:
            return False
        self._end(job, outcome, following, now)
        return True

    def expired(self, limit: int, now: datetime) -> list[Job]:
        """Running jobs whose lease is past, longest past first."""
        past = [(job.lease_until, job.id, job) for job in self.jobs if job.lease_until is not None and job.lease_until <= now]
        return [job for _, _, job in sorted(past)[:limit]]

    def reclaim(self, claim: Claim, seen: Job, outcome: Outcome, following: NewJob | None, now: datetime) -> bool:
        """Whether the job was taken back."""
        job = self.held(claim)
        if job is None or job.lease_until is None or job.lease_until != seen.lease_until or job.lease_until > now:
            return False
        self._end(job, outcome, following, now)
        return True

    def redrive(self, which: JobFilter, policy: RedrivePolicy, limit: int | None, now: datetime) -> tuple[list[str], list[str]]:
        """The ids revived and the ids dropped."""
        revived, dropped = [], []
        for job in self.matching(which, now, frozenset({State.DEAD}))[:limit]:
            key = job.key if job.key is None or job.key.kind != "schedule" else None
            if key is not None and key.kind == "dedupe" and self.holder(NewJob("", job.name, key=key)) is not None:
                self.remove(job)
                dropped.append(job.id)
                continue
            reset = policy is RedrivePolicy.RESET
            self.put(
                replace(
                    job,
                    state=State.PENDING,
                    run_at=now,
                    finished_at=None,
                    key=key,
                    attempts=0 if reset else job.attempts,
                    interruptions=0 if reset else job.interruptions,
                )
            )
            revived.append(job.id)
        return revived, dropped

    def run_now(self, which: JobFilter, now: datetime) -> int:
        """How many pending jobs matched."""
        jobs = self.matching(which, now, frozenset({State.PENDING}))
        for job in jobs:
            hurried = replace(job, run_at=now)
            self.put(hurried)
            self.note_due(hurried)
        return len(jobs)

    def delete(self, which: JobFilter, limit: int | None, now: datetime) -> int:
        """How many were deleted."""
        jobs = self.matching(which, now, frozenset({State.PENDING, State.DONE, State.DEAD}))[:limit]
        for job in jobs:
            self.remove(job)
        return len(jobs)

    def ensure(self, interval: Interval, id: str, now: datetime) -> Job | None:
        """The copy that was put back."""
        self.intervals[interval.schedule] = interval
        copy = replace(interval.job, id=id, run_at=self.last_due.get(interval.schedule, now))
        if self.holder(copy) is not None:
            return None
        return self.enqueue(copy, now)[0]

    def stats(self) -> Stats:
        """The aggregate."""
        states = Counter(job.state for job in self.jobs)
        waiting = [job for job in self.jobs if job.state is State.PENDING]
        copies = {name: number for name, number in Counter(job.name for job in waiting).items() if number > 1}
        shown = dict(sorted(copies.items(), key=lambda item: (-item[1], item[0]))[:10])
        due = min((job.run_at for job in waiting), default=None)
        pending, running, done, dead = (states[state] for state in (State.PENDING, State.RUNNING, State.DONE, State.DEAD))
        return Stats(pending, running, done, dead, due, shown, len(copies))

    def _end(self, job: Job, outcome: Outcome, following: NewJob | None, now: datetime) -> None:
        idle = replace(job, worker=None, lease_until=None)
        match outcome:
            case Done(note=note):
                ended = replace(idle, state=State.DONE, finished_at=now, note=note)
            case Dead(error=error):
                ended = replace(idle, state=State.DEAD, finished_at=now, last_error=error, failures=_recorded(job, error, now))
            case RetryAfter(seconds=seconds, error=error):
                due = now + timedelta(seconds=seconds)
                ended = replace(idle, state=State.PENDING, run_at=due, last_error=error, failures=_recorded(job, error, now))
            case Released(seconds=seconds, interrupted=interrupted):
                ended = replace(
                    idle,
                    state=State.PENDING,
                    run_at=now + timedelta(seconds=seconds),
                    attempts=job.attempts - 1,
                    interruptions=job.interruptions + interrupted,
                )
            case _:
                assert_never(outcome)
        self.put(ended)
        if following is not None and ended.state in FINISHED:
            self.enqueue(following, now)


def _recorded(job: Job, error: str, now: datetime) -> Sequence[Failure]:
    assert job.worker is not None and job.started_at is not None
    return (*job.failures, Failure(job.attempts, job.worker, job.started_at, now, error))
