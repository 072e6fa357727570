"""Calls: what a job does. It calls its function, and the answer ends it (F4, F5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from treadle.core.outcome import Done
from treadle.core.signals import CallFailed
from treadle.engine.execution import Context
from treadle.functions.caller import Caller
from treadle.functions.catalogue import Catalogue
from treadle.functions.function import PREFIX
from treadle.functions.metrics import Metrics
from treadle.functions.signature import HEADER, signature

NOTHING = 0.05  # seconds


class Calls:
    """Makes the calls of jobs. `timeout` answers how many seconds one may take, from the moment that it is begun."""

    def __init__(self, catalogue: Catalogue, caller: Caller, timeout: Callable[[], float], metrics: Metrics) -> None:
        self._catalogue = catalogue
        self._caller = caller
        self._timeout = timeout
        self._metrics = metrics

    async def run(self, context: Context) -> Done:
        """Call the function of the job once. Raises `CallFailed` where there was no answer, or one that counts as none."""
        job = context.job
        name = job.name.removeprefix(PREFIX)
        loop = asyncio.get_running_loop()
        timeout = self._timeout()
        deadline = loop.time() + timeout
        function = await self._catalogue.find(name)
        if function is None:
            raise CallFailed(f"Function '{name}' not found")
        if not function.active:
            raise CallFailed(f"Function '{name}' is inactive")
        url = await self._catalogue.address(function, deadline - loop.time())
        body = job.payload_json.encode()
        try:
            answer = await self._caller.call(
                name,
                url,
                method=function.method,
                path=f"/jobs/{job.id}",
                headers=(("content-type", "application/json"), (HEADER, signature(function.secret, job.id, body))),
                body=body,
                seconds=_left(timeout, deadline - loop.time()),
            )
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
