"""The application that the crash tests run as `treadle work app:tasks`, in processes that are killed."""

import asyncio
import os
import time
from pathlib import Path

from treadle import Fixed, Tasks

tasks = Tasks(
    os.environ["STORE"],
    concurrency=int(os.environ.get("CONCURRENCY", "4")),
    lease=float(os.environ.get("LEASE", "1")),
    poll_interval=0.2,
    retry=Fixed(0.05),
    grace=float(os.environ.get("GRACE", "10")),
)
_log = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
go = Path(os.environ["LEDGER"]).with_name("go")


def note(what: str, ctx) -> None:
    """One line, written at once and whole, so that it survives what comes next."""
    os.write(_log, f"{what} {ctx.job.id} {ctx.attempt} {os.getpid()}\n".encode())


@tasks.handler("quick", max_attempts=50)
async def quick(payload, ctx):
    note("start", ctx)
    await asyncio.sleep(payload / 1000)
    note("end", ctx)


@tasks.handler("plain", max_attempts=50)
def plain(payload, ctx):
    note("start", ctx)
    time.sleep(payload / 1000)
    note("end", ctx)


@tasks.handler("waits", max_attempts=5)
async def waits(payload, ctx):
    note("start", ctx)
    while not go.exists():
        await asyncio.sleep(0.005)
    note("end", ctx)


@tasks.handler("exits", max_attempts=3)
async def exits(payload, ctx):
    note("start", ctx)
    os._exit(7)


@tasks.handler("fails", max_attempts=3)
async def fails(payload, ctx):
    note("start", ctx)
    raise ValueError(payload)
