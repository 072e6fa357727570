"""The settings of the service as checked values, and the profile that they make (F6, F7)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from treadle.core.errors import InvalidArgument
from treadle.core.payload import MAX_PAYLOAD
from treadle.core.policies.limits import checked_int
from treadle.core.policies.retention import Retention
from treadle.core.policies.retry import Fixed
from treadle.core.profile import Profile
from treadle.functions.profile import DAY, FUNCTIONS, LEASE, MAX_ATTEMPTS, MAX_DELAY, RETENTION_DAYS, RETRY_DELAY, TIMEOUT

Value: TypeAlias = int | float | str
MetricsAccess = Literal["open", "keyed"]
LONGEST = MAX_DELAY  # seconds of a lease or a timeout
MOST_DAYS = 36_500.0
LARGEST_PAYLOAD = 1_073_741_824

_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?\Z", re.ASCII)


def _number(least: float, most: float, *, inclusive: bool = False) -> Callable[[str, object], Value]:
    """A check for plain numbers above `least`, or from it, to `most`; a whole one comes back as such."""

    def check(name: str, value: object) -> Value:
        number = _read(value)
        if not (least < number <= most or (inclusive and number == least)):
            bounds = f"from {least:g}" if inclusive else f"more than {least:g}"
            raise InvalidArgument(f"{name} must be a plain number, {bounds} and at most {most:,.0f}, not {_shown(value)}")
        return _plain(number)

    return check


def _plain(number: float) -> int | float:
    return int(number) if number.is_integer() else number


def _read(value: object) -> float:
    """The number, from what a command, an environment or a store has; NaN for what is none."""
    if isinstance(value, str):
        return float(value) if _NUMBER.match(value.strip()) else math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _whole(least: int, most: int) -> Callable[[str, object], Value]:
    def check(name: str, value: object) -> Value:
        number = _read(value)
        return checked_int(int(number) if number.is_integer() else value, name, least, most)

    return check


def _one_of(*words: str) -> Callable[[str, object], Value]:
    def check(name: str, value: object) -> Value:
        word = str(value).strip()
        if word not in words:
            raise InvalidArgument(f"{name} must be {' or '.join(words)}, not {_shown(value)}")
        return word

    return check


def _shown(value: object) -> str:
    return repr(str(value)[:40])


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: its name, the field of `ServiceSettings` that it fills, its default, and how a value of it is checked."""

    name: str
    field: str
    default: Value
    check: Callable[[str, object], Value]
    meaning: str

    def checked(self, value: object) -> Value:
        """The value as it is stored. Raises `InvalidArgument`."""
        return self.check(self.name, value)


SETTINGS: Mapping[str, Setting] = {
    one.name: one
    for one in (
        Setting(
            "JOB_RETRY_DELAY_SECS",
            "retry_delay",
            RETRY_DELAY,
            _number(0, MAX_DELAY, inclusive=True),
            "seconds between a failed attempt and the next one",
        ),
        Setting(
            "JOB_MAX_RETRIES",
            "max_attempts",
            FUNCTIONS.max_attempts,
            _whole(1, MAX_ATTEMPTS),
            "attempts in all, the first included, of a job that does not say",
        ),
        Setting(
            "JOB_LEASE_SECS",
            "lease",
            LEASE,
            _number(0, LONGEST),
            "seconds from the start of a call after which a job that still runs is taken back",
        ),
        Setting("JOB_TIMEOUT_SECS", "timeout", TIMEOUT, _number(0, LONGEST), "seconds that a call may take"),
        Setting(
            "JOB_RETENTION_DAYS",
            "retention_days",
            RETENTION_DAYS,
            _number(0, MOST_DAYS),
            "days that completed jobs are kept; dead ones stay",
        ),
        Setting("METRICS", "metrics", "open", _one_of("open", "keyed"), "whether /metrics is open, or wants a key"),
        Setting(
            "MAX_PAYLOAD_BYTES",
            "max_payload",
            MAX_PAYLOAD,
            _whole(1, LARGEST_PAYLOAD),
            "the largest payload, in bytes of compact JSON",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What the service goes by; durations are seconds, and `max_attempts` is the total, the first attempt included.

    Raises `InvalidArgument` for a bad one, and where the timeout is not less than the lease (F7).
    """

    retry_delay: float = RETRY_DELAY
    max_attempts: int = FUNCTIONS.max_attempts
    lease: float = LEASE
    timeout: float = TIMEOUT
    retention_days: float = RETENTION_DAYS
    metrics: MetricsAccess = "open"
    max_payload: int = MAX_PAYLOAD

    def __post_init__(self) -> None:
        for setting in SETTINGS.values():
            setting.checked(getattr(self, setting.field))
        if self.timeout >= self.lease:
            timeout, lease = _plain(float(self.timeout)), _plain(float(self.lease))
            raise InvalidArgument(
                f"JOB_TIMEOUT_SECS={timeout} must be less than JOB_LEASE_SECS={lease}, or a job would be taken back "
                "while its call still runs: make the lease longer, or the timeout shorter"
            )

    @classmethod
    def of(cls, values: Mapping[str, Value]) -> ServiceSettings:
        """The settings with these values, by name; those left out have their defaults."""
        return cls(**cast("dict[str, Any]", {SETTINGS[name].field: value for name, value in values.items()}))


def named_setting(name: str) -> Setting:
    """The setting of that name. Raises `InvalidArgument`."""
    found = SETTINGS.get(name)
    if found is None:
        raise InvalidArgument(f"{name[:40]!r} is no setting; they are {', '.join(SETTINGS)}")
    return found


def profile(settings: ServiceSettings) -> Profile:
    """The policies of the queue under these settings."""
    kept = settings.retention_days * DAY
    return replace(
        FUNCTIONS,
        max_attempts=settings.max_attempts,
        retry=Fixed(settings.retry_delay),
        lease=settings.lease,
        timeout=settings.timeout,
        max_run=settings.lease,
        retention=Retention(done=kept, dead=None, keyed=kept),
    )
