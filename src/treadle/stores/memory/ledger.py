"""The ledger: all jobs by id, with the indexes that keep every operation from reading them all (S8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from treadle.core.draft import answer, pending_job
from treadle.core.job import FINISHED, Enqueued, Job, Key, NewJob, State
from treadle.core.schedule import Interval
from treadle.stores.memory.intervals import Intervals
from treadle.stores.memory.lanes import Lanes
from treadle.stores.memory.moments import in_utc, later
from treadle.stores.memory.roll import Roll

_PENDING = State.PENDING


class Ledger:
    """Jobs and their indexes. Its methods are steps of a change; the store's lock makes a change one step."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.tokens: dict[str, str] = {}  # of the running jobs, in the order of claiming
        self.keys: dict[tuple[str, str, str], str] = {}
        self.lanes = Lanes(self.jobs)
        self.intervals = Intervals()
        self.by_name: dict[str, Roll[str]] = {}
        self.pending = self._of_state(_PENDING)
        # Finished jobs by id and by time of finishing, those with an idempotency key apart: they may be kept for ever,
        # and must not be in the way of pruning the others (E29).
        self.finished: dict[tuple[State, bool], Roll[str]] = {}
        self.ages: dict[tuple[State, bool], Roll[tuple[datetime, str]]] = {}
        for state in FINISHED:
            for keyed in (False, True):
                self.finished[state, keyed] = self._of_state(state)
                self.ages[state, keyed] = self._of_finish(state)

    def insert(self, news: Iterable[NewJob], now: datetime) -> list[Enqueued]:
        """Store each job, or find the one that holds its id or its key (E6, E7, E9)."""
        jobs, keys, push, by_name = self.jobs, self.keys, self.lanes.push, self.by_name
        pending = self.pending
        pending.sweep()
        enter = pending.fresh.append
        answers = []
        for new in news:
            job_id, key = new.id, new.key
            holder = jobs.get(job_id)
            if holder is None and key is not None:
                held_by = keys.setdefault((new.name, key.kind, key.text), job_id)
                holder = jobs.get(held_by)  # none where the key was free
            if holder is not None:
                answers.append(answer(holder, created=False))
                continue
            if new.run_at is not None:
                run_at = in_utc(new.run_at)
            else:
                run_at = later(now, new.delay) if new.delay else now
            job = jobs[job_id] = pending_job(new, now, run_at)
            roll = by_name.get(new.name)
            if roll is None:
                roll = by_name[new.name] = self._of_name(new.name)
            roll.fresh.append(job_id)
            roll.live += 1
            enter(job_id)
            pending.live += 1
            push(job, now)
            answers.append(answer(job, created=True))
        return answers

    def restore(self, job: Job, now: datetime) -> str | None:
        """Keep a job of another store as it is (S13); answers who holds its key, and nothing is kept then."""
        if job.id in self.jobs:
            return None
        held_by = self.holder(job)
        if held_by is not None:
            return held_by
        if job.key is not None and (job.key.kind == "idempotency" or job.state is _PENDING):
            self.keys[job.name, job.key.kind, job.key.text] = job.id
        roll = self.by_name.get(job.name)
        if roll is None:
            roll = self.by_name[job.name] = self._of_name(job.name)
        roll.add(job.id)
        if job.finished_at is None:
            self.pend(job, now)
        else:
            self.finish(job, job.finished_at)
        return None

    def holder(self, job: Job) -> str | None:
        """Whose key would be in the way of this job of another store."""
        key = job.key
        if key is None or (job.state in FINISHED and key.kind != "idempotency"):
            return None
        return self.keys.get((job.name, key.kind, key.text))

    def ensure(self, interval: Interval, id: str, now: datetime) -> Enqueued | None:
        """Remember the interval, and put its copy back where none is unfinished, due when the last one was (T1 to T4)."""
        due = self.intervals.register(interval)
        key = interval.job.key
        if key is not None and (interval.job.name, key.kind, key.text) in self.keys:
            return None
        copy = replace(interval.job, id=id, run_at=now if due is None else due)
        (answer,) = self.insert([copy], now)
        if answer.created:
            self.intervals.remember_due(answer.job)
        return answer

    def pend(self, job: Job, now: datetime) -> None:
        """Keep a job that has become pending."""
        self.jobs[job.id] = job
        self.pending.add(job.id)
        self.lanes.push(job, now)

    def finish(self, job: Job, now: datetime) -> None:
        """Keep a job that is done or dead, and free a key that holds only as long as its job is unfinished (E7, T4)."""
        job_id, state, key = job.id, job.state, job.key
        self.jobs[job_id] = job
        keyed = False
        if key is not None:
            keyed = key.kind == "idempotency"
            if not keyed:
                self.free(job, key)
        by_id, by_time = self.finished[state, keyed], self.ages[state, keyed]
        by_id.fresh.append(job_id)
        by_id.live += 1
        by_time.fresh.append((now, job_id))
        by_time.live += 1

    def unfinish(self, job: Job) -> None:
        """Take note that the done or dead job is about to be another."""
        place = job.state, job.idempotency_key is not None
        self.finished[place].live -= 1
        self.ages[place].live -= 1

    def remove(self, job: Job) -> None:
        """Forget a job that is not running."""
        del self.jobs[job.id]
        if job.key is not None:
            self.free(job, job.key)
        if job.state is _PENDING:
            self.pending.live -= 1
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
        self.pending.sweep()
        for by_id in self.finished.values():
            by_id.sweep()
        for by_time in self.ages.values():
            by_time.sweep()

    def number(self, state: State) -> int:
        """How many jobs are in the state."""
        if state is State.RUNNING:
            return len(self.tokens)
        return self.pending.live if state is _PENDING else sum(self.finished[state, keyed].live for keyed in (False, True))

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
