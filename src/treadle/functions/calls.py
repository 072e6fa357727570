"""Calls: what a job does. It calls its function, and the answer ends it (F4, F5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from treadle.core.errors import StoreError
from treadle.core.outcome import Done
from treadle.core.signals import CallFailed, Snooze
from treadle.engine.execution import Context
from treadle.functions.caller import Caller
from treadle.functions.catalogue import Catalogue
from treadle.functions.directory import BadFunction
from treadle.functions.function import PREFIX
from treadle.functions.metrics import Metrics
from treadle.functions.seldom import SeldomLog
from treadle.functions.shortage import Shortage
from treadle.functions.signature import HEADER, signature

NOTHING = 0.05  # seconds
AGAIN = 1.0  # seconds that a job which is put off keeps its slot, and then as many until it is due again
_logger = logging.getLogger("treadle")


class Calls:
    """Makes the calls of jobs. `timeout` answers how many seconds one may take, from the moment that it is begun."""

    def __init__(
        self,
        catalogue: Catalogue,
        caller: Caller,
        timeout: Callable[[], float],
        metrics: Metrics,
        logger: logging.Logger = _logger,
    ) -> None:
        self._catalogue = catalogue
        self._caller = caller
        self._timeout = timeout
        self._metrics = metrics
        self._seldom_log = SeldomLog(logger)

    async def run(self, context: Context) -> Done:
        """Call the function of the job once. Raises `CallFailed` where there was no answer, or one that counts as none.

        Raises `Snooze`, after a while, where the store or this process could not do their part: that is no failure of the
        function's, and costs no attempt.
        """
        name = context.job.name.removeprefix(PREFIX)
        loop = asyncio.get_running_loop()
        limit = self._timeout()
        deadline = loop.time() + limit
        try:
            return await self._call(context, name, limit, deadline)
        except BadFunction as error:
            raise CallFailed(f"Function '{name}' cannot be called: {error}") from None
        except StoreError as error:
            self._seldom_log.warning("jobs are put off, since the store does not say where their functions are: %s", error)
        except Shortage as error:
            self._seldom_log.warning("jobs are put off, since their functions cannot be called: %s", error.lacking)
        # It keeps its slot meanwhile: else all jobs that wait would be claimed and given back, one after the other.
        await asyncio.sleep(min(AGAIN, max(0.0, deadline - loop.time())))
        raise Snooze(AGAIN)

    async def _call(self, context: Context, name: str, limit: float, deadline: float) -> Done:
        job = context.job
        loop = asyncio.get_running_loop()
        reached = await self._catalogue.reach(name, limit)
        function = reached.function
        body = job.payload_json.encode()
        try:
            answer = await self._caller.call(
                name,
                reached.url,
                method=function.method,
                path=f"/jobs/{job.id}",
                headers=(("content-type", "application/json"), (HEADER, signature(function.secret, job.id, body))),
                body=body,
                seconds=_left(limit, deadline - loop.time()),
            )
        except Shortage:
            raise
        except CallFailed:
            self._metrics.called(job.name, None)
            raise
        self._metrics.called(job.name, answer.status)
        if function.fail_on is not None and function.fail_on(answer.status):
            raise CallFailed(f"Function '{name}' answered {answer.status}, a failure by its fail_on {function.fail_on.text!r}")
        context.log.debug("%s %s was answered with %d", name, job.id, answer.status, extra={"status": answer.status})
        return Done(note=str(answer.status))


def _left(timeout: float, left: float) -> float:
    """What is left of the time limit; all of it if next to nothing is gone, so that an error names the limit that was set."""
    return timeout if timeout - left < NOTHING else max(0.001, left)
