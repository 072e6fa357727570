"""The HTTP server: uvicorn's protocol on our own loop, beside a worker; signals are left to whoever runs it (F)."""

from __future__ import annotations

import asyncio
import socket

from starlette.types import ASGIApp
from uvicorn.config import Config

from treadle.functions.http.accepting import Accepting
from treadle.functions.http.connection import Connection
from treadle.functions.http.lifetime import Limits, State
from treadle.functions.http.listening import listening

_GIVING_UP = 5.0  # seconds that a task gets to end after it was cancelled


class Server:
    """Answers HTTP/1.0 and 1.1 with an ASGI application. There is no lifespan, no websocket, no TLS and no access log.

    It may stand behind a reverse proxy, which ends TLS. Nothing that a proxy tells of the client (`forwarded`,
    `x-forwarded-…`) is used or trusted; those headers are for functions, which get them as they came. `Host` is not used.
    """

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1", port: int = 8700, limits: Limits | None = None) -> None:
        self._host = host
        self._port = port
        self._state = State(limits or Limits())
        self._accepting: Accepting | None = None
        self._config = Config(
            app,
            http=Connection,
            ws="none",
            loop="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            workers=1,
            proxy_headers=False,
            server_header=False,
            date_header=False,
        )

    @property
    def port(self) -> int:
        """Where it listens; before `start`, what it was given."""
        return self._port

    async def start(self) -> str:
        """Listen and answer from now on; answers the URL, from this machine. Raises `InvalidArgument` and `CannotListen`."""
        url = await self.listen()
        await self.serve()
        return url

    async def serve(self) -> None:
        """Answer from now on, those first who have come since `listen`."""
        if self._accepting is not None:
            self._accepting.start()

    async def listen(self) -> str:
        """Take the address, and let clients wait; answers the URL. Raises as `start` does."""
        sockets = await listening(self._host, self._port)
        self._port = sockets[0].getsockname()[1]
        self._config.load()
        self._accepting = Accepting(sockets, self._connection, self._state.room)
        return f"http://{_reachable(sockets[0])}:{self._port}"

    def _connection(self) -> Connection:
        return Connection(self._config, self._state)

    async def stop(self, seconds: float = 10.0) -> None:
        """Take no more requests, let those under way finish within `seconds`, and cut the rest. Safe twice, and unstarted."""
        if self._accepting is not None:
            await self._accepting.close()
        for connection in self._connections():
            connection.shutdown()
        try:
            async with asyncio.timeout(seconds):
                await self._state.empty.wait()
                if self._state.tasks:
                    await asyncio.wait(self._state.tasks)
        except TimeoutError:
            pass
        finally:
            for connection in self._connections():
                connection.abort()
            tasks = list(self._state.tasks)
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=_GIVING_UP)
            async with asyncio.timeout(_GIVING_UP):
                await self._state.empty.wait()

    def _connections(self) -> list[Connection]:
        return [connection for connection in self._state.connections if isinstance(connection, Connection)]


def _reachable(sock: socket.socket) -> str:
    """The address that a program on this machine reaches the socket at."""
    host: str = sock.getsockname()[0]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  compares, and binds nothing
    return f"[{host}]" if ":" in host else host
