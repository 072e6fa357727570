"""Watching a file with inotify, so that waiting for other processes costs nothing; where there is none, the store polls."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from collections.abc import Callable

_MODIFIED, _GONE = 0x2, 0x8000  # IN_MODIFY, IN_IGNORED: the watch has ended
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows
_PAUSE = 0.002  # seconds after an event, in which more of them are gathered


class Watch:
    """Calls `changed`, in a thread of its own, soon after the file was written to. Raises `OSError` where that cannot be."""

    def __init__(self, path: str, changed: Callable[[], None]) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError("this system has no inotify")
        self._system = ctypes.CDLL(None, use_errno=True)
        self._file = _checked(self._system.inotify_init1(os.O_CLOEXEC))
        try:
            self._watch = _checked(self._system.inotify_add_watch(self._file, os.fsencode(path), _MODIFIED))
        except OSError:
            os.close(self._file)
            raise
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=_listen, args=(self._file, self._closing, changed), name="treadle sqlite watch", daemon=True
        )
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it still watches: not after the file was deleted."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        self._system.inotify_rm_watch(self._file, self._watch)  # the thread is told of that as of any event
        self._thread.join()
        os.close(self._file)


def _listen(file: int, closing: threading.Event, changed: Callable[[], None]) -> None:
    while not closing.is_set():
        if _ended(os.read(file, 4096)):
            return
        changed()
        closing.wait(_PAUSE)


def _ended(events: bytes) -> bool:
    place = 0
    while place < len(events):
        _, mask, _, length = _EVENT.unpack_from(events, place)
        if mask & _GONE:
            return True
        place += _EVENT.size + length
    return False


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer
