"""The directory: the functions that are registered in a store, and what it keeps of those in the functions folder (F1).

A function that is registered by URL has all it is in its document. Of one in the functions folder the document holds the
secret and whether it is active; the rest is in the folder.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from treadle.core.errors import InvalidArgument, NotFound, StoreError
from treadle.core.payload import JSON
from treadle.core.store import Document, Documents
from treadle.engine.clock import EngineClock
from treadle.engine.outage import Outage
from treadle.functions.documents import change_document, every_document
from treadle.functions.fail_on import FailOn
from treadle.functions.function import Function, checked_concurrency, checked_function_name, checked_method, checked_url
from treadle.functions.keys import new_key
from treadle.functions.reading import Reading

NAMESPACE = "functions/directory"
REMEMBERED = 1000

_logger = logging.getLogger("treadle")


class BadFunction(StoreError):
    """What the store has as a function is none: somebody else wrote it, or a treadle that knows more."""

    code = "bad_function"


@dataclass(frozen=True, slots=True)
class _Found:
    """What a read found. A bad document is an answer of the store's, and no failure of it."""

    function: Function | None
    bad: BadFunction | None = None


class Directory:
    """Finds and changes functions, from one event loop. What `get` answers is at most about a second old.

    Changes made here are seen here at once. While the store is away, `get` answers what it last knew for a minute.
    """

    def __init__(self, store: Documents, clock: EngineClock | None = None, logger: logging.Logger = _logger) -> None:
        self._store = store
        self._clock = clock or EngineClock()
        self._logger = logger
        self._outage = Outage("the functions", logger)
        self._readings: dict[str, Reading[_Found]] = {}
        self._told: set[str] = set()

    async def get(self, name: str) -> Function:
        """The function, from one read a second that all who ask share. Raises `NotFound`.

        It is never older than one that was answered before.
        """
        while True:
            reading = self._readings.get(name) or self._remember(name)
            found = reading.fresh() or await reading.value()
            if self._readings.get(name) is reading:
                break  # else it was changed here meanwhile, perhaps after that read had begun
        if found.bad is not None:
            raise found.bad.with_traceback(None)  # shared: else each raising would add to it
        if found.function is None:
            raise _not_found(name)
        return found.function

    async def list(self) -> list[Function]:
        """All functions that have a document, by name. One that is bad is left out, which is told once: it hinders no other."""
        found: list[Function] = []
        bad: set[str] = set()
        for document in await every_document(self._store, NAMESPACE, self._clock):
            try:
                found.append(_function(document.key, document.value))
            except BadFunction as error:
                bad.add(str(error))
        for problem in sorted(bad - self._told):
            self._logger.warning("%s", problem)
        self._told = bad
        return found

    async def add(
        self,
        name: str,
        url: str,
        method: str = "JOB",
        fail_on: str | None = None,
        concurrency: int | None = None,
    ) -> Function:
        """Register a function by URL, or replace what is registered; its secret and whether it is active stay.

        Raises `InvalidArgument`.
        """
        wanted = Function(
            checked_function_name(name),
            secret=new_key("function"),
            url=checked_url(url),
            method=checked_method(method),
            fail_on=None if fail_on is None else FailOn(fail_on),
            concurrency=None if concurrency is None else checked_concurrency(concurrency),
        )

        def added(now: Function | None) -> Function:
            return wanted if now is None else replace(wanted, secret=now.secret, active=now.active)

        return await self._change(name, added)

    async def ensure(self, name: str) -> Function:
        """The function's document, made where there is none: for one in the functions folder. Raises `InvalidArgument`."""
        new = Function(checked_function_name(name), secret=new_key("function"))
        document = await self._store.get_document(NAMESPACE, name, now=self._clock.for_store())
        if document is None:
            return await self._change(name, lambda now: now or new)
        self._readings.pop(name, None)  # which may say for another second that there is none
        return _function(name, document.value)

    async def secret(self, name: str) -> str:
        """What the calls of a function in the functions folder are signed with; made where there is none yet."""
        return (await self.ensure(name)).secret

    async def remove(self, name: str) -> None:
        """Forget the function; its jobs stay, and fail. Raises `NotFound`."""
        removed = await self._store.delete_document(NAMESPACE, name, now=self._clock.for_store())
        self._readings.pop(name, None)
        if not removed:
            raise _not_found(name)

    async def activate(self, name: str) -> Function:
        """Let jobs call the function again. Raises `NotFound`."""
        return await self._change(name, lambda now: replace(_there(name, now), active=True))

    async def deactivate(self, name: str) -> Function:
        """Let its jobs fail without a call, until it is activated. Raises `NotFound`."""
        return await self._change(name, lambda now: replace(_there(name, now), active=False))

    async def rotate_secret(self, name: str) -> Function:
        """Sign its calls with a new secret, from within about a second on. Raises `NotFound`."""
        return await self._change(name, lambda now: replace(_there(name, now), secret=new_key("function")))

    async def _change(self, name: str, change: Callable[[Function | None], Function]) -> Function:
        def changed(document: Document | None) -> JSON:
            return _value(change(None if document is None else _function(name, document.value)))

        value = await change_document(self._store, NAMESPACE, name, changed, self._clock)
        self._readings.pop(name, None)
        return _function(name, value)

    def _remember(self, name: str) -> Reading[_Found]:
        if len(self._readings) >= REMEMBERED:  # jobs may name any number of functions that do not exist
            free = [other for other, reading in self._readings.items() if not reading.under_way]
            absent = [other for other in free if not (last := self._readings[other].last) or not last.function]
            for other in absent or free[:1]:  # what exists is worth more, above all in an outage
                del self._readings[other]
        reading = Reading(f"the function {name}", lambda: self._look(name), self._clock, self._logger, outage=self._outage)
        self._readings[name] = reading
        return reading

    async def _look(self, name: str) -> _Found:
        document = await self._store.get_document(NAMESPACE, name, now=self._clock.for_store())
        try:
            return _Found(None if document is None else _function(name, document.value))
        except BadFunction as error:
            return _Found(None, error)


def _not_found(name: str) -> NotFound:
    return NotFound(f"Function {name[:80]!r} not found")


def _there(name: str, function: Function | None) -> Function:
    if function is None:
        raise _not_found(name)
    return function


def _value(function: Function) -> JSON:
    """What the store keeps of a function."""
    return {
        "secret": function.secret,
        "active": function.active,
        "url": function.url,
        "method": function.method,
        "fail_on": None if function.fail_on is None else function.fail_on.text,
        "concurrency": function.concurrency,
    }


def _function(name: str, value: JSON) -> Function:
    """The function of a stored value. Raises `BadFunction` for one that is none."""
    match value:
        case {"secret": str(secret), "active": bool(active), **rest} if secret and secret.isprintable():
            url, fail_on, concurrency = rest.get("url"), rest.get("fail_on"), rest.get("concurrency")
            try:
                return Function(
                    checked_function_name(name),
                    secret,
                    url=None if url is None else checked_url(url),
                    method=checked_method(rest.get("method", "JOB")),
                    fail_on=None if fail_on is None else FailOn(str(fail_on)),
                    concurrency=None if concurrency is None else checked_concurrency(concurrency),
                    active=active,
                )
            except InvalidArgument as error:
                raise BadFunction(
                    f"what the store has as function {name!r} is bad: {error}; remove it and add it again"
                ) from None
        case _:
            raise BadFunction(f"what the store has as function {name[:80]!r} is none; remove it, and add it again")
