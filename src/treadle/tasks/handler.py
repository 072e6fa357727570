"""A registered handler: still callable, and with a typed enqueue of its own (E11)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack

from treadle.core.errors import InvalidArgument, InvalidPayload
from treadle.core.job import Enqueued
from treadle.core.transitions import clipped_error
from treadle.tasks.codec import Codec
from treadle.tasks.options import EnqueueOptions

if TYPE_CHECKING:
    from treadle.tasks.app import Tasks

Payload = TypeVar("Payload")
Rest = ParamSpec("Rest")
Result = TypeVar("Result")


class Handler(Generic[Payload, Rest, Result]):
    """What `@tasks.handler(name)` leaves in the function's place."""

    def __init__(
        self, tasks: Tasks, name: str, function: Callable[Concatenate[Payload, Rest], Result], codec: Codec | None
    ) -> None:
        # Its name, module and text only: what else a callable object keeps as its own is not the handler's.
        functools.update_wrapper(self, function, updated=())
        self._tasks = tasks
        self._codec = codec
        self.name = name
        self.function = function

    def __call__(self, payload: Payload, *args: Rest.args, **kwargs: Rest.kwargs) -> Result:
        """Call the function itself, with nothing stored."""
        return self.function(payload, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<treadle handler {self.name!r}>"

    async def enqueue(self, payload: Payload, **options: Unpack[EnqueueOptions]) -> Enqueued:
        """`tasks.enqueue` for this name; a payload of the annotated type is turned into JSON (E4)."""
        return await self._tasks.enqueue(self.name, self._encoded(payload), **options)

    def enqueue_sync(self, payload: Payload, **options: Unpack[EnqueueOptions]) -> Enqueued:
        """The blocking twin of `enqueue`."""
        return self._tasks.sync.enqueue(self.name, self._encoded(payload), **options)

    def _encoded(self, payload: Payload) -> Any:
        if self._codec is None:
            return payload
        try:
            encoded = self._codec.encode(payload)
        except InvalidArgument as error:
            raise InvalidArgument(f"the payload of {self.name!r} cannot be stored: {error}") from None
        except Exception as error:  # whatever the library of the annotated type raises
            raise InvalidArgument(
                f"the payload of {self.name!r} cannot be turned into JSON: {clipped_error(str(error))}"
            ) from None
        try:
            self._codec.decode(encoded)  # now, and not in a job that would fail at each attempt
        except InvalidPayload as error:
            raise InvalidArgument(f"{self.name!r} would not take what this payload becomes as JSON: {error}") from None
        return encoded
