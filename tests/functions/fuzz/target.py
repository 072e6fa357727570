"""The service that is shot at: on a store of any kind, with its full contents in view."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from tests.functions.function_stores import Place, on as on
from tests.functions.fuzz.raw import Answer, exchange, request
from tests.functions.live import Live, live

from treadle.core.filter import JobFilter
from treadle.functions.http import site
from treadle.functions.http.body import BodyReader, largest_body
from treadle.functions.http.lifetime import Limits, State
from treadle.stores.memory import MemoryStore
from treadle.stores.sqlite import SQLiteStore

MAX_PAYLOAD = 20_000
MAX_BODY = largest_body(MAX_PAYLOAD)
JSON_TYPE = ("content-type", "application/json")
ENQUEUE = "/v1/functions/send-report/jobs"
CRON = "/v1/functions/cron"
REQUEUE = "/v1/functions/jobs/dlq/requeue"
MANY = 100_000


class Target:
    """Every request that goes through here is checked: the answer's form, and that a refusal has changed nothing."""

    def __init__(self, service: Live, store: Any, document: Any) -> None:
        self.service = service
        self.store = store
        self.document = document
        self.key = service.keys["service_role"]
        self.port = int(service.url.rpartition(":")[2])
        self.keyed = ("apikey", self.key)
        self.near = isinstance(store, (MemoryStore, SQLiteStore))  # quick enough for the longest lists

    async def contents(self) -> dict[str, Any]:
        """Everything that is stored."""
        return {
            "jobs": await self.store.find(JobFilter(), limit=MANY),
            "schedules": await self.store.list_schedules(limit=MANY),
            "intervals": await self.store.kept_intervals(limit=MANY),
            "documents": await self.store.kept_documents(limit=MANY),
        }

    async def send(self, data: bytes, methods: Sequence[str] = (), *, eof: bool = False) -> list[Answer]:
        """The answers to some bytes, each of them in form."""
        found = await exchange(self.port, data, methods, eof=eof)
        for number, answer in enumerate(found):
            checked(answer, bare=number < len(methods) and methods[number] == "HEAD")
        return found

    async def ask(
        self, method: str, target: str | bytes, body: bytes | None = None, *headers: tuple[str, str | bytes]
    ) -> Answer:
        """The one answer to one request with the key and, if it has a body, the type of JSON."""
        given: list[tuple[str, str | bytes]] = [*headers]
        names = {name.lower() for name, _ in headers}
        given += [self.keyed] if "apikey" not in names else []
        given += [JSON_TYPE] if body is not None and "content-type" not in names else []
        (answer,) = await self.send(request(method, target, body, *given), [method])
        return answer

    async def refused(
        self,
        method: str,
        target: str | bytes,
        body: bytes | None = None,
        *headers: tuple[str, str | bytes],
        status: Iterable[int] = (),
    ) -> Answer:
        """As `ask`, for a request that must be refused, with one of these statuses, and must change nothing at all."""
        before = await self.contents()
        answer = await self.ask(method, target, body, *headers)
        assert 400 <= answer.status < 500, (method, target, body, headers, answer)
        assert not status or answer.status in status, (method, target, body, headers, answer)
        assert await self.contents() == before, (method, target, body, headers)
        self.documented(method, target, answer)
        return answer

    def documented(self, method: str, target: str | bytes, answer: Answer) -> None:
        """The description says of the path, if it knows it, that it may answer so."""
        text = target.decode("latin-1") if isinstance(target, bytes) else target
        parts = unquote_to_bytes(text.partition("?")[0]).split(b"/")
        for path, item in self.document["paths"].items():
            said = path.split("/")
            if len(said) == len(parts) and all(is_.startswith("{") or is_.encode() == part for is_, part in zip(said, parts)):
                operation = item.get(method.lower())
                if operation is not None and "default" not in operation["responses"]:
                    assert str(answer.status) in operation["responses"], (method, target, answer)
                return

    async def healthy(self) -> None:
        for path in ("/healthz", "/readyz"):
            answer = await self.ask("GET", path)
            assert (answer.status, answer.data) == (200, {"status": "ok"})

    async def job(self, id: str) -> Any:
        answer = await self.ask("GET", f"/v1/functions/jobs/{id}")
        assert answer.status == 200, answer
        return answer


def checked(answer: Answer, *, bare: bool = False) -> None:
    """No failure of the service itself; and each refusal is in the envelope, with a code and one line."""
    assert answer.status < 500 or answer.status == 501, answer
    assert answer.headers["content-type"], answer
    if bare:
        assert answer.body == b""
    elif answer.status >= 400:
        assert answer.headers["content-type"] == "application/json", answer
        assert set(answer.json) == {"error"} and set(answer.json["error"]) == {"code", "message"}, answer
        assert answer.code.replace("_", "").isalpha() and answer.code == answer.code.lower(), answer
        assert 0 < len(answer.message) < 700 and answer.message.isprintable(), answer
        assert not any(
            word in answer.message for word in ("Traceback", "Error(", "Exception", "object at 0x", "psycopg", "sqlite3")
        )


@contextlib.asynccontextmanager
async def target(
    place: Place, *, limits: Limits | None = None, body_seconds: float = 10.0, **options: Any
) -> AsyncIterator[Target]:
    """The service with small limits. It must be well at the end, and have logged no failure of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "BodyReader", functools.partial(BodyReader, seconds=body_seconds))
        if limits is not None:
            patch.setattr(State, "__init__", _limited(State.__init__, limits))
        errors = _Errors()
        logging.getLogger("treadle").addHandler(errors)
        try:
            environment = {"MAX_PAYLOAD_BYTES": str(MAX_PAYLOAD)}
            async with live(place, environment=environment, **{"role": "api", **options}) as service:
                document = (await service.http.get("/openapi.json")).json()
                shot_at = Target(service, place.store(), document)
                yield shot_at
                await shot_at.healthy()
        finally:
            logging.getLogger("treadle").removeHandler(errors)
        assert errors.seen == []


def _limited(init: Callable[..., None], limits: Limits) -> Callable[..., None]:
    return lambda self, _: init(self, limits)


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(self.format(record))


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def exactly(text: str | bytes) -> str:
    """JSON with the order of keys, and the kinds of numbers, in view."""
    return repr(json.loads(text, object_pairs_hook=lambda pairs: ("object", pairs)))
