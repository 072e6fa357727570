"""The SQLite store: one file, many processes, nothing to install."""

from treadle.stores.sqlite.adapter import SQLiteStore

__all__ = ["SQLiteStore"]
