"""The application that the benchmark runs, as a user would write it, for `treadle work benchmarks.treadle_app:tasks`."""

from __future__ import annotations

from typing import Any

from benchmarks.load import handle
from treadle import Tasks

tasks = Tasks()  # the store is the one that TREADLE_STORE names


@tasks.handler("noop")
async def noop(payload: Any) -> None:
    handle(payload)


@tasks.handler("pile")
async def pile(payload: Any) -> None:
    pass
