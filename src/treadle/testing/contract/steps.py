"""The steps of a random history: each is an operation with its arguments, done to both twins and compared (S3)."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields, replace
from typing import Any, ClassVar, Protocol

from treadle.core.filter import JobFilter
from treadle.core.job import Key, State
from treadle.core.outcome import Outcome
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.schedule import Interval
from treadle.core.store import Claim, Demand, Ending, Reclaim
from treadle.core.transitions import on_expired
from treadle.testing.contract import expect
from treadle.testing.contract.twins import Twins

QUEUES = ("default", "q", "functions")


class Step(Protocol):
    """An operation that is still to be done."""

    def do(self, t: Twins) -> None:
        """Do it to the store and to the model, and compare the answers."""
        ...


class _Told:
    """Shows a step as it is written: arguments that have their default are left out of a failing history."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __repr__(self) -> str:
        shown = [f"{one.name}={value!r}" for one in fields(self) if (value := getattr(self, one.name)) != one.default]
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, slots=True, repr=False)
class Enqueue(_Told):
    """A batch of likes, so that keys meet within it too."""

    name: str
    copies: int = 1
    queue: str = "default"
    key: Key | None = None
    priority: int = 0
    delay: float = 0.0
    max_attempts: int | None = None

    def do(self, t: Twins) -> None:
        """Enqueue them in one call."""
        for number in range(self.copies):
            new = t.make.new(
                self.name,
                {"n": number},
                queue=self.queue,
                key=self.key,
                priority=self.priority,
                delay=self.delay,
                max_attempts=self.max_attempts,
            )
            t.enqueued.append(new)
        _enqueue(t, self.copies, "enqueue answers the new job, or the holder of its key")


@dataclass(frozen=True, slots=True, repr=False)
class EnqueueAgain(_Told):
    """The latest batch once more, as after a lost answer."""

    copies: int

    def do(self, t: Twins) -> None:
        """Enqueue the same jobs again."""
        _enqueue(t, min(self.copies, len(t.enqueued)), "a repeated enqueue answers what is stored")


def _enqueue(t: Twins, copies: int, words: str) -> None:
    batch = t.enqueued[len(t.enqueued) - copies :]
    answers = t.run(t.store.enqueue(batch, now=t.now))
    for new, answer in zip(batch, answers, strict=True):
        job, created = t.model.enqueue(new, t.now)
        expect.equal((answer.id, answer.created), (job.id, created), words)
        expect.same_job(answer.job, job, "enqueue answers the job as it is stored", but={"failures"})


@dataclass(frozen=True, slots=True, repr=False)
class ClaimJobs(_Told):
    """A claim, and a look at what its token holds."""

    demand: Demand
    lease: float = 60.0
    worker: str = "w1"

    def do(self, t: Twins) -> None:
        """Claim for one demand."""
        token = t.make.token()
        claimed = t.run(t.store.claim(token, [self.demand], worker=self.worker, lease=self.lease, now=t.now))
        expected, next_in = t.model.claim(token, self.demand, self.worker, self.lease, t.now)
        expect.same_ids(claimed.jobs, expected, f"a claim takes the best due jobs of {self.demand}")
        for job, wanted in zip(claimed.jobs, expected, strict=True):
            expect.same_job(job, wanted, "a claim answers the job as it runs now", but={"failures"})
        if len(expected) < self.demand.limit:
            expect.equal(claimed.next_in, next_in, "next_in is exact where fewer jobs came than were asked for")
        held = [claim for claim, _ in t.run(t.store.held([token]))]
        expect.equal(set(held), {Claim(job.id, token) for job in expected}, "held answers what a claim took")
        t.claims += sorted(held)


@dataclass(frozen=True, slots=True, repr=False)
class Finish(_Told):
    """A result under a claim of some time ago, that holds or does not."""

    back: int
    outcome: Outcome

    def do(self, t: Twins) -> None:
        """Finish, with the next copy where the job belongs to an interval."""
        claim = t.claim(self.back)
        following = t.following(claim.id)
        took = t.run(t.store.finish([Ending(claim, self.outcome, following)], now=t.now))
        held = t.model.finish(claim, self.outcome, following, t.now)
        expect.equal(took, {claim} if held else set(), "finish answers the claim exactly if it held")


@dataclass(frozen=True, slots=True, repr=False)
class FinishOrRenewAsAnother(_Told):
    """A result and a renewal for one job under the token of another: most often that changes nothing."""

    back: int
    other: int
    outcome: Outcome

    def do(self, t: Twins) -> None:
        """Renew, then finish."""
        claim = Claim(t.claim(self.back).id, t.claim(self.other).token)
        renewed = t.run(t.store.renew([claim], 60.0, now=t.now))
        expect.equal(
            renewed, {claim} if t.model.renew(claim, 60.0, t.now) else set(), "renew answers the claim exactly if it held"
        )
        took = t.run(t.store.finish([Ending(claim, self.outcome)], now=t.now))
        held = t.model.finish(claim, self.outcome, None, t.now)
        expect.equal(took, {claim} if held else set(), "finish answers the claim exactly if it held")


@dataclass(frozen=True, slots=True, repr=False)
class Renew(_Told):
    """A renewal under a claim of some time ago."""

    back: int
    lease: float

    def do(self, t: Twins) -> None:
        """Renew."""
        claim = t.claim(self.back)
        took = t.run(t.store.renew([claim], self.lease, now=t.now))
        held = t.model.renew(claim, self.lease, t.now)
        expect.equal(took, {claim} if held else set(), "renew answers the claim exactly if it held")


@dataclass(frozen=True, slots=True, repr=False)
class Advance(_Told):
    """Time goes by."""

    seconds: float

    def do(self, t: Twins) -> None:
        """Move the clock of both."""
        t.clock.advance(self.seconds)


@dataclass(frozen=True, slots=True, repr=False)
class LookForExpired(_Told):
    """A look, some time later, at the leases that are past, for a reclaim now or after other steps."""

    after: float
    limit: int

    def do(self, t: Twins) -> None:
        """Wait, look, and keep what was seen."""
        t.clock.advance(self.after)
        found = t.run(t.store.expired(self.limit, now=t.now))
        wanted = t.model.expired(self.limit, t.now)
        expect.same_ids(
            [one.job for one in found], wanted, "expired answers running jobs whose lease is past, longest past first"
        )
        for one in found:
            expect.that(t.model.held(one.claim) is not None, "expired answers the claim that holds the job", one.claim)
        t.seen += found


@dataclass(frozen=True, slots=True, repr=False)
class ReclaimSeen(_Told):
    """An expired job is taken back that was seen some time ago."""

    back: int

    def do(self, t: Twins) -> None:
        """Reclaim, by the rule of the engine."""
        one = t.sighting(self.back)
        if one is None:
            return
        outcome, following = on_expired(one.job), t.following(one.claim.id)
        took = t.run(t.store.reclaim([Reclaim(one, outcome, following)], now=t.now))
        held = t.model.reclaim(one.claim, one.job, outcome, following, t.now)
        expect.equal(took, {one.claim} if held else set(), "reclaim takes a job exactly if its lease is unchanged and past")


@dataclass(frozen=True, slots=True, repr=False)
class Redrive(_Told):
    """Dead letters are sent round again."""

    which: JobFilter
    policy: RedrivePolicy
    limit: int | None = None

    def do(self, t: Twins) -> None:
        """Redrive."""
        answer = t.run(t.store.redrive(self.which, self.policy, limit=self.limit, now=t.now))
        expected = t.model.redrive(self.which, self.policy, self.limit, t.now)
        expect.equal((list(answer.revived), list(answer.dropped)), expected, "redrive answers the jobs revived and dropped")


@dataclass(frozen=True, slots=True, repr=False)
class RunNow(_Told):
    """Pending jobs are hurried."""

    which: JobFilter

    def do(self, t: Twins) -> None:
        """Run now."""
        number = t.run(t.store.run_now(self.which, now=t.now))
        expect.equal(number, t.model.run_now(self.which, t.now), "run_now answers how many pending jobs matched")


@dataclass(frozen=True, slots=True, repr=False)
class Delete(_Told):
    """Jobs are deleted."""

    which: JobFilter
    limit: int | None = None

    def do(self, t: Twins) -> None:
        """Delete."""
        number = t.run(t.store.delete(self.which, limit=self.limit, now=t.now))
        expect.equal(number, t.model.delete(self.which, self.limit, t.now), "delete answers how many jobs it deleted")


@dataclass(frozen=True, slots=True, repr=False)
class Ensure(_Told):
    """An interval is registered, or registered again."""

    name: str
    seconds: float

    def do(self, t: Twins) -> None:
        """Ensure."""
        interval = Interval.of(self.seconds, replace(t.make.new(self.name, "copy"), id=""))
        copy_id = t.make.id()
        [answer] = t.run(t.store.ensure([(interval, copy_id)], now=t.now))
        copy = t.model.ensure(interval, copy_id, t.now)
        expect.equal(answer and answer.id, copy and copy.id, "ensure answers the copy that it put back, None if one was there")


@dataclass(frozen=True, slots=True, repr=False)
class Look(_Told):
    """A look by a filter, and at the sums."""

    which: JobFilter
    limit: int

    def do(self, t: Twins) -> None:
        """Find, count, stats, pending_names and due."""
        expected = list(reversed(t.model.matching(self.which, t.now)))
        found = t.run(t.store.find(self.which, limit=self.limit, now=t.now))
        expect.same_ids(found, expected[: self.limit], f"find answers {self.which}")
        expect.equal(t.run(t.store.count(self.which, now=t.now)), len(expected), f"count counts {self.which}")
        expect.equal(t.run(t.store.stats(now=t.now)), t.model.stats(), "stats count what is stored")
        waiting = [job for job in t.model.jobs if job.state is State.PENDING]
        names = sorted({job.name for job in waiting if job.queue != "functions"})
        expect.equal(t.run(t.store.pending_names()), names, "pending_names are those of pending jobs")
        due = {job.queue for job in waiting if job.run_at <= t.now}
        expect.equal(t.run(t.store.due(QUEUES, now=t.now)), due, "due answers the queues with claimable jobs")
