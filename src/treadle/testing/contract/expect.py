"""Comparisons whose failures say in words what the contract asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeVar

from treadle.core.errors import InvalidArgument
from treadle.core.job import Job, State
from treadle.core.payload import decode, encode
from treadle.core.store import Tally

T = TypeVar("T")
_FIELDS = tuple(field.name for field in fields(Job))


def that(holds: bool, words: str, got: object = None) -> None:
    """Fail with the sentence that should have been true, and what was found instead."""
    __tracebackhide__ = True
    if not holds:
        found = "" if got is None else f"; got {_shown(got)}"
        raise AssertionError(f"the contract asks: {words}{found}")


def equal(actual: object, expected: object, words: str) -> None:
    """Fail where the two differ, with the sentence that should have been true."""
    __tracebackhide__ = True
    that(actual == expected and type(actual) is type(expected), f"{words}; expected {_shown(expected)}", actual)


def one(things: Sequence[T], words: str) -> T:
    """The only one of them; fail where there is none or more."""
    __tracebackhide__ = True
    that(len(things) == 1, f"{words}; expected one", things)
    return things[0]


def same_json(actual: str, expected: str, words: str) -> None:
    """Fail where two JSON texts do not mean exactly the same: types, key order and the sign of zero count (E5)."""
    __tracebackhide__ = True
    that(meaning(actual) == meaning(expected), f"{words}; expected {_shown(expected)}", actual)


def same_job(actual: Job, expected: Job, words: str, *, but: Iterable[str] = ()) -> None:
    """Fail where a field differs, naming each; the payload is compared by what it means, failures as a sequence."""
    __tracebackhide__ = True
    left_out = set(but)
    if unknown := left_out.difference(_FIELDS):
        raise InvalidArgument(f"a job has no field {sorted(unknown)}")
    wrong = [
        f"{name} should be {_shown(_value(expected, name))} and is {_shown(_value(actual, name))}"
        for name in _FIELDS
        if name not in left_out and _value(actual, name) != _value(expected, name)
    ]
    that(not wrong, f"{words}; of job {expected.id}: {'; '.join(wrong)}")


def same_ids(jobs: Iterable[Job], expected: Iterable[Job], words: str) -> None:
    """Fail where the jobs are not those expected, in that order; shows names, which tests choose to be telling."""
    __tracebackhide__ = True
    got, wanted = list(jobs), list(expected)
    that(
        [job.id for job in got] == [job.id for job in wanted],
        f"{words}; expected, in this order, {_names(wanted)}",
        _names(got),
    )


def same_tally(actual: Tally, jobs: Iterable[Job], words: str) -> None:
    """Fail where the tally is not what counting these jobs one by one gives, naming what differs."""
    __tracebackhide__ = True
    counts: Counter[object] = Counter()
    oldest: dict[object, datetime] = {}
    for job in jobs:
        counts[job.queue, job.name, job.state] += 1
        if job.state is State.PENDING:
            oldest[job.queue] = min(job.run_at, oldest.get(job.queue, job.run_at))
    wrong = [*_differing(actual.counts, counts), *_differing(actual.oldest, oldest)]
    that(not wrong, f"{words}; {'; '.join(wrong)}")


def meaning(text: str) -> str:
    """One text for everything that means the same JSON: compact, keys in their order."""
    return encode(decode(text), limit=1 << 30)


def _value(job: Job, name: str) -> object:
    value = getattr(job, name)
    if name == "payload_json":
        return meaning(value)
    return tuple(value) if name == "failures" else value


def _differing(actual: Mapping[Any, object], expected: Mapping[Any, object]) -> list[str]:
    places = sorted({*actual, *expected})
    return [
        f"for {_shown(place)} it should have {expected.get(place)} and has {actual.get(place)}"
        for place in places
        if actual.get(place) != expected.get(place) or (place in actual) != (place in expected)
    ]


def _names(jobs: list[Job]) -> str:
    return ", ".join(f"{job.name}:{job.id[-4:]}" for job in jobs) or "no job"


def _shown(value: object) -> str:
    text = str(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= 600 else f"{text[:600]}... ({len(text):,} characters)"
