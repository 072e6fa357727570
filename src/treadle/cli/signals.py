"""SIGTERM and SIGINT for a worker: the first asks for a graceful stop, the second for one at once (E24, L7).

Handlers are installed explicitly, and early, because a process that is PID 1 gets no signal that it has no handler
for. They are Python's and not the loop's, so that they still run where a job blocks the event loop.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

AT_ONCE = 3.0  # seconds that a stop at once may take, to give back what can be given back


def _plain(text: str) -> str:
    return f"treadle: {text}"


class StopSignals:
    """Counts the signals, wakes the loop, and sees to it that the process ends even if the loop does not answer.

    `before` is what a signal waits for that comes before the loop runs. `written` makes a line of what there is to say.
    """

    def __init__(self, before: str = "the application is imported") -> None:
        self.received = 0
        self.written: Callable[[str], str] = _plain
        self._before = before
        self._grace = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._events: tuple[asyncio.Event, asyncio.Event] | None = None

    def install(self) -> None:
        """Take the signals over; before anything slow, such as importing the application."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._receive)

    def attach(self, grace: float) -> tuple[asyncio.Event, asyncio.Event]:
        """Two events of the running loop, set at the first and at the second signal."""
        self._grace = grace
        self._loop = asyncio.get_running_loop()
        self._events = (asyncio.Event(), asyncio.Event())
        self._pass_on()
        return self._events

    def ended(self, status: int) -> None:
        """The work is over: whatever threads its jobs have left behind, the process ends with this status soon."""
        self._end_after(AT_ONCE, status, "")
        if sys.stdout is not None:
            sys.stdout.flush()  # what jobs have printed

    def say(self, text: str) -> None:
        """A line on standard error, past its buffer, in which the signal may have interrupted somebody."""
        try:
            os.write(2, f"{self.written(text)}\n".encode())
        except OSError:
            pass

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received += 1
        if self._loop is None:
            if self.received > 1:
                os._exit(1)  # nothing runs yet, and nothing is held
            self.say(f"stopping once {self._before}; a second signal ends that too")
            return
        match self.received:
            case 1:
                self.say(f"stopping within {self._grace:g} s; a second signal stops at once")
                # Twice the grace: one for the jobs, one for writing what became of them where the store is slow.
                self._end_after(2 * max(self._grace, 5.0) + 10.0, 1, "the stop took too long; jobs are left to their leases")
            case 2:
                self.say("stopping at once")
                self._end_after(AT_ONCE, 1, "stopped at once; jobs are left to their leases")
            case _:
                os._exit(1)
        try:
            self._loop.call_soon_threadsafe(self._pass_on)
        except RuntimeError:
            pass  # the loop has closed: the process is about to end

    def _pass_on(self) -> None:
        assert self._events is not None
        for event in self._events[: self.received]:
            event.set()

    def _end_after(self, seconds: float, status: int, why: str) -> None:
        """End the process from a thread of its own, unless it has ended by then."""

        def end() -> None:
            if why:
                self.say(why)
            os._exit(status)

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
