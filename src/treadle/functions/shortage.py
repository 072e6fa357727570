"""Shortages: what this process or its machine has run out of, which is no failure of a function's (F5)."""

from __future__ import annotations

import errno
import os
import socket
import ssl

from treadle.core.signals import CallFailed

_WORDS = {
    errno.EMFILE: "this process has too many open files",
    errno.ENFILE: "this machine has too many open files",
    errno.EADDRNOTAVAIL: "this machine has no free port left",
    errno.ENOMEM: "this machine has no memory left",
    errno.ENOBUFS: "this machine has no room left for what is sent",
}
NO_THREAD = "this machine lets this process start no further thread"
NO_PROCESS = "this machine lets this process start no further process"


class Shortage(CallFailed):
    """A call came to nothing for want of something here, `lacking` says what. It must cost its job no attempt."""

    def __init__(self, text: str, lacking: str) -> None:
        super().__init__(text)
        self.lacking = lacking


def lacking(error: BaseException) -> str | None:
    """What was lacking here where the error says so, in a few words; None where it is about something else."""
    match error:
        case ExceptionGroup():  # of several addresses, one that was not really tried may be the one that answers
            return next((words for one in error.exceptions if (words := lacking(one))), None)
        case socket.gaierror() if error.errno == socket.EAI_MEMORY:
            return _WORDS[errno.ENOMEM]
        case socket.gaierror() | ssl.SSLCertVerificationError():
            return _no_file()  # neither says it, where the files of the resolver or the certificates cannot be opened
        case OSError():
            return _WORDS.get(error.errno or 0)
        case RuntimeError() if "can't start new thread" in str(error):
            return NO_THREAD
        case _:
            return None


def check_for_files() -> None:
    """Raises the system's `OSError` where this process can open no file."""
    os.close(os.open(os.devnull, os.O_RDONLY))


def _no_file() -> str | None:
    try:
        check_for_files()
    except OSError as error:
        return _WORDS.get(error.errno or 0)
    return None
