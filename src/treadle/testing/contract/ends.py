"""Ends of a move, for the contract: marks, and things of another store that are on their way here (S13)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from treadle.core.cron import Cron
from treadle.core.job import Failure, Job, Key, State
from treadle.core.schedule import Interval, Schedule
from treadle.core.transfer import Counts, Mark, Movable, Side, Stage
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.factory import uuid7

OTHER = "redis://there:6379/0 the 'second' — ü"
FILLING = Mark("move-1", Side.TARGET, Stage.SEALED, OTHER, base=Counts())


def movable(t: Trial) -> Movable:
    """The store, if it can be an end of a move; else the test is skipped."""
    if not isinstance(t.store, Movable):
        pytest.skip("this store is no end of a move: it has not what `Transfer` asks for")
    return t.store


async def marked(t: Trial, mark: Mark | None) -> Movable:
    """The store with that mark in place of what it has."""
    store = movable(t)
    put = await store.put_mark(mark, expect=await store.get_mark())
    expect.equal(put, True, "a mark is put over the one that is there, where no job runs")
    return store


def source(stage: Stage) -> Mark:
    """The mark of a source."""
    return Mark("move-1", Side.SOURCE, stage, OTHER)


def job(number: int, name: str, state: State, at: datetime, **changes: object) -> Job:
    """A job of another store."""
    base = Job(
        id=uuid7(1_000_000 + number),
        queue="default",
        name=name,
        payload_json='{"a":[1,"é"]}',
        state=state,
        priority=0,
        run_at=at,
        created_at=at,
        finished_at=None if state is State.PENDING else at,
    )
    return replace(base, **changes)  # type: ignore[arg-type]  # fields of a job, by name


def jobs(t: Trial) -> list[Job]:
    """One of each kind that can come along."""
    failures = (
        Failure(1, "w-1", t.at(-90.000001), t.at(-80), "ValueError: nö\nno"),
        Failure(2, "w-2", t.at(-70), t.at(-60), "visibility timeout exceeded"),
    )
    return [
        job(1, "fresh", State.PENDING, t.at(-100), created_at=t.at(-200), priority=-1000, queue="mail"),
        job(2, "later", State.PENDING, t.at(3600.000001), key=Key("dedupe", "d:1"), max_attempts=7, payload_json='"\\u0000"'),
        job(
            3,
            "failing",
            State.PENDING,
            t.at(5),
            attempts=2,
            max_attempts=9,
            interruptions=2,
            started_at=t.at(-70),
            last_error=failures[1].error,
            failures=failures,
            key=Key("idempotency", "i:1"),
        ),
        job(4, "tick", State.PENDING, t.at(-1), schedule="every:tick", key=Key("schedule", "every:tick")),
        job(
            5,
            "dead",
            State.DEAD,
            t.at(-50),
            attempts=2,
            max_attempts=2,
            started_at=t.at(-70),
            finished_at=t.at(-60),
            last_error=failures[1].error,
            failures=failures,
            key=Key("dedupe", "d:2"),
            queue="functions",
            payload_json='"' + "x" * 70_000 + '"',
        ),
        job(
            6, "done", State.DONE, t.at(-50), attempts=1, max_attempts=5, started_at=t.at(-49), finished_at=t.at(-48),
            note="200", key=Key("idempotency", "i:1"), priority=1000,
        ),
    ]  # fmt: skip


def schedule(t: Trial, name: str = "nightly") -> Schedule:
    """A schedule of another store."""
    wanted = Schedule.of(name, Cron("0 3 * * *", "Europe/Berlin"), t.new("clean", {"ключ": 1}))
    return replace(wanted, next_at=t.at(60), last_at=t.at(-60.5), paused=True, revision=41)


def interval(t: Trial, name: str = "tick") -> Interval:
    """An interval, and its template without an id."""
    return Interval.of(2.5, replace(t.new(name, [1]), id=""))
