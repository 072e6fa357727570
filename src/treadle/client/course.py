"""The course of one call, for both faces: how long it may take, and whether it is tried again after what happened."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Generic, TypeVar

import httpx2

from treadle.client.answers import retry_after
from treadle.client.clock import monotonic
from treadle.client.errors import TimedOut, UnexpectedAnswer, Unreachable
from treadle.client.operations import Operation
from treadle.client.settings import Settings, seconds

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 4.0  # seconds; doubled with each retry, and spread so that clients do not come in step
MOST_WAITED = 30.0  # seconds that a service may ask to wait; it is not asked again sooner, the error is raised instead
BUSY = frozenset({502, 503, 504})


class Course(Generic[T]):
    """Begun when it is made. The face sends, tells what happened, and pauses for as long as it is answered."""

    def __init__(self, operation: Operation[T], settings: Settings) -> None:
        self._operation = operation
        self._settings = settings
        self._timeout = settings.timeout if operation.timeout is None else seconds("timeout", operation.timeout)
        self._ends = monotonic() + self._timeout
        self._retries = 0

    @property
    def ends(self) -> float:
        """The moment at which the call must be over."""
        return self._ends

    @property
    def left(self) -> float:
        """The seconds until then; none is 0."""
        return max(self._ends - monotonic(), 0.0)

    @property
    def connecting_ends(self) -> float:
        """The moment at which a connection that is begun now must be there."""
        return min(monotonic() + self._settings.connect_timeout, self._ends)

    def request(self, timeouts: Mapping[str, float | None]) -> httpx2.Request:
        """The request, with what the transport is to hold to."""
        operation = self._operation
        return httpx2.Request(
            operation.method,
            self._settings.url + operation.path,
            headers={**self._settings.headers, **operation.headers, "apikey": self._settings.key},
            content=operation.content,
            extensions={"timeout": dict(timeouts)},
        )

    def answered(self, response: httpx2.Response) -> float | None:
        """How many seconds to pause before trying again, or None: the answer stands."""
        if not self._operation.repeatable or response.status_code not in BUSY:
            return None
        asked = retry_after(response) or 0.0
        return None if asked > MOST_WAITED else self._pause(asked)

    def failed(self, error: httpx2.HTTPError | TimeoutError) -> float:
        """How many seconds to pause before trying again. Raises the error of the call where it is over."""
        match error:
            case httpx2.LocalProtocolError():
                raise ValueError(f"the request cannot be sent: {error}") from error
            case httpx2.DecodingError():
                raise UnexpectedAnswer(f"{self._what} was answered with a body that cannot be decoded: {error}") from error
            case httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.PoolTimeout():
                sent = False  # a connection comes before the first byte
            case _:
                sent = True
        late = isinstance(error, (httpx2.TimeoutException, TimeoutError))
        if not sent or (self._operation.repeatable and not late):
            pause = self._pause()
            if pause is not None:
                return pause
        raise (self._late(sent) if late else self._broken(error, sent)) from error

    def _pause(self, asked: float = 0.0) -> float | None:
        """The seconds to wait before one more try, or None where no try or no time for it is left."""
        if self._retries >= self._settings.retries:
            return None
        longest = min(FIRST_PAUSE * 2.0**self._retries, LONGEST_PAUSE)
        wait = max(longest * random.uniform(0.5, 1.0), asked)  # noqa: S311  a spread, and no secret
        if wait >= self.left:
            return None
        self._retries += 1
        return wait

    def _late(self, sent: bool) -> TimedOut:
        if sent:
            return TimedOut(f"{self._what} was not over within {self._timeout:g} s{self._doubt}", sent=True)
        limit = min(self._settings.connect_timeout, self._timeout)
        return TimedOut(f"{self._what}: no connection within {limit:g} s{self._tries}", sent=False)

    def _broken(self, error: Exception, sent: bool) -> Unreachable:
        said = (str(error) or type(error).__name__) + self._tries
        if sent:
            return Unreachable(f"{self._what} broke off: {said}{self._doubt}", sent=True)
        where = f"no functions service can be reached at {self._settings.url}"
        return Unreachable(f"{where}: {said}; does `treadle serve` run there?", sent=False)

    @property
    def _what(self) -> str:
        return f"{self._operation.method} {self._settings.url}{self._operation.path}"

    @property
    def _tries(self) -> str:
        return f" (tried {self._retries + 1} times)" if self._retries else ""

    @property
    def _doubt(self) -> str:
        return "" if self._operation.repeatable else "; it may have been carried out all the same"
