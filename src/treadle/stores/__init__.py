"""The stores: the only SQL, the only Lua, the only database drivers. A driver is imported when its URL is used (S1)."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import parse_qsl

from treadle.core.errors import InvalidArgument, MissingExtra
from treadle.core.store import Store

DEFAULT_URL = "sqlite:data/tasks.db"
FORMS = "memory:, sqlite:PATH, postgres://..., redis://..."
POSTGRES = ("postgres", "postgresql")
REDIS = (
    "redis",
    "rediss",
    "valkey",
    "valkeys",
    "unix",
    "redis+sentinel",
    "rediss+sentinel",
    "valkey+sentinel",
    "valkeys+sentinel",
)


def store_url(url: str | None = None) -> str:
    """The URL that holds: the one given, else `TREADLE_STORE`, else a SQLite file; never `DATABASE_URL` unasked (S1)."""
    return url or os.environ.get("TREADLE_STORE") or DEFAULT_URL


def open_store(url: str | None = None, *, migrate: bool = False) -> Store:
    """The store that a URL names. Nothing is opened before its first use (S1).

    `migrate=True` lets a Postgres store bring its tables up to date by itself (S4). Raises `InvalidArgument` for what is no
    store URL, and `MissingExtra` where its driver is not installed.
    """
    full = store_url(url)
    scheme, colon, rest = full.partition(":")
    if not colon:
        raise InvalidArgument(f"{shown(full)!r} is no store URL; use {FORMS}")
    match scheme.lower():
        case "memory":
            if rest:
                raise InvalidArgument(f"memory: takes nothing after the colon, not {rest!r}")
            from treadle.stores.memory import MemoryStore

            return MemoryStore()
        case "sqlite":
            return _sqlite(rest)
        case name if name in POSTGRES:
            from treadle.stores.postgres import PostgresStore

            return PostgresStore(full if rest else _named_by("DATABASE_URL", scheme, POSTGRES), migrate=migrate or None)
        case name if name in REDIS:
            try:
                from treadle.stores.redis import RedisStore
            except ModuleNotFoundError as error:
                if error.name is None or error.name.startswith("treadle"):
                    raise
                raise MissingExtra("the Redis store needs redis-py: install treadle[redis]") from None
            return RedisStore(full if rest else _named_by("REDIS_URL", scheme, REDIS))
        case _:
            raise InvalidArgument(f"{scheme}: is no store that treadle knows; use {FORMS}")


def _named_by(variable: str, scheme: str, schemes: tuple[str, ...]) -> str:
    """The URL in the environment that a scheme alone stands for (S1)."""
    url = os.environ.get(variable, "")
    if url.partition(":")[0].lower() not in schemes or not url.partition(":")[2]:
        what = f"is {shown(url)!r}" if url else "is not set"
        raise InvalidArgument(f"{scheme}: alone means the URL in {variable}, which {what}; it must be a {schemes[0]}:// URL")
    return url


def _sqlite(rest: str) -> Store:
    from treadle.stores.sqlite import SQLiteStore

    path, _, query = rest.partition("?")
    path = path.removeprefix("///")  # sqlite:///data/x.db and sqlite:////abs/x.db, as SQLAlchemy writes them
    if not path:
        raise InvalidArgument("sqlite: needs a path, such as sqlite:data/tasks.db, or sqlite::memory:")
    options = _options(query, {"synchronous": ("FULL", "NORMAL")})
    return SQLiteStore(path, **options)


def _options(query: str, known: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """The options behind the question mark, refused where they are not known."""
    options: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            raise InvalidArgument(f"the store URL has the unknown option {name!r}; known are {', '.join(sorted(known))}")
        if value.upper() not in known[name]:
            raise InvalidArgument(f"{name}={value} in the store URL must be one of {', '.join(known[name])}")
        options[name] = value.upper()
    return options


def shown(url: str) -> str:
    """The URL without a password, for messages."""
    url = re.sub(r"(?i)([?&]password=)[^&]*", r"\1***", url)
    head, at, tail = url.rpartition("@")
    if not at:
        return url
    scheme, slashes, user = head.partition("://")
    return f"{scheme}{slashes}{user.partition(':')[0]}@{tail}"
