"""A service that answers, works, and calls real functions, all in the test's own event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from tests.functions.function_stores import Place

from treadle.functions.directory import Directory
from treadle.functions.service import FunctionsService

PATIENCE = 20.0


@dataclass(frozen=True)
class Call:
    """A request as a function got it."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key == name]
        assert len(found) < 2, (name, found)
        return found[0] if found else None


Answering = Callable[[Call], "bytes | asyncio.Future[bytes]"]


def answer(status: int = 200, headers: str = "", body: bytes = b"ok") -> bytes:
    return f"HTTP/1.1 {status} Whatever\r\n{headers}content-length: {len(body)}\r\n\r\n".encode() + body


class FunctionServer:
    """A function on a raw socket. It keeps what it got, and answers as `answering` says."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.answering: Answering = lambda call: answer()
        self.at_once = self.most_at_once = 0
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def called(self, times: int = 1) -> list[Call]:
        """Wait until it was called so often."""
        async with asyncio.timeout(PATIENCE):
            while len(self.calls) < times:
                self._changed.clear()
                await self._changed.wait()
        return self.calls

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                await self._exchange(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        size = int(dict(headers).get("content-length", "0"))
        method, path, _ = first.split(" ")
        call = Call(method, path, headers, await reader.readexactly(size))
        self.calls.append(call)
        self._changed.set()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            said = self.answering(call)
            writer.write(said if isinstance(said, bytes) else await said)
        finally:
            self.at_once -= 1
        await writer.drain()


@dataclass
class Live:
    """The service, and a client that speaks plain HTTP to it."""

    service: FunctionsService
    url: str
    keys: Mapping[str, str]
    http: httpx2.AsyncClient
    directory: Directory
    place: Place
    functions: list[FunctionServer] = field(default_factory=list)

    async def ask(self, method: str, path: str, status: int = 200, key: str | None = "service_role", **options: Any) -> Any:
        """The answer's data, or its error; the status must be the one expected."""
        headers = {**options.pop("headers", {}), **({"apikey": self.keys[key]} if key else {})}
        response = await self.http.request(method, path, headers=headers, **options)
        assert response.status_code == status, (response.status_code, response.text)
        document = response.json()
        if status < 400:
            assert set(document) == {"data", "meta"} and document["meta"] is None, document
            return document["data"]
        assert set(document) == {"error"} and set(document["error"]) == {"code", "message"}, document
        return document["error"]

    async def enqueue(self, name: str, payload: object = None, **fields: Any) -> Any:
        return await self.ask("POST", f"/v1/functions/{name}/jobs", 201, json={"payload": payload, **fields})

    async def job(self, id: str) -> Any:
        return await self.ask("GET", f"/v1/functions/jobs/{id}")

    async def until(self, id: str, *statuses: str, attempts: int = 0) -> Any:
        """The job once it has one of these statuses, and as many attempts."""
        async with asyncio.timeout(PATIENCE):
            while True:
                job = await self.job(id)
                if job["status"] in statuses and job["attempts"] >= attempts:
                    return job
                await asyncio.sleep(0.005)

    async def until_jobs(self, count: int) -> Any:
        """The jobs once there are so many, newest first."""
        async with asyncio.timeout(PATIENCE):
            while len(jobs := await self.ask("GET", "/v1/functions/jobs?limit=500")) < count:
                await asyncio.sleep(0.005)
        return jobs

    async def function(self, name: str, **options: Any) -> FunctionServer:
        """A running function, registered by URL."""
        server = FunctionServer()
        self.functions.append(server)
        await server.start()
        await self.directory.add(name, server.url, **options)
        return server

    async def pass_time(self, seconds: float) -> None:
        """Move the clock that rules the service and its store."""
        self.place.time.advance(seconds)


@contextlib.asynccontextmanager
async def live(
    place: Place,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    store: Any = None,
    **options: Any,
) -> AsyncIterator[Live]:
    """A service on a store of the place, stopped at the end together with the functions that the test made."""
    store = store or place.store()
    service = FunctionsService(
        store, environment=environment or {}, folder=folder, clock=place.time, port=0, **{"poll_interval": 0.05, **options}
    )
    started = await service.start()
    keys = dict(started.made)
    one: Live | None = None
    try:
        async with httpx2.AsyncClient(base_url=started.url or "", timeout=PATIENCE, trust_env=False) as http:
            one = Live(service, started.url or "", keys, http, Directory(place.store(), place.clock), place)
            yield one
    finally:
        await service.stop(0)
        for function in one.functions if one is not None else ():
            await function.stop()


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
