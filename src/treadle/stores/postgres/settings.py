"""What a Postgres store is told: the server, and how to behave towards it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from urllib.parse import unquote

from treadle.core.errors import InvalidArgument
from treadle.stores.postgres.driver import psycopg

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,49}")
_YES, _NO = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of `PostgresStore`, which are also those of its URL. Durations are seconds."""

    url: str
    migrate: bool = False
    listen: bool = True
    notify: bool = True
    prepared_statements: bool = True
    direct_url: str | None = None
    schema: str = "treadle"
    pool_size: int = 8
    connect_timeout: float = 5.0
    answer_timeout: float = 15.0

    @property
    def channel(self) -> str:
        """The channel of NOTIFY: one for each schema; a database has its own in any case."""
        return self.schema

    @property
    def conninfo(self) -> dict[str, object]:
        """The connection's parameters, with what notices a dead peer in time."""
        return _conninfo(self.url, self)

    @property
    def direct_conninfo(self) -> dict[str, object]:
        """The same for LISTEN, which needs the server itself where `url` is that of a pooler."""
        return _conninfo(self.direct_url or self.url, self)

    @property
    def place(self) -> str:
        """The server and database as errors may name them: without user or password."""
        parameters = psycopg.conninfo.conninfo_to_dict(self.url)
        host, port = parameters.get("host", "localhost"), parameters.get("port", 5432)
        return f"{host}:{port}/{parameters.get('dbname', '')}"


def settings(url: str, options: Mapping[str, object]) -> Settings:
    """The settings of a URL and options; an option given both ways is the argument's. Raises `InvalidArgument`."""
    bare, of_url = _split(url)
    given = {**of_url, **{name: value for name, value in options.items() if value is not None}}
    made = Settings(bare, **{name: _checked(name, value) for name, value in given.items()})  # type: ignore[arg-type]  # each was checked, by its name
    for one in (made.url, made.direct_url or made.url):
        _check(one)
    if not _SCHEMA.fullmatch(made.schema):
        raise InvalidArgument(f"schema must be 1 to 50 of a-z, 0-9 and _, not beginning with a digit: {made.schema!r}")
    return replace(made, direct_url=made.direct_url or None)


def _check(url: str) -> None:
    """Raise `InvalidArgument` for what the driver would not understand, without showing what may be a piece of a password."""
    try:
        read = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        reason = str(error).strip().splitlines()[0]
        if "@" in reason or "percent" in reason:
            raise InvalidArgument(f"this is no Postgres URL: {_ENCODED}") from None
        if unknown := re.fullmatch(r'invalid URI query parameter: "(.*)"', reason):
            raise InvalidArgument(_no_option(unknown[1])) from None
        raise InvalidArgument(f"this is no Postgres URL: {reason}; write postgresql://user@host:5432/database") from None
    if any("@" in str(read.get(part, ""))[1:] for part in ("host", "port", "dbname")):
        raise InvalidArgument(f"this is no Postgres URL: {_ENCODED}")
    if not re.fullmatch(r"[\d,]*", str(read.get("port", ""))):
        raise InvalidArgument("the port in a Postgres URL must be a number")


_ENCODED = "a @ / ? or % in a user or password is written %40 %2F %3F or %25"
_KINDS = {one.name: one.type for one in fields(Settings)}


def _split(url: str) -> tuple[str, dict[str, object]]:
    """The URL as the driver knows it, and the options of ours in its query."""
    if not str(url).startswith(("postgres://", "postgresql://")):
        raise InvalidArgument(
            f"a Postgres URL begins with postgresql:// or postgres://, not {str(url).partition(':')[0][:20]!r}"
        )
    bare, _, query = str(url).partition("?")
    ours: dict[str, object] = {}
    theirs = []  # as they stand: libpq reads a plus as a plus
    for option in query.split("&"):
        name, _, value = option.partition("=")
        if name in _KINDS and name != "url":
            ours[name] = unquote(value)
        elif "@" in name:
            raise InvalidArgument(f"this is no Postgres URL: {_ENCODED}")
        elif option:
            theirs.append(option)
    return "?".join([bare, *(["&".join(theirs)] if theirs else [])]), ours


def _checked(name: str, value: object) -> object:
    """The option's value in its type, from the text of a URL or from an argument."""
    kind = _KINDS.get(name)
    if kind is None:
        raise InvalidArgument(_no_option(name))
    text = str(value).lower()
    match kind:
        case "bool":
            if text in _YES | _NO:
                return text in _YES
            raise InvalidArgument(f"the option {name} must be true or false, not {value!r}")
        case "int":
            if text.isascii() and text.isdigit() and 1 <= int(text) <= 1000:
                return int(text)
            raise InvalidArgument(f"the option {name} must be a whole number from 1 to 1,000, not {value!r}")
        case "float":
            try:
                number = float(text)
            except ValueError:
                number = 0.0
            if 0.1 <= number <= 3600:
                return number
            raise InvalidArgument(f"the option {name} must be seconds from 0.1 to 3,600, not {value!r}")
        case _:
            return str(value)


def _no_option(name: str) -> str:
    return f"the Postgres store has no option {name!r}, nor has libpq; known are {', '.join(sorted(set(_KINDS) - {'url'}))}"


def _conninfo(url: str, of: Settings) -> dict[str, object]:
    defaults: dict[str, object] = {
        "application_name": "treadle",
        "connect_timeout": max(2, round(of.connect_timeout)),
        # A peer that is gone without a word is noticed by the kernel: idle after 10 + 3 × 5 s, with data under way after 15 s.
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
    }
    return {**defaults, **psycopg.conninfo.conninfo_to_dict(url)}
