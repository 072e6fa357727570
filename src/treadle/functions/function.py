"""A function: a name, and a place that answers HTTP (F1)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from treadle.core.errors import InvalidArgument
from treadle.core.policies.limits import FUNCTION_PREFIX, checked_int
from treadle.functions.fail_on import FailOn

PREFIX = FUNCTION_PREFIX
RESERVED = frozenset({"jobs", "cron"})
MAX_NAME = 64
MAX_URL = 2000
MAX_CONCURRENCY = 10_000
NAME_PATTERN = "[a-z0-9]+(-[a-z0-9]+)*"
Method = Literal["JOB", "POST"]

_NAME = re.compile(NAME_PATTERN + r"\Z", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9._-]+\Z|[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?\Z", re.ASCII)
_USER = re.compile(r"//.*@", re.DOTALL)
_NEVER_IN_A_URL = frozenset('"<>\\^`{|}')  # RFC 3986; servers read them in different ways


@dataclass(frozen=True, slots=True)
class Function:
    """A function as the service knows it.

    `url` is None for one that the service runs itself, from its functions folder. `method` is what a job is called with,
    `fail_on` which answers fail (None: none does), `concurrency` how many jobs of it one service process runs at once
    (None: as many as there are slots), and `secret` what its calls are signed with.
    """

    name: str
    secret: str = field(repr=False)
    url: str | None = None
    method: Method = "JOB"
    fail_on: FailOn | None = None
    concurrency: int | None = None
    active: bool = True

    @property
    def job_name(self) -> str:
        """What its jobs are named in the store."""
        return PREFIX + self.name


def checked_function_name(value: object, what: str = "the function's name") -> str:
    """A name by F1. Raises `InvalidArgument`."""
    if not isinstance(value, str) or len(value) > MAX_NAME or not _NAME.match(value):
        raise InvalidArgument(
            f"{what} must be 1 to {MAX_NAME} lower-case letters and digits, in parts joined by '-', such as 'send-report'; "
            f"not {str(value)[:80]!r}"
        )
    if value in RESERVED:
        raise InvalidArgument(f"{what} must not be 'jobs' or 'cron', which are reserved; choose another")
    return value


def checked_url(value: object) -> str:
    """Where a function answers: an http or https URL without query, fragment and credentials. Raises `InvalidArgument`."""
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value or len(value) > MAX_URL:
        raise InvalidArgument(
            f"the function's URL must be ASCII, without spaces, of at most {MAX_URL} characters: {_shown(value)}"
        )
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as error:
        raise InvalidArgument(f"the function's URL {_shown(value)} cannot be read: {str(error)[:80]}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise InvalidArgument(f"the function's URL must look like http://host:port or https://host/path, not {_shown(value)}")
    if not _NEVER_IN_A_URL.isdisjoint(value) or ("@" not in parts.netloc and not _HOST.match(parts.hostname)):
        raise InvalidArgument(f"the function's URL has a character that no URL may have there: {_shown(value)}")
    if parts.query or parts.fragment or "?" in value or "#" in value:
        raise InvalidArgument(
            f"the function's URL must have no query and no fragment; /jobs/ID is put behind it: {_shown(value)}"
        )
    if "@" in parts.netloc:
        raise InvalidArgument(
            "the function's URL must hold no user or password: calls are signed with the function's secret instead"
        )
    return value.rstrip("/")


def _shown(url: object) -> str:
    """The URL as an error may show it: short, and without a user and password."""
    return repr(_USER.sub("//***@", str(url))[:80])


def checked_method(value: object) -> Method:
    """`JOB`, or `POST` for servers that refuse unknown methods (F4). Raises `InvalidArgument`."""
    match value:
        case "JOB":
            return "JOB"
        case "POST":
            return "POST"
        case _:
            raise InvalidArgument(
                f"the method must be JOB, or POST for servers that refuse unknown methods; not {str(value)[:40]!r}"
            )


def checked_concurrency(value: object) -> int:
    """How many jobs of a function one process runs at once. Raises `InvalidArgument`."""
    return checked_int(value, "the function's concurrency", 1, MAX_CONCURRENCY)
