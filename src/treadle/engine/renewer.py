"""The renewer: keeps the leases of running jobs alive, from a thread that no handler can block (E20)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from treadle.core.errors import StoreError
from treadle.core.store import Claim, LeaseKeeper
from treadle.engine.clock import EngineClock


class _Hold:
    """One claim under renewal: since when its lease counts, and until when it is renewed."""

    __slots__ = ("since", "until")

    def __init__(self, since: float, until: float) -> None:
        self.since = since
        self.until = until


class Renewer:
    """Renews each lease once a third of it has passed, until the job's own time is over.

    The thread lives only while there is something to renew.
    """

    def __init__(
        self,
        lease: float,
        open_keeper: Callable[[], LeaseKeeper],
        clock: EngineClock,
        logger: logging.Logger,
        on_lost: Callable[[Claim], None],
    ) -> None:
        self._lease = lease
        self._open_keeper = open_keeper
        self._clock = clock
        self._logger = logger
        self._on_lost = on_lost
        self._holds: dict[Claim, _Hold] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, claim: Claim, longest: float) -> None:
        """Keep the claim's lease, which began just now, alive for at most `longest` seconds."""
        now = self._clock.seconds()
        self._holds[claim] = _Hold(now, now + longest)
        if self._thread is None:
            self._start()

    def extended(self, claim: Claim, seconds: float) -> None:
        """Take note that the lease was set by hand to `seconds` from now, so that a renewal does not shorten it."""
        hold = self._holds.get(claim)
        if hold is not None:
            now = self._clock.seconds()
            hold.since = now + max(0.0, seconds - self._lease)
            hold.until = max(hold.until, now + seconds)

    def remove(self, claim: Claim) -> None:
        """Stop renewing the claim."""
        self._holds.pop(claim, None)

    def stop(self) -> None:
        """End the thread, wait for it, and forget all claims; safe twice."""
        self._holds.clear()
        with self._lock:
            thread = self._thread
        self._wake.set()
        if thread is not None:
            thread.join(timeout=5.0)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._wake.clear()
                self._thread = threading.Thread(target=self._run, name="treadle-renewer", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        unsubscribe = self._clock.on_move(self._wake.set)
        keeper: LeaseKeeper | None = None
        pause = self._lease / 3
        try:
            while True:
                self._wake.wait(pause)
                self._wake.clear()
                if self._may_rest():
                    return
                pause = self._lease / 3
                due = self._due()
                if not due:
                    continue
                try:
                    if keeper is None:
                        keeper = self._open_keeper()
                    held = keeper.renew(due, self._lease, self._clock.for_store())
                except StoreError as error:
                    pause = self._lease / 10
                    self._logger.warning("leases could not be renewed, trying again in %.1f s: %s", pause, error)
                except Exception:
                    pause = self._lease / 10
                    self._logger.exception("leases could not be renewed, trying again in %.1f s", pause)
                else:
                    self._note(due, held)
        finally:
            unsubscribe()
            if keeper is not None:
                keeper.close()

    def _may_rest(self) -> bool:
        """Whether the thread may end. It gives its place up first and then looks, so that no `add` falls in between."""
        with self._lock:
            thread, self._thread = self._thread, None
            if self._holds:
                self._thread = thread
                return False
            return True

    def _due(self) -> list[Claim]:
        """The claims to renew now; those whose time is over are let go."""
        now = self._clock.seconds()
        due = []
        for claim, hold in list(self._holds.items()):
            if now >= hold.until:
                self._holds.pop(claim, None)
            elif now - hold.since >= self._lease / 3 * 0.9:  # a wake-up may come a moment early
                due.append(claim)
        return due

    def _note(self, due: list[Claim], held: set[Claim]) -> None:
        now = self._clock.seconds()
        for claim in due:
            hold = self._holds.get(claim)
            if hold is None:
                continue  # ended while it was renewed
            if claim in held:
                hold.since = max(hold.since, now)
            else:
                self._holds.pop(claim, None)
                self._on_lost(claim)
