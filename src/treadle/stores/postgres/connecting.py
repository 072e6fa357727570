"""Connecting without an event loop: for threads of the store's own, and for callers that block."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from treadle.core.errors import TreadleError
from treadle.stores.postgres.cutting import cut, cut_after
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.errors import unreachable
from treadle.stores.postgres.settings import Settings


def connected(settings: Settings, *, prepared: bool = False) -> psycopg.Connection[Any]:
    """A new connection in autocommit mode. Raises `StoreUnavailable`, naming the server but no password."""
    try:
        return psycopg.connect(
            "",
            autocommit=True,
            prepare_threshold=0 if prepared else None,
            **settings.conninfo,  # type: ignore[arg-type]  # parameters of libpq, by name
        )
    except (psycopg.Error, OSError, UnicodeError) as error:
        raise unreachable(settings.place, error) from None


@contextlib.contextmanager
def watched(connection: psycopg.Connection[Any], settings: Settings) -> Iterator[None]:
    """Cut the connection in the block if its server falls silent, or waits for words that are lost.

    What the server is at work on may take as long as it likes: that is asked on another connection every `answer_timeout`.
    """
    ended = threading.Event()
    process = connection.info.backend_pid

    def watch() -> None:
        while not ended.wait(settings.answer_timeout):
            if not _at_work(settings, process) and not ended.is_set():
                cut(connection.pgconn)

    threading.Thread(target=watch, name="treadle-watch", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _at_work(settings: Settings, process: int) -> bool:
    """Whether the server is at work on a statement, or was a moment ago.

    Behind a pooler the process is not known; there it counts that the server answers.
    """
    sql = "select state = 'active' or state_change > now() - make_interval(secs => %s) from pg_stat_activity where pid = %s"
    try:
        with connected(settings) as asking, cut_after(max(settings.connect_timeout, settings.answer_timeout), asking):
            row = asking.execute(sql, [settings.answer_timeout / 2, process]).fetchone()
    except (TreadleError, psycopg.Error):
        return False
    return not settings.prepared_statements if row is None else bool(row[0])
