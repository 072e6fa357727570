"""The servers that a run needs, started for it and gone with it; a store that is a file or lives in memory needs none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


class Place:
    """Where the trials of one store happen. A place of a server is emptied between two trials."""

    version = ""

    def url(self, pile: str = "") -> str:
        """The URL for the next trial: of an empty store, or of the one that keeps this pile."""
        return ""


class PostgresPlace(Place):
    """A database for each trial."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._last = ""
        self._piles: dict[str, str] = {}
        with server.connect() as connection:
            self.version = f"Postgres {connection.execute('SHOW server_version').fetchone()[0]}"

    def url(self, pile: str = "") -> str:
        if pile:
            if pile not in self._piles:
                self._piles[pile] = self._server.fresh_database()
            return str(self._server.url_of(self._piles[pile]))
        if self._last:
            self._server.drop_database(self._last)
        self._last = self._server.fresh_database()
        return str(self._server.url_of(self._last))


class ValkeyPlace(Place):
    """Database 0 flushed for each trial, and one more for each pile."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._piles: list[str] = []
        info = server.client.info("server")
        self.version = f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info['redis_version']}"

    def url(self, pile: str = "") -> str:
        if not pile:
            self._server.client.flushdb()
            return f"redis://127.0.0.1:{self._server.port}/0"
        if pile not in self._piles:
            self._piles.append(pile)
        return f"redis://127.0.0.1:{self._server.port}/{self._piles.index(pile) + 1}"


@contextlib.contextmanager
def place_of(store: str) -> Iterator[Place]:
    """The place for a store's trials, with its server running."""
    match store:
        case "postgres":
            from tests.servers import postgres

            with postgres.own_server() as server:
                yield PostgresPlace(server)
        case "redis":
            from tests.servers import valkey

            with valkey.serving() as valkey_server:
                yield ValkeyPlace(valkey_server)
        case _:
            yield Place()
