"""Errors: one base, and a class for each thing that a caller can do about it.

Every error has a stable `code`, and a message of one line that names the value and the limit.
"""

from __future__ import annotations


class TreadleError(Exception):
    """The base of every error that treadle raises on purpose."""

    code = "error"


class InvalidArgument(TreadleError, ValueError):
    """A value is refused, and nothing was stored: correct the value and call again (E1, E4, E5, E8, T2)."""

    code = "invalid_argument"


class InvalidPayload(TreadleError, ValueError):
    """A stored payload does not fit the type that its handler takes; the attempt fails (E11)."""

    code = "invalid_payload"


class WrongDatabase(InvalidArgument):
    """The connection handed in belongs to another database than the store's (E10)."""

    code = "wrong_database"


class NotFound(TreadleError, LookupError):
    """There is no job, schedule or document of that name or id."""

    code = "not_found"


class Conflict(TreadleError):
    """The thing exists, but its state forbids the change: look at it again before repeating the call."""

    code = "conflict"


class MissingExtra(TreadleError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    code = "missing_extra"


class StoreError(TreadleError):
    """The store could not do what was asked of it."""

    code = "store_error"


class StoreUnavailable(StoreError):
    """The store cannot be reached at the moment; the call may be repeated, since ids are made by the caller."""

    code = "store_unavailable"


class StoreFull(StoreError):
    """The store has no room (disk, memory); nothing was half written."""

    code = "store_full"


class SchemaMissing(StoreError):
    """The store holds no treadle tables yet: run `treadle migrate`, or pass `migrate=True` (S4)."""

    code = "schema_missing"


class SchemaTooNew(StoreError):
    """The store was migrated by a newer treadle than this one: upgrade this process (S4)."""

    code = "schema_too_new"


class StoreMoved(StoreError):
    """What the store held was moved to another one, or is on its way there: use that one; the message names it (S13)."""

    code = "store_moved"
