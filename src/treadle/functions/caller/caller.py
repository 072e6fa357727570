"""The caller: calls functions for jobs, over connections that it keeps for a moment (F4, F5)."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence

from treadle.functions.caller.answer import Answer
from treadle.functions.caller.connection import Connection, Outcome
from treadle.functions.caller.failures import Unanswered, misplaced, timed_out, unreachable
from treadle.functions.caller.opening import Opening
from treadle.functions.caller.place import Place, place
from treadle.functions.caller.pool import Pool
from treadle.functions.caller.request import request_head
from treadle.functions.shortage import check_for_files


class Caller:
    """Calls functions over HTTP/1.1. It belongs to the loop that it is used in.

    `per_host` and `idle` (seconds) bound the connections that are kept for the next call, `body_limit` (bytes) what is read
    of an answer's body beyond what comes with its headers. `tls` is for https; by default, certificates are verified
    against those that the system trusts.
    """

    def __init__(
        self,
        *,
        per_host: int = 128,
        idle: float = 2.0,
        body_limit: int = 65_536,
        logger: logging.Logger | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._pool = Pool(per_host, idle)
        self._opening = Opening()
        self._body_limit = body_limit
        self._logger = logger or logging.getLogger("treadle")
        self._tls = tls

    async def call(
        self,
        name: str,
        url: str,
        *,
        method: str,
        path: str,
        headers: Sequence[tuple[str, str]],
        body: bytes,
        seconds: float,
    ) -> Answer:
        """Call the function `name` at `url`, and answer as soon as the headers of its answer are whole, whatever its status.

        `seconds` is for everything: looking the host up, connecting, sending, waiting, and the body, which is read on after
        the return. Raises `CallFailed` where no answer was got, a `Shortage` where it is this process that could not call. A
        cancelled call closes its connection at once.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        deadline = now + seconds
        try:
            at = place(url)
        except ValueError:
            raise misplaced(name) from None
        head = request_head(at, method, path, headers, len(body))
        kept = self._pool.take(at.key, now)
        if kept is not None:
            waiter = kept.ask(head, body, deadline)
            try:
                outcome = await waiter
            except asyncio.CancelledError:
                kept.abandon(waiter)
                raise
            if not (isinstance(outcome, Unanswered) and outcome.unseen):
                return _answer(outcome, name, seconds)
            self._logger.debug("function %r had closed an idle connection; the call is sent again on a new one", name)
        outcome = await self._over_new_connection(at, name, head, body, seconds, deadline)
        return _answer(outcome, name, seconds)

    async def close(self) -> None:
        """Close every connection that no call waits for; safe twice. Calls that are under way end undisturbed."""
        self._opening.close()
        await self._pool.close()

    async def _over_new_connection(
        self, at: Place, name: str, head: bytes, body: bytes, seconds: float, deadline: float
    ) -> Outcome:
        loop = asyncio.get_running_loop()
        connection = Connection(loop, self._pool, at, self._body_limit)
        waiter = connection.ask(head, body, deadline)
        scope = asyncio.timeout_at(deadline)
        try:
            async with scope:
                await self._open(loop, connection, at, deadline)
        except asyncio.CancelledError:
            connection.abandon(waiter)
            raise
        except Exception as error:
            connection.abandon(waiter)
            if scope.expired():
                raise timed_out(name, seconds, "while connecting") from None
            raise unreachable(name, at, error) from None
        try:
            return await waiter
        except asyncio.CancelledError:
            connection.abandon(waiter)
            raise

    async def _open(self, loop: asyncio.AbstractEventLoop, connection: Connection, at: Place, deadline: float) -> None:
        sock = await self._opening.connect(at)
        if at.tls:
            try:
                self._tls = self._tls or _trusting_the_system()
            except OSError:
                sock.close()
                raise
            await loop.create_connection(
                lambda: connection,
                sock=sock,
                ssl=self._tls,
                server_hostname=at.host,
                ssl_handshake_timeout=max(deadline - loop.time(), 0.001),  # by itself it gives up after a minute
            )
        else:
            await loop.create_connection(lambda: connection, sock=sock)


def _trusting_the_system() -> ssl.SSLContext:
    check_for_files()  # where none can be opened, certificates are left out without a word, and it would trust nobody for ever
    return ssl.create_default_context()


def _answer(outcome: Outcome, name: str, seconds: float) -> Answer:
    if isinstance(outcome, Unanswered):
        raise outcome.failure(name, seconds)
    return Answer(outcome)
