"""The ledger: all jobs by id, with the indexes that keep every operation from reading them all (S8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from treadle.core.job import FINISHED, Enqueued, Job, Key, NewJob, State
from treadle.core.schedule import Interval
from treadle.stores.memory import snapshot
from treadle.stores.memory.intervals import Intervals
from treadle.stores.memory.lanes import Lanes
from treadle.stores.memory.moments import in_utc, later
from treadle.stores.memory.roll import Roll

_STATES = (State.PENDING, State.DONE, State.DEAD)


class Ledger:
    """Jobs and their indexes. Its methods are steps of a change; the store's lock makes a change one step."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.tokens: dict[str, str] = {}  # of the running jobs, in the order of claiming
        self.keys: dict[tuple[str, str, str], str] = {}
        self.lanes = Lanes(self.jobs)
        self.intervals = Intervals()
        self.by_state: dict[State, Roll[str]] = {state: self._of_state(state) for state in _STATES}
        self.by_name: dict[str, Roll[str]] = {}
        # By the time of finishing, those with an idempotency key apart, since they may be kept for ever (E29).
        self.finished: dict[tuple[State, bool], Roll[tuple[datetime, str]]] = {
            (state, keyed): self._of_finish(state) for state in FINISHED for keyed in (False, True)
        }

    def insert(self, new: NewJob, now: datetime) -> tuple[Job, bool]:
        """Store the job, or find the one that holds its id or its key; whether it is new (E6, E7, E9)."""
        holder = self.jobs.get(new.id)
        if holder is not None:
            return holder, False
        key = new.key
        if key is not None:
            place = (new.name, key.kind, key.text)
            held_by = self.keys.setdefault(place, new.id)
            if held_by != new.id:
                return self.jobs[held_by], False
        run_at = later(now, new.delay) if new.run_at is None else in_utc(new.run_at)
        job = snapshot.stored(new, now, run_at)
        name = job.name
        roll = self.by_name.get(name)
        if roll is None:
            roll = self.by_name[name] = self._of_name(name)
        roll.add(job.id)
        self.pend(job, now)
        return job, True

    def ensure(self, interval: Interval, id: str, now: datetime) -> Enqueued | None:
        """Remember the interval, and put its copy back where none is unfinished, due when the last one was (T1 to T4)."""
        due = self.intervals.register(interval)
        key = interval.job.key
        if key is not None and (interval.job.name, key.kind, key.text) in self.keys:
            return None
        copy = replace(interval.job, id=id, run_at=now if due is None else due)
        job, created = self.insert(copy, now)
        if created:
            self.intervals.remember_due(job)
        return Enqueued(job.id, created, job)

    def pend(self, job: Job, now: datetime) -> None:
        """Keep a job that has become pending."""
        self.jobs[job.id] = job
        pending = self.by_state[State.PENDING]
        pending.fresh.append(job.id)
        pending.live += 1
        self.lanes.push(job, now)

    def finish(self, job: Job, now: datetime) -> None:
        """Keep a job that is done or dead, and free a key that holds only as long as its job is unfinished (E7, T4)."""
        self.jobs[job.id] = job
        self.by_state[job.state].add(job.id)
        key = job.key
        keyed = False
        if key is not None:
            keyed = key.kind == "idempotency"
            if not keyed:
                self.free(job, key)
        self.finished[job.state, keyed].add((now, job.id))

    def unfinish(self, job: Job) -> None:
        """Take note that the done or dead job is about to be another."""
        self.by_state[job.state].live -= 1
        self.finished[job.state, job.idempotency_key is not None].live -= 1

    def remove(self, job: Job) -> None:
        """Forget a job that is not running."""
        del self.jobs[job.id]
        if job.key is not None:
            self.free(job, job.key)
        if job.state is State.PENDING:
            self.by_state[State.PENDING].live -= 1
            self.lanes.gone(job.queue, job.name)
            self.intervals.remember_due(job)
        else:
            self.unfinish(job)
        roll = self.by_name[job.name]
        roll.live -= 1
        if roll.live:
            roll.sweep()
        else:
            del self.by_name[job.name]

    def free(self, job: Job, key: Key) -> None:
        """Let go of the key if it is this job that holds it."""
        place = (job.name, key.kind, key.text)
        if self.keys.get(place) == job.id:
            del self.keys[place]

    def sweep(self) -> None:
        """Keep the rolls from outgrowing the jobs; for the end of a change that made entries stale."""
        for by_state in self.by_state.values():
            by_state.sweep()
        for finished in self.finished.values():
            finished.sweep()

    def _of_state(self, state: State) -> Roll[str]:
        jobs = self.jobs
        return Roll(lambda job_id: (job := jobs.get(job_id)) is not None and job.state is state)

    def _of_name(self, name: str) -> Roll[str]:
        jobs = self.jobs
        return Roll(lambda job_id: (job := jobs.get(job_id)) is not None and job.name == name)

    def _of_finish(self, state: State) -> Roll[tuple[datetime, str]]:
        jobs = self.jobs
        return Roll(
            lambda entry: (job := jobs.get(entry[1])) is not None and job.state is state and job.finished_at == entry[0]
        )
