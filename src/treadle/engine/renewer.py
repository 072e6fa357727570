"""The renewer: keeps the leases of running jobs alive, from a thread that no handler can block (E20)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from treadle.core.errors import StoreError
from treadle.core.store import Claim, LeaseKeeper
from treadle.engine.alarm import Alarm
from treadle.engine.clock import EngineClock

PATIENCE = 5.0  # seconds that a stop waits for a renewal that is under way


class _Hold:
    """One claim under renewal: since when its lease counts, until when it is renewed, and how long it was extended by hand."""

    __slots__ = ("extended", "since", "until")

    def __init__(self, since: float, until: float) -> None:
        self.since = since
        self.until = until
        self.extended = 0.0


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
        self._at_end: list[Callable[[], None]] = []

    def add(self, claims: Iterable[Claim], longest: float) -> None:
        """Keep the leases of the claims, which began just now, alive for at most `longest` seconds.

        Raises what the system says where it has no thread for that, with nothing added.
        """
        now = self._clock.seconds()
        for claim in claims:
            self._holds[claim] = _Hold(now, now + longest)
        if self._thread is None and self._holds:
            try:
                self._start()
            except BaseException:
                for claim in claims:
                    self._holds.pop(claim, None)
                raise

    def limit(self, claim: Claim, longest: float) -> None:
        """Renew the claim for at most `longest` seconds from now."""
        hold = self._holds.get(claim)
        if hold is not None:
            hold.until = self._clock.seconds() + longest

    def extended(self, claim: Claim, seconds: float) -> None:
        """Take note that the lease was set by hand to `seconds` from now.

        It is renewed as often as any, up to that moment at least. So a renewal that was under way meanwhile, and has made the
        lease shorter again, is put right by the next one.
        """
        hold = self._holds.get(claim)
        if hold is not None:
            hold.extended = self._clock.seconds() + seconds
            hold.until = max(hold.until, hold.extended)

    def holds(self, claim: Claim) -> bool:
        """Whether the claim is one that is renewed here."""
        hold = self._holds.get(claim)
        return hold is not None and self._clock.seconds() < hold.until

    def remove(self, claim: Claim) -> None:
        """Stop renewing the claim."""
        self._holds.pop(claim, None)

    async def stop(self) -> None:
        """Forget all claims, end the thread, and wait for it, at most `PATIENCE` seconds; safe twice.

        The thread itself tells that it has ended: the threads of the loop's executor may all be held by handlers.
        """
        self._holds.clear()
        with self._lock:
            if self._thread is None:
                return
            ended = Alarm()
            self._at_end.append(ended.ring)
        self._wake.set()
        await ended.wait(PATIENCE)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._wake.clear()
                thread = threading.Thread(target=self._run, name="treadle-renewer", daemon=True)
                self._thread = thread  # before it runs, since it looks for itself there
                try:
                    thread.start()
                except BaseException:
                    self._thread = None
                    raise

    def _run(self) -> None:
        unsubscribe = self._clock.on_move(self._wake.set)
        keepers: list[LeaseKeeper] = []  # none or one, opened for the first renewal
        pause = self._lease / 3
        try:
            while True:
                self._wake.wait(pause)
                self._wake.clear()
                if self._may_rest():
                    return
                pause = self._round(keepers)
        finally:
            unsubscribe()
            for keeper in keepers:
                with suppress(Exception):
                    keeper.close()
            self._end()

    def _may_rest(self) -> bool:
        """Whether the thread may end. It gives its place up first and then looks, so that no `add` falls in between."""
        with self._lock:
            thread, self._thread = self._thread, None
            if self._holds:
                self._thread = thread
                return False
            return True

    def _end(self) -> None:
        """Give the place up, if it is still there: a thread that died is replaced at the next `add`."""
        with self._lock:
            if self._thread is threading.current_thread():
                self._thread = None
            if self._thread is not None:
                return  # another one is at work already, and who waits for an end waits for its
            told, self._at_end = self._at_end, []
        for tell in told:
            tell()

    def _round(self, keepers: list[LeaseKeeper]) -> float:
        """Renew what is due; answers the seconds until the next look. Raises nothing, since nobody else renews (E20)."""
        try:
            if due := self._due():
                if not keepers:
                    keepers.append(self._open_keeper())
                self._note(due, self._renewed(keepers[0], due))
            return self._lease / 3
        except Exception as error:
            pause = self._lease / 10
            with suppress(Exception):  # a log filter of the application's own may raise
                self._tell(error, pause)
            return pause

    def _due(self) -> dict[Claim, float]:
        """The claims to renew now, and for how many seconds each; those whose time is over are let go."""
        now = self._clock.seconds()
        due = {}
        for claim, hold in list(self._holds.items()):
            if now >= hold.until:
                self._holds.pop(claim, None)
            elif now - hold.since >= self._lease / 3 * 0.9:  # a wake-up may come a moment early
                due[claim] = max(self._lease, hold.extended - now)
        return due

    def _renewed(self, keeper: LeaseKeeper, due: dict[Claim, float]) -> set[Claim]:
        """Renew the claims; answers those that still held."""
        usual = [claim for claim, seconds in due.items() if seconds <= self._lease]
        held = keeper.renew(usual, self._lease, self._clock.for_store()) if usual else set()
        for claim, seconds in due.items():
            if seconds > self._lease:
                held = held | keeper.renew([claim], seconds, self._clock.for_store())
        return held

    def _note(self, due: Iterable[Claim], held: set[Claim]) -> None:
        now = self._clock.seconds()
        for claim in due:
            hold = self._holds.get(claim)
            if hold is None:
                continue  # ended while it was renewed
            if claim in held:
                hold.since = now
            else:
                self._holds.pop(claim, None)
                with suppress(Exception):  # as above
                    self._on_lost(claim)

    def _tell(self, error: Exception, pause: float) -> None:
        if isinstance(error, StoreError):
            self._logger.warning("leases could not be renewed, trying again in %.1f s: %s", pause, error)
        else:
            self._logger.error("leases could not be renewed, trying again in %.1f s", pause, exc_info=error)
