"""The connections of one event loop, made as they are needed and given up with the loop.

psycopg's own pool keeps tasks and a thread of its clock's alive, and complains when a loop ends before it was closed; this one
has neither, so that `asyncio.run` may be called as often as one likes without closing the store in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import replace

from treadle.core.errors import StoreUnavailable
from treadle.stores.postgres.driver import psycopg
from treadle.stores.postgres.errors import lost
from treadle.stores.postgres.session import Session
from treadle.stores.postgres.settings import Settings

_LONGEST_PAUSE = 1.0
_IDLE_LIMIT = 300.0


class Pool:
    """At most `pool_size` connections, the one used last taken first."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._room = asyncio.Semaphore(settings.pool_size)
        self._idle: list[tuple[float, Session]] = []
        self._failures = 0
        self._failed_at = 0.0
        self._open: set[Session] = set()
        self._end: AsyncGenerator[None] | None = None
        self.closed = False
        self.at_end: Callable[[], Awaitable[None]] | None = None

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """A connection for the time of the block. Raises `StoreUnavailable` if none can be had."""
        if self._end is None:
            # `asyncio.run` ends the generators of its loop before it closes it: the only word a loop gives of its end.
            self._end = self._until_the_loop_ends()
            await anext(self._end)
        async with self._room:
            session = self._take() or await self._connect()
            try:
                yield session
            finally:
                if session.read_only:
                    self._drop_idle()  # those made before lead to the same server
                if self.closed or not session.usable:
                    self._drop(session)
                else:
                    self._idle.append((time.monotonic(), session))

    def close(self) -> None:
        """Give up what is idle now, from any thread; what is in use is given up when it comes back."""
        self.closed = True
        self._drop_idle()

    def leave(self) -> None:
        """In the child of a fork: the connections are the parent's (see stores/forks.py)."""
        self.closed, self.at_end = True, None
        idle = {session for _, session in self._idle}
        self._idle.clear()
        for session in tuple(self._open):
            session.leave(idle=session in idle)
        self._open.clear()

    def processes(self) -> set[int]:
        """The server processes of the open connections."""
        return {session.process for session in tuple(self._open)}

    def _drop_idle(self) -> None:
        while self._idle:
            self._drop(self._idle.pop()[1])

    def _drop(self, session: Session) -> None:
        self._open.discard(session)
        session.close()

    def _take(self) -> Session | None:
        now = time.monotonic()
        while self._idle and self._idle[0][0] < now - _IDLE_LIMIT:
            self._drop(self._idle.pop(0)[1])
        while self._idle:
            _, session = self._idle.pop()
            if session.usable:
                return session
            self._drop(session)
        return None

    async def _connect(self) -> Session:
        """Connect, at growing intervals while that fails, so that callers who repeat themselves cost little (S6)."""
        if self._failures:
            pause = min(0.05 * 2**self._failures, _LONGEST_PAUSE)
            await asyncio.sleep(max(0.0, self._failed_at + pause - time.monotonic()))
        try:
            session = await Session.open(self._settings, self.at_work)
        except StoreUnavailable:
            self._failures = min(self._failures + 1, 10)
            self._failed_at = time.monotonic()
            raise
        self._failures = 0
        self._open.add(session)
        return session

    async def at_work(self, process: int) -> bool:
        """Ask, on a new connection, whether the server still works for another one of ours.

        Behind a pooler the process is not known; there it counts that the server answers.
        """
        timeout = max(self._settings.answer_timeout, self._settings.connect_timeout)
        session = await Session.open(replace(self._settings, answer_timeout=timeout), self.at_work)
        try:
            rows = await session.fetch("backend", process)
            return bool(rows) or not self._settings.prepared_statements
        finally:
            session.close()

    async def settle(self, gone: Session) -> None:
        """Have the server end the process of a connection that was lost, and wait for it, some seconds at most.

        A statement of it that is still at work, or still under way in the network, would be done after its caller was told
        that it may not be, and has looked.
        """
        if gone.started is None:
            return  # behind a pooler the process is not known
        pause = 0.002
        while pause < _LONGEST_PAUSE:
            try:
                async with self.session() as session:
                    if not await session.fetch("end_backend", gone.process, gone.started):
                        return
            except psycopg.Error as error:
                if not lost(error):
                    raise  # else this connection was an old one too, that went the same way
            await asyncio.sleep(pause)
            pause *= 2

    async def _until_the_loop_ends(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            if self.at_end is not None and not self.closed:
                await self.at_end()
            self.close()
