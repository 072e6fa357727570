"""The async face of the client (F16): the same operations, awaited."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Self, TypeVar

import httpx2

from treadle.client import operations
from treadle.client.connections import LIMITS, no_cookies, trust
from treadle.client.course import Course
from treadle.client.operations import Operation
from treadle.client.settings import Settings, settings
from treadle.client.wire import CronJob, Job, Requeued, Status

T = TypeVar("T")


def create_async_client(
    url: str | None = None,
    key: str | None = None,
    *,
    timeout: float = 10.0,
    connect_timeout: float = 3.0,
    retries: int = 3,
    ssl_context: ssl.SSLContext | None = None,
) -> AsyncClient:
    """A client whose calls are awaited. It takes what `create_client` takes; raises `ValueError`."""
    return AsyncClient(settings(url, key, timeout, connect_timeout, retries), ssl_context)


class AsyncClient:
    """Made by `create_async_client`, closed by `close` or by leaving `async with`. It belongs to one event loop."""

    def __init__(self, settings: Settings, ssl_context: ssl.SSLContext | None = None) -> None:
        self._settings = settings
        self._trust = trust(settings.secure, ssl_context)
        self._connections: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._functions = AsyncFunctions(self)

    @property
    def functions(self) -> AsyncFunctions:
        """Jobs, cron entries and dead letters."""
        return self._functions

    async def run(self, operation: Operation[T]) -> T:
        """What `functions` does; not meant to be called. Raises the errors of `treadle.client.errors`."""
        course = Course(operation, self._settings)
        while True:
            connecting = course.connecting_ends - course.ends + course.left
            request = course.request({"connect": connecting, "read": None, "write": None, "pool": None})
            try:
                async with asyncio.timeout(course.left):  # httpx2 counts for each piece, and a drip outlives that
                    response = await self._http().send(request)
            except (httpx2.HTTPError, TimeoutError) as error:
                pause = course.failed(error)
            else:
                again = course.answered(response)
                if again is None:
                    return operation.read(response)
                pause = again
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close the connections; a call after it raises `RuntimeError`."""
        self._closed = True
        if self._connections is not None:
            await self._connections.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._settings.url}>"

    def _http(self) -> httpx2.AsyncClient:
        if self._closed:
            raise RuntimeError("the client is closed; make another with create_async_client()")
        loop = asyncio.get_running_loop()
        if self._connections is None:
            transport = httpx2.AsyncHTTPTransport(verify=self._trust, trust_env=False, limits=LIMITS)
            self._connections = httpx2.AsyncClient(transport=transport, cookies=no_cookies(), trust_env=False)
            self._loop = loop
        if self._loop is not loop:
            raise RuntimeError("the client belongs to another event loop; make one in each with create_async_client()")
        return self._connections


class AsyncFunctions:
    """The operations, as `client.functions`. All raise `ApiError`, `Unreachable`, `TimedOut` and `UnexpectedAnswer`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def enqueue_job(
        self,
        name: str,
        payload: object = None,
        delay_secs: float | timedelta = 0,
        max_attempts: int | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Job:
        """Enqueue a job of the function `name`, which need not exist yet, and answer the job (F9).

        `payload` is JSON, `delay_secs` how long the job stays pending at first. Where `max_attempts` is None it is not sent,
        and the service's own setting decides: JOB_MAX_RETRIES, 3 unless set. Under an `idempotency_key` that a job has, that
        job is answered and none is made; only with one is the call repeated when its answer was lost. Raises `ValueError` for
        what cannot be sent.
        """
        return await self._client.run(operations.enqueue_job(name, payload, delay_secs, max_attempts, idempotency_key))

    async def get_job(self, id: str) -> Job:
        """The job as it is now (F10). Raises `ApiError` with status 404 where there is none."""
        return await self._client.run(operations.get_job(id))

    async def list_jobs(self, status: Status | None = None, limit: int = 50) -> list[Job]:
        """Jobs, newest first, of that status or of any; `limit` is 1 to 500 (F10)."""
        return await self._client.run(operations.list_jobs(status, limit))

    async def list_dead(self, limit: int = 50) -> list[Job]:
        """Dead jobs, newest first; `limit` is 1 to 500 (F11)."""
        return await self._client.run(operations.list_dead(limit))

    async def retry_job(self, id: str) -> Job:
        """Put a dead job back to pending, for one more attempt (F11). Raises `ApiError` with 409 where it is not dead."""
        return await self._client.run(operations.retry_job(id))

    async def requeue_dead(self) -> Requeued:
        """Put the oldest dead jobs, at most 1000, back to pending for one more attempt each, and count them (F11)."""
        return await self._client.run(operations.requeue_dead())

    async def create_cron_job(self, name: str, schedule: str, function: str, payload: object = None) -> CronJob:
        """Have a job of the function enqueued at each moment of `schedule`: five or six fields, in UTC (F12).

        Raises `ApiError` with 409 where the name is in use: delete that entry first.
        """
        return await self._client.run(operations.create_cron_job(name, schedule, function, payload))

    async def list_cron_jobs(self) -> list[CronJob]:
        """All cron entries (F12)."""
        return await self._client.run(operations.list_cron_jobs())

    async def delete_cron_job(self, name: str) -> None:
        """Delete a cron entry, which ends its firing (F12). Raises `ApiError` with 404 where there is none."""
        await self._client.run(operations.delete_cron_job(name))

    async def invoke(
        self,
        name: str,
        path: str = "/",
        method: str = "POST",
        payload: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  of the HTTP call, as in the blocking face
    ) -> httpx2.Response:
        """Call the function directly, without a job, and answer what it answers, errors included (F3).

        `payload` is sent as JSON, or as it stands if it is bytes. `path` is within the function, with a query if it has one.
        `timeout` is the client's if left out.
        """
        return await self._client.run(operations.invoke(name, path, method, payload, headers, timeout))
