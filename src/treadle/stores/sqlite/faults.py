"""What went wrong in SQLite or the file system, as an error for people."""

from __future__ import annotations

import errno
import sqlite3

from treadle.core.errors import (
    InvalidArgument,
    SchemaMissing,
    SchemaTooNew,
    StoreError,
    StoreFull,
    StoreUnavailable,
    TreadleError,
)
from treadle.core.transfer import fenced

_PRIMARY = 0xFF  # extended result codes keep the primary code in the lowest byte
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_CLOSED_OFF = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_LOST = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}


def store_error(error: BaseException, path: str) -> BaseException:
    """The error of treadle that says this to the caller, in one line; what is no fault of the database stays itself."""
    origin = getattr(error, "orig", None)
    match origin if isinstance(origin, sqlite3.Error) else error:  # SQLAlchemy wraps the driver's errors
        case TreadleError():
            return error
        case UnicodeEncodeError() as fault:
            return InvalidArgument(f"text for the store has an unpaired surrogate {fault.object[fault.start]!r}; remove it")
        case OverflowError():
            return InvalidArgument("a number for the store is beyond 64 bits; store it as text")
        case OSError() as fault:
            kind = StoreFull if fault.errno in (errno.ENOSPC, errno.EDQUOT) else StoreUnavailable
            return kind(f"the SQLite store {path} cannot be opened: {fault.strerror or fault}: {fault.filename or path}")
        case sqlite3.Error() as fault:
            return _of_sqlite(fault, path)
        case _:
            return error


def code(error: BaseException) -> int | None:
    """SQLite's primary result code, where there is one."""
    number = getattr(error, "sqlite_errorcode", None)
    return number & _PRIMARY if isinstance(number, int) else None


def loses_connection(error: BaseException) -> bool:
    """Whether a connection that met this error should not be used again."""
    return code(error) in _LOST


def _of_sqlite(error: sqlite3.Error, path: str) -> TreadleError:
    text = " ".join(str(error).split())
    if (refused := fenced(text)) is not None:
        return refused
    number = code(error)
    if number in _BUSY:
        return StoreUnavailable(
            f"the SQLite store {path} is held locked by another program; end its transaction and call again"
        )
    if number == sqlite3.SQLITE_FULL:
        return StoreFull(f"the SQLite store {path} has no room left on its disk; nothing was written")
    if number in _CLOSED_OFF:
        return StoreUnavailable(f"the SQLite store {path} cannot be opened for writing: {text}")
    if number == sqlite3.SQLITE_NOTADB:
        return StoreError(f"{path} is a file but no SQLite database; choose another path")
    if number == sqlite3.SQLITE_CORRUPT:
        return StoreError(f"the SQLite store {path} is damaged ({text}); restore it from a backup")
    if "no such table: treadle_" in text or "no such table: main.treadle_" in text:
        return SchemaMissing(f"{path} holds no treadle tables; open the store once, or run `treadle migrate`")
    if "no such index: treadle_" in text or text == "no query solution":
        return SchemaTooNew(
            f"the SQLite store {path} lacks what this treadle reads ({text}): a newer one has migrated it; upgrade this process"
        )
    return StoreError(f"the SQLite store {path} failed: {text}")
