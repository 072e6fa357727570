"""The attempts that run in a worker: begun together, each settled once, and cut short where need be (E20 to E24)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any

from treadle.core.job import Job
from treadle.core.outcome import Done, Outcome, Released
from treadle.core.store import Claim, Ending
from treadle.engine.execution import STOPPED, CutShort, Execution, in_handler
from treadle.engine.executor import Executor
from treadle.engine.fields import fields
from treadle.engine.intervals import Intervals
from treadle.engine.renewer import Renewer
from treadle.engine.settler import Settler
from treadle.engine.setup import Setup
from treadle.engine.slowness import Slowness

ABANDON_AFTER = 0.25  # seconds that a cancelled handler gets to clean up before its slot is freed without it
BUSY = 1.0  # seconds until a job is offered again whose lost attempt still runs here


class Attempts:
    """Everything between a claim and its end: the lease, the handler, the timeout, and what is written in the end.

    `rouse` is called when slots became free or results were written, with whether that made a job due again. `torn_down` says
    whether a handler's cancellation came with that of the whole loop.
    """

    def __init__(
        self,
        setup: Setup,
        tasks: Any,
        intervals: Intervals,
        rouse: Callable[[bool], None],
        torn_down: Callable[[], bool],
    ) -> None:
        self._setup = setup
        self._store = setup.store
        self._clock = setup.clock
        self._logger = logger = setup.logger
        self._intervals = intervals
        self._rouse = rouse
        self._loop = asyncio.get_running_loop()
        self.running: dict[str, Execution] = {}
        self.stops = 0  # how many there have been: what was claimed before the latest one is not begun any more
        self.renewer = Renewer(setup.profile.lease, setup.store.lease_keeper, setup.clock, logger, self._lease_lost)
        self.settler = Settler(setup.store, setup.clock, logger, self._written)
        self.executor = Executor(setup, tasks, self._settle, self._extend, torn_down)
        self.slowness = Slowness(setup.profile.warn_after, self.running, self._loop, logger)

    # -- beginning

    def begin(self, claimed: Sequence[tuple[Claim, Job]], stops: int, begun: set[str], aside: list[Claim]) -> None:
        """Run what was claimed together, unless there has been another stop, and note it in `begun`.

        A job that is there already has had its turn, and its claim is kept `aside`. The leases of all are renewed before a
        handler is called: one that holds the loop up in its first step would cost the others theirs (E20). Raises what the
        system says where it has no thread for that; none is begun then, and they are given back.
        """
        running, entry_of = self.running, self._setup.registry.get
        ready, claims = [], []
        for claim, job in claimed:
            entry = entry_of(job.name)
            if job.id in begun:
                aside.append(claim)
            elif entry is None or job.id in running:
                self.give_back(claim, BUSY)
                continue
            else:
                running[job.id] = execution = Execution(job, claim, entry, 0.0)
                ready.append(execution)
            claims.append(claim)
        if self._setup.profile.renews:
            try:
                self.renewer.add(claims, self._setup.profile.max_run)
            except BaseException:
                for execution in ready:
                    self._withdraw(execution)
                raise
        loop, executor = self._loop, self.executor
        for execution in ready:
            if self.stops != stops:
                self._withdraw(execution)
                continue
            begun.add(execution.job.id)
            execution.started = loop.time()
            timeout = executor.timeout(execution)
            if timeout is not None:
                execution.timer = loop.call_later(timeout, self._time_out, execution)
                self.renewer.limit(execution.claim, timeout + 2 * ABANDON_AFTER + 1.0)
            self.slowness.begin()
            execution.task = _started(loop, executor.run(execution))

    def _withdraw(self, execution: Execution) -> None:
        """Give back what was claimed and not begun."""
        execution.settled = True
        self.running.pop(execution.job.id, None)
        self.give_back(execution.claim)

    def give_back(self, claim: Claim, seconds: float = 0.0) -> None:
        """Let others have a job that was not begun, due after so many seconds."""
        self.settler.add(Ending(claim, Released(seconds)))

    # -- ending

    def _settle(self, execution: Execution, outcome: Outcome | None) -> None:
        """Hand on what the attempt became, once, and free its slot; None leaves the job to its lease."""
        if execution.settled:
            return
        execution.settled = True
        if execution.timer is not None:
            execution.timer.cancel()
        self.running.pop(execution.job.id, None)
        if outcome is None:
            self.renewer.remove(execution.claim)
        else:
            if self._setup.observer is not None:
                self._setup.observer.ended(execution.job, outcome, self._loop.time() - execution.started)
            following = None if execution.job.schedule is None else self._intervals.following(execution.job)
            self.settler.add(Ending(execution.claim, outcome, following))
        self._rouse(False)

    def _written(self, endings: Iterable[Ending]) -> None:
        again = False
        for ending in endings:
            self.renewer.remove(ending.claim)
            again = again or ending.following is not None or not isinstance(ending.outcome, Done)
        self._rouse(again)

    def _time_out(self, execution: Execution) -> None:
        self._cut_short(execution, CutShort.TIMEOUT, f"timed out after {self.executor.timeout(execution):g} s")
        execution.timer = self._loop.call_later(ABANDON_AFTER, self._abandon, execution)

    def _abandon(self, execution: Execution) -> None:
        """Free the slot of an attempt that did not end when it was told to (E23)."""
        if not execution.settled:
            with suppress(Exception):  # a log filter of the application's own may raise, and must not cost the slot
                self._logger.warning(
                    "%s %s did not end at its timeout and was abandoned",
                    execution.job.name,
                    execution.job.id,
                    extra=fields(execution.job),
                )
            self._settle(execution, self.executor.timed_out(execution))

    def cut_short(self) -> None:
        """Have everything that runs end, for the worker stops (E24)."""
        for execution in list(self.running.values()):
            if execution.begun:
                self._cut_short(execution, CutShort.STOP, STOPPED)
            elif execution.task is not None:  # cancelled before its first step, a task would end without a word
                execution.task.cancel()
                self._withdraw(execution)

    def _cut_short(self, execution: Execution, why: CutShort, reason: str) -> None:
        if execution.cut_short is None:
            execution.cut_short = why
        execution.abort(reason)
        # A plain handler is not cancelled at a stop: its thread goes on, and may still finish within the last moments.
        if execution.task is not None and (execution.entry.is_async or why is CutShort.TIMEOUT):
            execution.task.cancel()

    def leave(self) -> list[Execution]:
        """Leave what still runs to its lease; answers what that is."""
        left = list(self.running.values())
        for execution in left:
            execution.settled = True
        self.running.clear()
        return left

    # -- leases

    def _lease_lost(self, claim: Claim) -> None:
        """Called from the renewer's thread."""
        execution = self.running.get(claim.id)
        if execution is not None and execution.claim == claim:
            execution.lose()
            self._logger.warning(
                "the lease of %s %s was lost; its result will be refused",
                execution.job.name,
                claim.id,
                extra=fields(execution.job),
            )

    async def _extend(self, claim: Claim, seconds: float) -> bool:
        """Never to less than the lease, which others go by as soon as it is over, whoever still runs the job."""
        seconds = max(seconds, self._setup.profile.lease)
        held = await self._store.renew([claim], seconds, now=self._clock.for_store())
        if claim in held:
            self.renewer.extended(claim, seconds)
        return claim in held

    async def keep(self, claims: Iterable[Claim]) -> set[Claim]:
        """Renew those of the claims that are held here; answers which those are."""
        held = [claim for claim in claims if self.renewer.holds(claim)]
        if held:
            await self._store.renew(held, self._setup.profile.lease, now=self._clock.for_store())
        return set(held)

    def is_waiting_for_itself(self) -> bool:
        """Whether the caller is a handler that runs here, and would wait for its own end."""
        task, plain = asyncio.current_task(), in_handler.get()
        # One that is begun at this moment has no task yet, and only that one can run this.
        return any(one.task in (None, task) or one is plain for one in self.running.values())


def _started(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """A task for the work, begun at once where Python can, so that a handler that never waits costs no turn of the loop."""
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    return loop.create_task(work)
