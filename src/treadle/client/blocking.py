"""The blocking face of the client (F16)."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Self, TypeVar

import httpx2

from treadle.client import operations
from treadle.client.connections import LIMITS, no_cookies, trust
from treadle.client.course import Course
from treadle.client.network import Transport
from treadle.client.operations import Operation
from treadle.client.settings import Settings, settings
from treadle.client.wire import CronJob, Job, Requeued, Status

T = TypeVar("T")


def create_client(
    url: str | None = None,
    key: str | None = None,
    *,
    timeout: float = 10.0,
    connect_timeout: float = 3.0,
    retries: int = 3,
    ssl_context: ssl.SSLContext | None = None,
) -> Client:
    """A client of the functions service at `url`, with a `service_role` key; nothing is sent yet.

    They are those of the environment, TREADLE_URL and TREADLE_SERVICE_ROLE_KEY, where they are left out. `timeout` is the
    seconds that a call may take as a whole, retries and pauses included, and `connect_timeout` those for one connection.
    `retries` is how often a call is tried again where that is safe. `ssl_context` says whom to trust with https, the system's
    authorities if left out. Proxies, `.netrc` and certificates of the environment are not looked at. Raises `ValueError`.
    """
    return Client(settings(url, key, timeout, connect_timeout, retries), ssl_context)


class Client:
    """Made by `create_client`, closed by `close` or by leaving `with`. Threads may share it, and forked processes."""

    def __init__(self, settings: Settings, ssl_context: ssl.SSLContext | None = None) -> None:
        self._settings = settings
        self._trust = trust(settings.secure, ssl_context)
        # By process: two that share a connection after a fork would read each other's answers.
        self._connections: dict[int, httpx2.Client] = {}
        self._closed = False
        self._functions = Functions(self)

    @property
    def functions(self) -> Functions:
        """Jobs, cron entries and dead letters."""
        return self._functions

    def run(self, operation: Operation[T]) -> T:
        """What `functions` does; not meant to be called. Raises the errors of `treadle.client.errors`."""
        course = Course(operation, self._settings)
        while True:
            timeouts = {"connect": course.connecting_ends, "read": course.ends, "write": course.ends, "pool": course.left}
            request = course.request(timeouts)  # moments rather than durations, which Network takes, but for the pool's
            try:
                response = self._http().send(request)
            except httpx2.HTTPError as error:
                pause = course.failed(error)
            else:
                again = course.answered(response)
                if again is None:
                    return operation.read(response)
                pause = again
            time.sleep(pause)

    def close(self) -> None:
        """Close the connections; a call after it raises `RuntimeError`."""
        self._closed = True
        connections = self._connections.pop(os.getpid(), None)
        if connections is not None:
            connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._settings.url}>"

    def _http(self) -> httpx2.Client:
        if self._closed:
            raise RuntimeError("the client is closed; make another with create_client()")
        process = os.getpid()
        if (connections := self._connections.get(process)) is None:
            made = httpx2.Client(transport=Transport(self._trust, LIMITS), cookies=no_cookies(), trust_env=False)
            connections = self._connections.setdefault(process, made)  # of two threads, one wins; the other opened nothing
        return connections


class Functions:
    """The operations, as `client.functions`. All raise `ApiError`, `Unreachable`, `TimedOut` and `UnexpectedAnswer`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def enqueue_job(
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
        return self._client.run(operations.enqueue_job(name, payload, delay_secs, max_attempts, idempotency_key))

    def get_job(self, id: str) -> Job:
        """The job as it is now (F10). Raises `ApiError` with status 404 where there is none."""
        return self._client.run(operations.get_job(id))

    def list_jobs(self, status: Status | None = None, limit: int = 50) -> list[Job]:
        """Jobs, newest first, of that status or of any; `limit` is 1 to 500 (F10)."""
        return self._client.run(operations.list_jobs(status, limit))

    def list_dead(self, limit: int = 50) -> list[Job]:
        """Dead jobs, newest first; `limit` is 1 to 500 (F11)."""
        return self._client.run(operations.list_dead(limit))

    def retry_job(self, id: str) -> Job:
        """Put a dead job back to pending, for one more attempt (F11). Raises `ApiError` with 409 where it is not dead."""
        return self._client.run(operations.retry_job(id))

    def requeue_dead(self) -> Requeued:
        """Put the oldest dead jobs, at most 1000, back to pending for one more attempt each, and count them (F11)."""
        return self._client.run(operations.requeue_dead())

    def create_cron_job(self, name: str, schedule: str, function: str, payload: object = None) -> CronJob:
        """Have a job of the function enqueued at each moment of `schedule`: five or six fields, in UTC (F12).

        Raises `ApiError` with 409 where the name is in use: delete that entry first.
        """
        return self._client.run(operations.create_cron_job(name, schedule, function, payload))

    def list_cron_jobs(self) -> list[CronJob]:
        """All cron entries (F12)."""
        return self._client.run(operations.list_cron_jobs())

    def delete_cron_job(self, name: str) -> None:
        """Delete a cron entry, which ends its firing (F12). Raises `ApiError` with 404 where there is none."""
        self._client.run(operations.delete_cron_job(name))

    def invoke(
        self,
        name: str,
        path: str = "/",
        method: str = "POST",
        payload: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> httpx2.Response:
        """Call the function directly, without a job, and answer what it answers, errors included (F3).

        `payload` is sent as JSON, or as it stands if it is bytes. `path` is within the function, with a query if it has one.
        `timeout` is the client's if left out.
        """
        return self._client.run(operations.invoke(name, path, method, payload, headers, timeout))
