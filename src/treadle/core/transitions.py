"""The rules: what an attempt becomes. Functions of values, with no clock, no store and no chance of their own."""

from __future__ import annotations

from typing import Protocol

from treadle.core.job import Job
from treadle.core.outcome import Dead, Outcome, Released, RetryAfter
from treadle.core.policies.limits import checked_delay
from treadle.core.policies.retry import Random, RetryPolicy
from treadle.core.policies.stopping import counts
from treadle.core.signals import CallFailed, GiveUp, Retry, Snooze

LEASE_EXPIRED = "visibility timeout exceeded"
MAX_ERROR = 500


class _Counted(Protocol):
    @property
    def attempts(self) -> int: ...
    @property
    def max_attempts(self) -> int | None: ...


def attempts_used_up(job: _Counted) -> bool:
    """Whether the attempt that the job is in was its last (E3)."""
    return job.max_attempts is not None and job.attempts >= job.max_attempts


def on_failure(job: Job, policy: RetryPolicy, error: BaseException, random: Random) -> Outcome:
    """What an attempt that raised becomes (E14, E16, E17)."""
    match error:
        case Snooze():
            return Released(error.delay)
        case GiveUp():
            return Dead(error_text(error))
        case Retry(delay=float(delay)) if not attempts_used_up(job):
            return RetryAfter(delay, error_text(error))
        case _:
            return on_failed_attempt(job, policy, error_text(error), random)


def on_failed_attempt(job: Job, policy: RetryPolicy, error: str, random: Random) -> Outcome:
    """What an attempt that failed with this error text becomes. Raises `InvalidArgument` for a policy's delay that is none."""
    if attempts_used_up(job):
        return Dead(error)
    return RetryAfter(checked_delay(policy.delay(job.attempts, random), "the retry delay"), error)


def on_expired(job: Job) -> Outcome:
    """What a job becomes whose lease ran out: claimable again at once, or dead at its last attempt (E21)."""
    return Dead(LEASE_EXPIRED) if attempts_used_up(job) else RetryAfter(0.0, LEASE_EXPIRED)


def asked_for(error: BaseException | None) -> bool:
    """Whether the handler itself said what is to become of its attempt, which holds during a stop too (E14, E24).

    A `CallFailed` says only that there was no good answer, as where the stop itself broke the call off.
    """
    return isinstance(error, (Retry, Snooze, GiveUp))


def on_interrupted(job: Job, reason: str) -> Outcome:
    """What a job becomes that was cut short through no fault of its own; from the third time on it counts (E24, P8)."""
    if not counts(job.interruptions + 1):
        return Released(interrupted=True)
    error = f"interrupted {job.interruptions + 1} times: {reason}"
    return Dead(error) if attempts_used_up(job) else RetryAfter(0.0, error)


def error_text(error: BaseException) -> str:
    """`Type: message`, at most 500 code points, without NUL or lone surrogates; the type alone if `str()` fails (E15).

    A `CallFailed` is its message alone: its text is the service's own, not a program's (F5).
    """
    if isinstance(error, CallFailed):
        return clipped_error(str(error))
    name = type(error).__name__
    try:
        message = str(error)
    except BaseException:  # it is the handler's own code, which may raise anything (E13)
        message = ""
    return clipped_error(f"{name}: {message}" if message else name)


def clipped_error(text: str) -> str:
    """The text as `last_error` may hold it (E15)."""
    clean = text.replace("\0", "").encode("utf-8", "replace").decode()
    return clean[:MAX_ERROR]
