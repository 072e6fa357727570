"""Driver errors as treadle's own: what the caller can do about each (S6)."""

from __future__ import annotations

import re

from treadle.core.errors import InvalidArgument, SchemaMissing, StoreError, StoreFull, StoreUnavailable, TreadleError
from treadle.core.transfer import fenced
from treadle.stores.postgres.driver import psycopg

# SQLSTATEs, or their classes. A read-only server is one that is being failed over from.
_UNAVAILABLE = ("08", "57P", "53300", "25006", "55006", "40", "55P03", "57014", "XX")
_FULL = ("53100", "53200", "53400")
_DAMAGED = ("58", "XX001", "XX002")  # files that cannot be read or written, data or an index that make no sense
_MISSING = ("42P01", "3F000")
_REFUSED = ("22", "54")

# What the driver says of a connection that could not be made, without what is ours to say, and with what helps.
_ASIDES = ("Is the server running", "This probably means", "before or while processing")
_PREAMBLE = re.compile(r"^.*failed: |^- |^(FATAL|ERROR): +")
_REMEDIES = {
    "^password|no password": "check user and password in the URL",
    "^role .* does not exist": "check the user in the URL",
    "^database .* does not exist": "create it, or correct the URL",
    "Connection refused": "does the server run there?",
    "resolve|idna": "check the host in the URL",
    "closed the connection": "is it a Postgres server?",
}


def mapped(error: BaseException, schema: str) -> TreadleError:
    """The error that a caller sees for one of a driver, of whatever driver: by SQLSTATE, else by what the driver calls it."""
    state, text = _state(error), _first_line(error)
    if (refused := fenced(text)) is not None:
        return refused
    if state is None:
        if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError, OSError)):
            return StoreUnavailable(f"the connection to Postgres was lost: {text}")
        if isinstance(error, psycopg.DataError):
            return InvalidArgument(f"Postgres cannot hold a value: {text}")
        return StoreError(f"Postgres: {text}")
    if state.startswith(_MISSING):
        return missing(schema)
    if state.startswith(_FULL):
        return StoreFull(f"Postgres has no room; nothing was stored: {text}")
    if state.startswith(_DAMAGED):
        return StoreError(f"Postgres cannot read or write its files: {text} ({state}): see the server's log")
    if state.startswith(_UNAVAILABLE):
        return StoreUnavailable(f"Postgres cannot answer at the moment: {text}")
    if state.startswith(_REFUSED):
        return InvalidArgument(f"Postgres refuses a value: {text}")
    if state == "42501":
        return StoreError(f"Postgres: {text}: grant this user the right, or migrate as the one who has it")
    return StoreError(f"Postgres: {text} ({state})")


def unreachable(place: str, error: BaseException) -> StoreUnavailable:
    """The error for a server that lets nobody in: the last word of the driver, which may have tried several addresses."""
    lines = [line.strip() for line in str(error).splitlines()]
    reason = next((line for line in reversed(lines) if line and not line.startswith(_ASIDES)), type(error).__name__)
    while shorter := _PREAMBLE.match(reason):
        reason = reason[shorter.end() :]
    remedy = next((f"; {remedy}" for sign, remedy in _REMEDIES.items() if re.search(sign, reason)), "")
    return StoreUnavailable(f"cannot connect to Postgres at {place}: {reason[:300]}{remedy}")


def missing(schema: str) -> SchemaMissing:
    """The error for a database without the tables."""
    return SchemaMissing(
        f"the database has no treadle tables in its schema {schema!r}: run `treadle migrate`, "
        "or open the store with migrate=True"
    )


def lost(error: BaseException) -> bool:
    """Whether the connection is gone or of no use: the server was about to end it, or takes no writes any more."""
    state = _state(error)
    return (state is None and isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError, OSError))) or (
        state is not None and state.startswith(("08", "57P", "25006"))
    )


def undone(error: BaseException) -> bool:
    """Whether the server rolled back for the sake of others: repeating the whole transaction is right."""
    return (_state(error) or "").startswith(("40001", "40P01"))


def _state(error: BaseException) -> str | None:
    """The SQLSTATE: psycopg and asyncpg name it sqlstate, psycopg2 pgcode, and SQLAlchemy wraps the error of its driver."""
    inner = getattr(error, "orig", None) or error
    for name in ("sqlstate", "pgcode"):
        state = getattr(inner, name, None)
        if isinstance(state, str):
            return state
    cause = inner.__cause__
    return _state(cause) if cause is not None and cause is not error else None


def _first_line(error: BaseException) -> str:
    inner = getattr(error, "orig", None) or error
    return (str(inner).strip().splitlines() or [type(inner).__name__])[0][:300]
