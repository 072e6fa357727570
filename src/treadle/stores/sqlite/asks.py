"""An operation on its way through a thread, and whoever waits for its answer, on whatever loop or thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from treadle.stores.sqlite.session import Session

Operation: TypeAlias = Callable[[Session], Any]
Answered: TypeAlias = "tuple[Ask, Any, BaseException | None]"


class Ask:
    """One operation. `peek` may answer it without a lock, or say None; a `reading` one changes nothing."""

    __slots__ = ("future", "loop", "operation", "peek", "reading")

    def __init__(
        self,
        operation: Operation,
        *,
        loop: asyncio.AbstractEventLoop | None,
        peek: Operation | None = None,
        reading: bool = False,
    ) -> None:
        self.operation = operation
        self.peek = peek
        self.reading = reading
        self.loop = loop
        self.future: Any = concurrent.futures.Future[Any]() if loop is None else loop.create_future()

    @property
    def abandoned(self) -> bool:
        """Whether nobody waits any more, so that it need not be begun."""
        return bool(self.future.cancelled())


def deliver(answered: Iterable[Answered]) -> None:
    """Hand answers over, with one call for each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Answered]] = {}
    for one in answered:
        if one[0].loop is None:
            _resolve((one,))
        else:
            by_loop.setdefault(one[0].loop, []).append(one)
    for loop, ones in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, ones)
        except RuntimeError:
            continue  # the loop was closed: nobody is left to be told


def _resolve(answered: Iterable[Answered]) -> None:
    for ask, result, error in answered:
        if ask.future.done():
            continue  # cancelled meanwhile
        if error is None:
            ask.future.set_result(result)
        else:
            ask.future.set_exception(error)
