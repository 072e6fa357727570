"""What a value may be: each check returns the value as it will be stored, or raises `InvalidArgument` naming the limit."""

from __future__ import annotations

import functools
import math
from datetime import UTC, datetime, timedelta

from treadle.core.errors import InvalidArgument

MAX_NAME = 128
MAX_KEY = 255
MAX_ATTEMPTS = 10_000
MIN_PRIORITY, MAX_PRIORITY = -1000, 1000
FAR_FUTURE = datetime.max.replace(tzinfo=UTC)
FUNCTIONS_QUEUE = "functions"
FUNCTION_PREFIX = "function:"  # of the names of functions' jobs and cron entries
PLUGIN_QUEUE_PREFIX = "plugin:"
RESERVED_PREFIXES = (PLUGIN_QUEUE_PREFIX, FUNCTION_PREFIX)


def checked_text(value: object, what: str, limit: int) -> str:
    """Text of 1 to `limit` code points: no white space or U+FEFF at its ends, no NUL, no unpaired surrogate (E8)."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{what} must be text, not {type(value).__name__}: {_shown(value)}")
    if not 1 <= len(value) <= limit:
        raise InvalidArgument(f"{what} has {len(value)} characters; it must have 1 to {limit}: {_shown(value)}")
    if value.isascii() and value.isprintable() and value[0] != " " and value[-1] != " ":
        return str(value)
    if value.strip() != value or value.strip("\ufeff") != value:
        raise InvalidArgument(f"{what} must not begin or end with white space: {_shown(value)}")
    if "\0" in value:
        raise InvalidArgument(f"{what} must not contain NUL: {_shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{what} must not contain an unpaired surrogate: {_shown(value)}") from None
    return str(value)


def checked_name(value: object, what: str = "the job name") -> str:
    """A name of 1 to 128 code points without a reserved prefix (E1)."""
    # Names repeat and are checked at every enqueue, so that what passed is remembered.
    return _checked_name(value, what) if type(value) is str else _uncached_name(value, what)


def _uncached_name(value: object, what: str) -> str:
    name = checked_text(value, what, MAX_NAME)
    if name.startswith(RESERVED_PREFIXES):
        raise InvalidArgument(f"{what} must not begin with 'plugin:' or 'function:', which are reserved: {_shown(name)}")
    return name


_checked_name = functools.lru_cache(maxsize=1024)(_uncached_name)


def checked_queue(value: object) -> str:
    """A queue name that the library may use: any but those of the functions service and of plugins (E1)."""
    queue = checked_text(value, "the queue", MAX_NAME)
    if owned_by_a_face(queue) or queue.startswith(RESERVED_PREFIXES):
        raise InvalidArgument(f"the queue {_shown(queue)} belongs to the functions service or to a plugin; choose another name")
    return queue


def owned_by_a_face(queue: str) -> bool:
    """Whether the queue belongs to the functions service or a plugin, so that library workers leave it alone."""
    return queue == FUNCTIONS_QUEUE or queue.startswith(PLUGIN_QUEUE_PREFIX)


def checked_key(value: object, what: str) -> str:
    """An idempotency or dedupe key (E8)."""
    return checked_text(value, what, MAX_KEY)


def checked_priority(value: object) -> int:
    """A whole number from -1000 to 1000; higher goes first (E1)."""
    return checked_int(value, "priority", MIN_PRIORITY, MAX_PRIORITY)


def checked_max_attempts(value: object) -> int:
    """The total of attempts, first one included: 1 to 10,000 (E3, E4)."""
    return checked_int(value, "max_attempts", 1, MAX_ATTEMPTS)


def checked_int(value: object, what: str, low: int, high: int) -> int:
    """A whole number from `low` to `high`, and no boolean."""
    if type(value) is not int:
        raise InvalidArgument(f"{what} must be a whole number from {low:,} to {high:,}, not {_shown(value)}")
    if not low <= value <= high:
        raise InvalidArgument(f"{what} must be from {low:,} to {high:,}, not {_shown(value)}")
    return value


def seconds(value: object, what: str) -> float:
    """A finite duration in seconds, from a number or a timedelta; its sign is for the caller to judge."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidArgument(f"{what} must be seconds or a timedelta, not {type(value).__name__}: {_shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidArgument(f"{what} must be a finite number of seconds, not {_shown(value)}")
    return number


def checked_delay(value: object, what: str = "delay") -> float:
    """A delay of zero or more seconds, short enough that a date can hold it (E4)."""
    delay = seconds(value, what)
    if delay < 0:
        raise InvalidArgument(f"{what} must not be negative: {_shown(value)}")
    if delay > 200_000_000_000:
        raise InvalidArgument(f"{what} is beyond the year 9999: {_shown(value)} seconds")
    return delay


def checked_duration(value: object, what: str) -> float:
    """A duration greater than zero."""
    duration = checked_delay(value, what)
    if duration <= 0:
        raise InvalidArgument(f"{what} must be greater than zero: {_shown(value)}")
    return duration


def checked_moment(value: object, what: str = "run_at") -> datetime:
    """An aware datetime, given back in UTC (E4)."""
    if not isinstance(value, datetime):
        raise InvalidArgument(f"{what} must be an aware datetime, not {type(value).__name__}: {_shown(value)}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidArgument(f"{what} is a naive datetime: {value.isoformat()}; give it a time zone, such as datetime.UTC")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidArgument(f"{what} is outside the years 1 to 9999 in UTC: {value.isoformat()}") from None


def _shown(value: object) -> str:
    """The value as an error may show it: short, and on one line."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else f"{text[:77]}..."
