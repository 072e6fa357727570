"""The worker: claims what its free slots can start at once, has it run, and stops when told to (E18 to E28)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from treadle.core.job import Job
from treadle.core.store import Claim
from treadle.engine.alarm import Alarm
from treadle.engine.attempts import ABANDON_AFTER, Attempts
from treadle.engine.claimer import Claimer
from treadle.engine.intervals import Intervals
from treadle.engine.outage import Outage
from treadle.engine.service import Service
from treadle.engine.setup import Setup

PATIENCE = 5.0  # seconds that the store has at least, in a stop and after a drain, for what is under way
BACKLOG = 5000  # endings not yet written at which no more is claimed


class Worker:
    """Claims and runs the jobs of one registry, in one event loop.

    `start` runs it in the background; `run_due` does what is due now and returns.
    """

    def __init__(self, setup: Setup, tasks: Any, intervals: Intervals) -> None:
        self._concurrency = setup.settings.concurrency
        self._poll_interval = setup.settings.poll_interval
        self._clock = setup.clock
        self._logger = setup.logger
        self._intervals = intervals
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm()
        self._outage = Outage("claiming", setup.logger)
        # Whether the last claim took all there was, so that a slot that becomes free is no reason to look again.
        self._sated = False
        self._draining = 0
        self._reserved = 0  # slots that claims under way may fill
        self._answered = Alarm()  # rung when a claim was answered, for drains that wait for nothing else
        self._expecting = 0  # how many do
        self._starved = False  # whether the background worker sleeps for want of slots that drains may give back
        self._stopping = 0  # how many stops are under way
        self._deadline = math.inf  # when the grace of the strictest of them is over
        self._task: asyncio.Task[None] | None = None
        self._driver: asyncio.Task[Any] | None = None
        self._torn = False
        self._attempts = attempts = Attempts(setup, tasks, intervals, self._rouse, self._torn_down)
        self._running, self._settler = attempts.running, attempts.settler
        self._claimer = Claimer(setup, lambda: attempts.executor.threads_taken)

    # -- the life of the worker

    @property
    def running(self) -> Sequence[Job]:
        """The jobs that run here now."""
        return [execution.job for execution in self._running.values()]

    @property
    def stops(self) -> int:
        """How many stops there have been: what began to claim before the latest one claims no more."""
        return self._attempts.stops

    def wake(self) -> None:
        """Look for jobs now; from any thread."""
        self._alarm.ring()

    async def keep(self, claims: Iterable[Claim]) -> set[Claim]:
        """Renew those of the claims that are held here; answers which those are."""
        return await self._attempts.keep(claims)

    def refuse_handlers(self, advice: str) -> None:
        """Raises `RuntimeError`, with the advice, where a handler that runs here calls: it would wait for its own end."""
        if self._attempts.is_waiting_for_itself():
            raise RuntimeError(f"a handler must not wait for its own worker; {advice}")

    def start(self) -> None:
        """Begin to claim and run in the background; safe twice."""
        if self._task is None:
            self._torn = False
            self._task = self._loop.create_task(self._serve(self.stops), name="treadle-worker")

    async def stop(self, grace: float, services: Sequence[Service] = ()) -> None:
        """Claim nothing more, let running jobs finish for `grace` seconds, and give back the rest (E24).

        A job whose code still runs after that is left to its lease. The services are stopped while results are written. Safe
        twice, and before `start`; the shortest grace holds for all stops under way. One that is cancelled leaves what runs to
        its end.
        """
        self._attempts.stops += 1
        self._stopping += 1
        self._deadline = min(self._deadline, self._loop.time() + grace)
        self._alarm.ring()
        try:
            await self._stop(grace, services)
        except asyncio.CancelledError:
            self._torn = True
            raise
        finally:
            self._stopping -= 1
            if not self._stopping:
                self._deadline = math.inf
            self._alarm.ring()

    async def _stop(self, grace: float, services: Sequence[Service]) -> None:
        attempts, time = self._attempts, self._loop.time
        patience = time() + PATIENCE
        task, self._task = self._task, None
        try:
            await self._while(lambda: bool(self._running or self._reserved), lambda: self._deadline)
            attempts.cut_short()
            last = time() + min(1.0, max(grace, ABANDON_AFTER))
            await self._while(lambda: bool(self._running), lambda: last)
            left = attempts.leave()
            await self._while(lambda: bool(self._reserved), lambda: max(self._deadline, patience))
        finally:
            if task is not None:
                task.cancel()  # if it still waits for a claim, this is never answered: its jobs are left to their leases
                await asyncio.gather(task, return_exceptions=True)
        writing = self._settler.flush(max(self._deadline - time(), PATIENCE))
        unwritten, *_ = await asyncio.gather(writing, *(service.stop() for service in services))
        if left or unwritten:
            self._logger.warning(
                "stopped with %d job(s) still running and %d result(s) not written; they are left to their leases: %s",
                len(left),
                unwritten,
                ", ".join(f"{execution.job.name} {execution.job.id}" for execution in left[:5]),
            )
        attempts.slowness.end()
        await attempts.renewer.stop()

    async def _while(self, busy: Callable[[], bool], deadline: Callable[[], float]) -> None:
        """Wait as long as it is busy, at most until the deadline, which a stricter stop may bring forward."""
        while busy() and (left := deadline() - self._loop.time()) > 0:
            await self._alarm.wait(left)

    def _may_claim(self, stops: int) -> bool:
        """Whether what began when there had been so many stops may go on claiming."""
        return self._attempts.stops == stops and not self._stopping

    async def _serve(self, stops: int) -> None:
        unsubscribe = self._clock.on_move(self._alarm.ring)
        try:
            while self._may_claim(stops):
                try:
                    pause = await self._round(stops)
                    self._outage.over()
                except Exception as error:
                    pause = self._outage.failed(error)
                if pause == 0:
                    await asyncio.sleep(0)  # let handlers, and the host application, have their turn
                elif self._may_claim(stops):
                    await self._alarm.wait(pause)
        except asyncio.CancelledError:
            self._torn = True
            raise
        finally:
            unsubscribe()

    async def _round(self, stops: int) -> float | None:
        """Claim and start what is due; answers how long to sleep, None for until rung."""
        free = self._free()
        self._sated = False  # what ends while the claim is under way may make room that the claim does not know of
        if free <= 0:
            self._starved = True  # the slots may be a drain's that ends before its jobs do, or finds none: they must ring
            return self._poll_interval if self._settler.backlog >= BACKLOG else None
        self._starved = False
        jobs = await self._claim(free)
        self._attempts.begin(jobs, stops, set(), [])
        self._sated = len(jobs) < free and not self._claimer.held_back
        return 0.0 if len(jobs) >= free else min(self._claimer.next_in, self._poll_interval)

    async def run_due(self, stops: int) -> int:
        """Run every job that is due now, each once; answers how many attempts were run (E25).

        `stops` is how many there had been when the caller began: after another one nothing more is claimed, and what this has
        begun ends with that one. What a started worker runs or claims meanwhile is waited for too.
        """
        self.refuse_handlers("enqueue, and let the worker run it")
        ran: set[str] = set()
        again: list[Claim] = []
        self._torn = False
        self._driver = asyncio.current_task()
        self._draining += 1
        try:
            try:
                while self._may_claim(stops):
                    jobs = await self._claim(self._free())
                    self._attempts.begin(jobs, stops, ran, again)  # what is due again already lets the rest have its turn
                    if jobs:
                        await asyncio.sleep(0)
                    elif self._reserved:
                        await self._answer()
                    elif self._running or not self._settler.idle:
                        await self._alarm.wait(self._poll_interval)
                    else:
                        break
            finally:
                for claim in again:
                    self._attempts.give_back(claim)
            while self._stopping and not ran.isdisjoint(self._running):
                await self._alarm.wait()
        except asyncio.CancelledError:
            self._torn = True
            raise
        finally:
            self._draining -= 1
            if unwritten := await self._settler.flush(PATIENCE):
                self._logger.error("%d result(s) could not be written; the jobs are left to their leases", unwritten)
        return len(ran)

    def _torn_down(self) -> bool:
        """Whether a handler's cancellation came with that of the whole loop, and so is no doing of its own."""
        attempt = asyncio.current_task()
        if attempt is None or not attempt.cancelling():
            return False
        drivers = (self._task, self._driver)
        return self._torn or self._stopping > 0 or any(task is not None and task.cancelling() for task in drivers)

    # -- claiming

    def _free(self) -> int:
        if self._settler.backlog >= BACKLOG:
            return 0
        return self._concurrency - len(self._running) - self._reserved

    async def _claim(self, free: int) -> list[tuple[Claim, Job]]:
        if free <= 0:
            return []
        self._reserved += free
        jobs: list[tuple[Claim, Job]] = []
        try:
            jobs = await self._claimer.claim(free)
            if scheduled := [job for _, job in jobs if job.schedule is not None]:
                await self._intervals.prepare(scheduled)
        except BaseException:
            for claim, _ in jobs:
                self._attempts.give_back(claim)
            raise
        finally:
            self._reserved -= free
            if self._expecting:
                self._answered.ring_here()
            if self._starved or self._stopping:
                self._starved = False  # once: a drain that rings itself awake each time would keep all others from their turn
                self._alarm.ring_here()
        for claim, _ in jobs[free:]:
            self._attempts.give_back(claim)  # of an answer that was lost, and no slot for it now
        return jobs[:free]

    async def _answer(self) -> None:
        """Wait until a claim that is under way was answered."""
        self._expecting += 1
        try:
            await self._answered.wait(self._poll_interval)
        finally:
            self._expecting -= 1

    def _rouse(self, again: bool) -> None:
        """Slots became free, or results were written, which made jobs due `again` or not: wake who waits for that, if any.

        Nobody does where the store had no more to claim, and no stop or drain is under way.
        """
        if again or not self._sated or self._stopping or self._draining:
            self._alarm.ring_here()
