"""The worker: claims what its free slots can start at once, runs it, and hands on what became of it (E18 to E28)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

from treadle.core.job import Job
from treadle.core.outcome import Done, Outcome, Released
from treadle.core.store import Claim, Ending
from treadle.engine.alarm import Alarm
from treadle.engine.claimer import Claimer
from treadle.engine.execution import STOPPED, Execution
from treadle.engine.executor import Executor
from treadle.engine.fields import fields
from treadle.engine.intervals import Intervals
from treadle.engine.outage import Outage
from treadle.engine.renewer import Renewer
from treadle.engine.settler import Settler
from treadle.engine.setup import Setup
from treadle.engine.slowness import Slowness

ABANDON_AFTER = 0.25  # seconds that a cancelled handler gets to clean up before its slot is freed without it
PATIENCE = 5.0  # seconds that a stop without grace gives the store for what is under way
BUSY = 1.0  # seconds until a job is offered again whose lost attempt still runs here
BACKLOG = 5000  # endings not yet written at which no more is claimed


class Worker:
    """Claims and runs the jobs of one registry, in one event loop.

    `start` runs it in the background; `run_due` does what is due now and returns.
    """

    def __init__(self, setup: Setup, tasks: Any, intervals: Intervals) -> None:
        self._setup = setup
        self._store = setup.store
        self._registry = setup.registry
        self._concurrency = setup.settings.concurrency
        self._poll_interval = setup.settings.poll_interval
        self._clock = setup.clock
        self._logger = logger = setup.logger
        self._intervals = intervals
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm()
        self._outage = Outage("claiming", logger)
        self._running: dict[str, Execution] = {}
        # Whether the last claim took all there was, so that a slot that becomes free is no reason to look again.
        self._sated = False
        self._draining = 0
        self._reserved = 0
        self._stopping = 0  # how many stops are under way
        self.stops = 0  # how many there have been: what began to claim before the latest one claims no more
        self._task: asyncio.Task[None] | None = None
        self._driver: asyncio.Task[Any] | None = None
        self._torn = False
        self._slowness = Slowness(setup.profile.warn_after, self._running, self._loop, logger)
        self._executor = Executor(setup, tasks, self._settle, self._extend, self._torn_down)
        self._renewer = Renewer(setup.profile.lease, setup.store.lease_keeper, setup.clock, logger, self._lease_lost)
        self._settler = Settler(setup.store, setup.clock, logger, self._written)
        self._claimer = Claimer(setup, lambda: self._executor.threads_taken)

    # -- the life of the worker

    @property
    def running(self) -> Sequence[Job]:
        """The jobs that run here now."""
        return [execution.job for execution in self._running.values()]

    def wake(self) -> None:
        """Look for jobs now; from any thread."""
        self._alarm.ring()

    def start(self) -> None:
        """Begin to claim and run in the background; safe twice."""
        if self._task is None:
            self._torn = False
            self._task = self._loop.create_task(self._serve(self.stops), name="treadle-worker")

    async def stop(self, grace: float) -> None:
        """Claim nothing more, let running jobs finish for `grace` seconds, and give back the rest (E24).

        A job whose code still runs after that is left to its lease. Safe twice, and before `start`.
        """
        self.stops += 1
        self._stopping += 1
        try:
            await self._stop(grace)
        finally:
            self._stopping -= 1

    async def _stop(self, grace: float) -> None:
        self._alarm.ring()
        task, self._task = self._task, None
        if task is not None:
            await asyncio.wait({task}, timeout=max(grace, PATIENCE))
            task.cancel()  # a claim that is never answered: its jobs are left to their leases
            await asyncio.gather(task, return_exceptions=True)
        await self._await_running(grace)
        for execution in list(self._running.values()):
            self._cut_short(execution, STOPPED)
        await self._await_running(min(1.0, max(grace, ABANDON_AFTER)))
        left = list(self._running.values())
        for execution in left:
            execution.settled = True
        self._running.clear()
        unwritten = await self._settler.flush(max(grace, PATIENCE))
        if left or unwritten:
            self._logger.warning(
                "stopped with %d job(s) still running and %d result(s) not written; they are left to their leases: %s",
                len(left),
                unwritten,
                ", ".join(f"{execution.job.name} {execution.job.id}" for execution in left[:5]),
            )
        self._slowness.end()
        await asyncio.to_thread(self._renewer.stop)

    async def _await_running(self, seconds: float) -> None:
        deadline = self._loop.time() + seconds
        while self._running and (left := deadline - self._loop.time()) > 0:
            await self._alarm.wait(left)

    def _may_claim(self, stops: int) -> bool:
        """Whether what began when there had been so many stops may go on claiming."""
        return self.stops == stops and not self._stopping

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

    async def run_due(self, stops: int) -> int:
        """Run every job that is due now, each once; answers how many attempts were run (E25).

        `stops` is how many there had been when the caller began: after another one nothing more is claimed.
        """
        ran: set[str] = set()
        again: list[Claim] = []
        self._torn = False
        self._driver = asyncio.current_task()
        # One that is begun within the claiming has no task yet, and only that one can run this.
        if any(execution.task in (None, self._driver) for execution in self._running.values()):
            raise RuntimeError("a handler must not wait for its own worker; enqueue, and let the worker run it")
        self._draining += 1
        try:
            while self._may_claim(stops):
                jobs = await self._claim(self._free())
                for claim, job in jobs:
                    if job.id in ran:
                        again.append(claim)  # due again already: kept aside, so that the rest gets its turn
                        self._renewer.add(claim, self._setup.profile.max_run)
                    else:
                        ran.add(job.id)
                        self._begin(claim, job)
                if not jobs and not self._running and self._settler.idle:
                    break
                if jobs:
                    await asyncio.sleep(0)
                else:
                    await self._alarm.wait(self._poll_interval)
        except asyncio.CancelledError:
            self._torn = True
            raise
        finally:
            self._draining -= 1
            for claim in again:
                self._settler.add(Ending(claim, Released()))
            await self._settler.flush(5.0)
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

    async def _round(self, stops: int) -> float | None:
        """Claim and start what is due; answers how long to sleep, None for until rung."""
        free = self._free()
        if free <= 0:
            self._sated = False  # the slots may be a drain's that ends before its jobs do: a freed one must ring
            return self._poll_interval if self._settler.backlog >= BACKLOG else None
        self._sated = False  # what ends while the claim is under way may make room that the claim does not know of
        jobs = await self._claim(free)
        for claim, job in jobs:
            if not self._may_claim(stops):
                self._settler.add(Ending(claim, Released()))  # claimed in the moment of stopping
            else:
                self._begin(claim, job)
        self._sated = len(jobs) < free and not self._claimer.held_back
        return 0.0 if len(jobs) >= free else min(self._claimer.next_in, self._poll_interval)

    async def _claim(self, free: int) -> list[tuple[Claim, Job]]:
        if free <= 0:
            return []
        self._reserved += free
        try:
            jobs = await self._claimer.claim(free)
            if scheduled := [job for _, job in jobs if job.schedule is not None]:
                await self._intervals.prepare(scheduled)
        finally:
            self._reserved -= free
        for claim, _ in jobs[free:]:
            self._settler.add(Ending(claim, Released()))  # of an answer that was lost, and no slot for it now
        return jobs[:free]

    # -- running

    def _begin(self, claim: Claim, job: Job) -> None:
        entry = self._registry.get(job.name)
        if entry is None or job.id in self._running:
            self._settler.add(Ending(claim, Released(BUSY)))
            return
        execution = Execution(job, claim, entry, self._loop.time())
        self._running[job.id] = execution
        timeout = self._executor.timeout(execution)
        if timeout is not None:
            execution.timer = self._loop.call_later(timeout, self._time_out, execution)
        if self._setup.profile.renews:
            longest = self._setup.profile.max_run if timeout is None else timeout + 2 * ABANDON_AFTER + 1.0
            self._renewer.add(claim, longest)
        self._slowness.begin()
        execution.task = _started(self._loop, self._executor.run(execution))

    def _settle(self, execution: Execution, outcome: Outcome | None) -> None:
        """Hand on what the attempt became, once, and free its slot; None leaves the job to its lease."""
        if execution.settled:
            return
        execution.settled = True
        if execution.timer is not None:
            execution.timer.cancel()
        self._running.pop(execution.job.id, None)
        if outcome is None:
            self._renewer.remove(execution.claim)
            return
        if self._setup.observer is not None:
            self._setup.observer.ended(execution.job, outcome, self._loop.time() - execution.started)
        following = None if execution.job.schedule is None else self._intervals.following(execution.job)
        self._settler.add(Ending(execution.claim, outcome, following))
        if not self._content():
            self._alarm.ring_here()

    def _content(self) -> bool:
        """Whether nobody waits for jobs to end: the store had no more to claim, and no stop or drain is under way."""
        return self._sated and not self._stopping and not self._draining

    def _written(self, endings: Iterable[Ending]) -> None:
        again = False
        for ending in endings:
            self._renewer.remove(ending.claim)
            again = again or ending.following is not None or not isinstance(ending.outcome, Done)
        if again or not self._content():
            self._alarm.ring()

    # -- ending early

    def _time_out(self, execution: Execution) -> None:
        self._cut_short(execution, f"timed out after {self._executor.timeout(execution):g} s")
        execution.timer = self._loop.call_later(ABANDON_AFTER, self._abandon, execution)

    def _abandon(self, execution: Execution) -> None:
        """Free the slot of an attempt that did not end when it was told to (E23)."""
        if not execution.settled:
            self._logger.warning(
                "%s %s did not end at its timeout and was abandoned",
                execution.job.name,
                execution.job.id,
                extra=fields(execution.job),
            )
            self._settle(execution, self._executor.timed_out(execution))

    def _cut_short(self, execution: Execution, why: str) -> None:
        if execution.cut_short is None:
            execution.cut_short = why
        execution.aborted.set(why)
        # A plain handler is not cancelled at a stop: its thread goes on, and may still finish within the last moments.
        if execution.task is not None and (execution.entry.is_async or why != STOPPED):
            execution.task.cancel()

    def _lease_lost(self, claim: Claim) -> None:
        """Called from the renewer's thread."""
        execution = self._running.get(claim.id)
        if execution is not None and execution.claim == claim:
            self._logger.warning(
                "the lease of %s %s was lost; its result will be refused",
                execution.job.name,
                claim.id,
                extra=fields(execution.job),
            )
            execution.aborted.set("the lease was lost")

    async def _extend(self, claim: Claim, seconds: float) -> bool:
        held = await self._store.renew([claim], seconds, now=self._clock.for_store())
        if claim in held:
            self._renewer.extended(claim, seconds)
        return claim in held


def _started(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """A task for the work, begun at once where Python can, so that a handler that never waits costs no turn of the loop."""
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    return loop.create_task(work)
