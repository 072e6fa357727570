"""The driver, or a clear word about the extra that brings it."""

from __future__ import annotations

from treadle.core.errors import MissingExtra

try:
    import psycopg
except ImportError as error:
    raise MissingExtra(f"the Postgres store needs psycopg: install treadle[postgres] ({error})") from None

__all__ = ["psycopg"]
