"""Why a call failed, in one line that tells the reasons apart and names the function (F5)."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from treadle.core.signals import CallFailed
from treadle.functions.caller.place import Place
from treadle.functions.shortage import Shortage, lacking

_UNKNOWN = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


@dataclass(frozen=True, slots=True)
class Unanswered:
    """What became of a request that got no answer: `what` the function did, or at which point its time was up.

    `unseen`: over a connection that was kept from an earlier call, this means that it had been closed by then, and that
    nobody has seen the request. `lacking` is what was lacking here, if it was that.
    """

    what: str
    timed_out: bool = False
    unseen: bool = False
    lacking: str | None = None

    def failure(self, name: str, seconds: float) -> CallFailed:
        """The failure of a call that had so many seconds."""
        if self.timed_out:
            return timed_out(name, seconds, self.what)
        if self.lacking is not None:
            return Shortage(f"Function {name!r} cannot be reached: {self.lacking}", self.lacking)
        return CallFailed(f"Function {name!r} cannot be reached: it {self.what}")


def timed_out(name: str, seconds: float, doing: str) -> CallFailed:
    """The failure of a call whose time was up."""
    shown = round(seconds, 2 if seconds < 10 else 1)  # it is what was left of the attempt's time, so it is never even
    return CallFailed(f"Function {name!r} timed out after {shown:g} s, {doing}")


def unreachable(name: str, place: Place, error: Exception) -> CallFailed:
    """The failure of a call that came to no connection; a `Shortage` where it did for want of something here."""
    if (what := lacking(error)) is not None:
        return Shortage(f"Function {name!r} cannot be reached: {what}", what)
    return CallFailed(f"Function {name!r} cannot be reached: {_reason(place, error)}")


def misplaced(name: str) -> CallFailed:
    """The failure of a call whose URL is none. It is not quoted: what was taken for a port may be a password."""
    return CallFailed(f"Function {name!r} cannot be reached: its URL must look like http://host:port or https://host/path")


def tls_words(error: ssl.SSLError) -> str:
    """What OpenSSL says, for people."""
    return (error.reason or "unknown reason").lower().replace("_", " ")


def _reason(place: Place, error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"the TLS certificate of {place.where} is not accepted ({error.verify_message.rstrip('.')})"
        case ssl.SSLError():
            return f"TLS with {place.where} failed ({tls_words(error)})"
        case UnicodeError():
            return f"the host name {place.host!r} is unknown"
        case socket.gaierror() if error.errno in _UNKNOWN:
            return f"the host name {place.host!r} is unknown"
        case socket.gaierror():
            return f"the host name {place.host!r} is unknown for now ({(error.strerror or 'no reason given').lower()})"
        case OSError():
            return _of_system(place, [error])
        case ExceptionGroup():
            return _of_system(place, error.exceptions)
        case _:
            return f"the connection to {place.where} failed ({type(error).__name__})"


def _of_system(place: Place, errors: Sequence[Exception]) -> str:
    """The most telling of the reasons that the system gave, one for each address of the host."""
    numbers = {error.errno for error in errors if isinstance(error, OSError) and error.errno}
    for number, words in (
        (errno.ECONNREFUSED, f"connection refused by {place.where}"),
        (errno.ENETUNREACH, f"the network of {place.where} is unreachable"),
        (errno.EHOSTUNREACH, f"there is no route to {place.where}"),
        (errno.ETIMEDOUT, f"{place.where} did not take the connection up"),
        (errno.ECONNRESET, f"the connection was reset by {place.where}"),
    ):
        if number in numbers:
            return words
    if numbers:
        return f"the connection to {place.where} failed ({os.strerror(min(numbers)).lower()})"
    if place.tls and isinstance(errors[0], ConnectionError):
        return f"TLS with {place.where} failed (the connection was closed during the handshake)"
    return f"the connection to {place.where} failed ({type(errors[0]).__name__})"
