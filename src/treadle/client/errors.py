"""What a call of the functions service can end with other than its result (F16). No message holds the key."""

from __future__ import annotations


class ClientError(Exception):
    """The base of all. `sent` says whether the request may have reached the service, and so may have been carried out."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent

    def __reduce__(self) -> tuple[object, ...]:
        # Keywords are not in `args`, by which an exception is pickled on its way out of a process pool.
        return _again, (type(self), self.args, self.__dict__)


class ApiError(ClientError):
    """The service answered with an error: `status` as in HTTP, `code` for programs, `message` for people.

    `retry_after` is the seconds that the service asked to wait, or None.
    """

    def __init__(self, status: int, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message, sent=True)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.message} ({self.status} {self.code})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.status}, {self.code!r}, {self.message!r})"


class Unreachable(ClientError):
    """No connection to the service could be made, or it broke before the answer was whole."""


class TimedOut(ClientError):
    """The call was not over within its `timeout`, or a connection could not be made within its `connect_timeout`."""


class UnexpectedAnswer(ClientError):
    """The answer is not one that the functions service gives: a redirect, no JSON, or JSON of another shape."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=True)


def _again(kind: type[ClientError], args: tuple[object, ...], state: dict[str, object]) -> ClientError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error
