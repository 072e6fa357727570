"""Both faces of the client behind one: the same tests call either of them, and block until it has answered."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from treadle.client import AsyncClient, Client, create_async_client, create_client

KEY = "trd_service_b1946ac92492d2347c6235b4d2611184"


class Functions:
    """`client.functions` of either face, blocking."""

    def __init__(self, functions: Any, finish: Callable[[Any], Any]) -> None:
        self._functions = functions
        self._finish = finish

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = getattr(self._functions, name)
        return lambda *args, **options: self._finish(operation(*args, **options))


@dataclass(frozen=True)
class Opened:
    client: Client | AsyncClient
    functions: Functions


@dataclass(frozen=True)
class Face:
    name: str
    open: Callable[..., contextlib.AbstractContextManager[Opened]]

    def __str__(self) -> str:
        return self.name


@contextlib.contextmanager
def _blocking(url: str | None, key: str | None = KEY, **options: Any) -> Iterator[Opened]:
    with create_client(url, key, **options) as client:
        yield Opened(client, Functions(client.functions, lambda answer: answer))


@contextlib.contextmanager
def _asynchronous(url: str | None, key: str | None = KEY, **options: Any) -> Iterator[Opened]:
    with asyncio.Runner() as runner:
        client = create_async_client(url, key, **options)
        try:
            yield Opened(client, Functions(client.functions, runner.run))
        finally:
            runner.run(client.close())


BLOCKING, ASYNC = Face("blocking", _blocking), Face("async", _asynchronous)
FACES = [BLOCKING, ASYNC]
