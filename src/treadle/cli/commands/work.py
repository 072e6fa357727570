"""`treadle work`: a worker process of its own (L7, E24)."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence

import click

from treadle import __version__
from treadle.cli.durations import Duration
from treadle.cli.failures import tell
from treadle.cli.loading import AppPath, CannotLoad, load
from treadle.cli.logs import LEVELS, TextFormatter
from treadle.cli.opening import given_url, open_chosen
from treadle.cli.options import store_option
from treadle.cli.parameters import PlainInteger, QueueNames
from treadle.cli.printable import printable
from treadle.cli.signals import StopSignals
from treadle.cli.stopping import stopped, unless
from treadle.core.errors import StoreError
from treadle.core.job import Job, State
from treadle.core.transfer import Transfer, checked_fence
from treadle.stores import shown
from treadle.stores.memory import MemoryStore
from treadle.tasks.app import Tasks

SHOWN = 5


@click.command("work")
@click.argument("app", type=AppPath(), metavar="APP")
@click.option(
    "--concurrency", type=PlainInteger(1, 100_000), metavar="N", help="Run up to N jobs at once.  [default: the app's]"
)
@click.option(
    "--queues",
    type=QueueNames(),
    multiple=True,
    metavar="A,B",
    help="Work these queues only; may be repeated.  [default: the app's]",
)
@click.option(
    "--grace",
    type=Duration(),
    metavar="TIME",
    help="How long a stop waits for running jobs, such as 30s.  [default: the app's]",
)
@click.option("--log-level", type=click.Choice(tuple(LEVELS), case_sensitive=False), help="What to log.  [default: info]")
@store_option
def command(
    app: tuple[str, str],
    concurrency: int | None,
    queues: tuple[tuple[str, ...], ...],
    grace: float | None,
    log_level: str | None,
) -> int:
    """Run an application's jobs until told to stop.

    APP is module:attribute, such as app:tasks. SIGTERM or Ctrl+C stops gracefully: nothing more is claimed, running
    jobs get the grace to finish, the rest is given back. A second one stops at once, with exit code 1.
    """
    signals = StopSignals()
    signals.install()
    store = open_chosen(must_exist=False) if given_url() is not None else None
    tasks = load(*app)
    _configure_logging(log_level)
    tasks.configure(
        store=store,
        concurrency=concurrency,
        queues=[name for names in queues for name in names] or None,
        grace=grace,
    )
    if not tasks.names:
        raise CannotLoad(f"{':'.join(app)} has no handlers; import the modules that register them where it is made")
    return asyncio.run(_work(tasks, signals))


def _configure_logging(level: str | None) -> None:
    """Log to standard error, unless the application has set its own logging up; then only a level given here is applied."""
    chosen = (level or "info").upper()
    if logging.getLogger().handlers:
        if level is not None:
            logging.getLogger().setLevel(chosen)
            logging.getLogger("treadle").setLevel(chosen)
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter())
    logging.basicConfig(level=chosen, handlers=[handler])


async def _work(tasks: Tasks, signals: StopSignals) -> int:
    stop, at_once = signals.attach(tasks.grace)
    try:
        started = await unless(stop, lambda: _start(tasks))
        if started:
            tell(_beginning(tasks))
            if isinstance(tasks.store, MemoryStore):
                tell("this store lives in this process alone: only jobs that the application itself enqueues here will run")
            await stop.wait()
        hurried = await stopped(tasks.stop, tasks.grace, at_once)
        tell(await _ending(tasks, hurried) if started else "stopped before it had started")
    finally:
        await tasks.close()
    status = 1 if hurried else 0
    signals.ended(status)
    return status


async def _start(tasks: Tasks) -> bool:
    await _look(tasks)
    await tasks.start()
    return True


async def _look(tasks: Tasks) -> None:
    """A store that cannot be used, or that a move has closed, is told now, and not in the log."""
    await tasks.store.due(tasks.settings.queues or ("default",))
    if isinstance(tasks.store, Transfer):
        checked_fence(await tasks.store.get_mark())


def _beginning(tasks: Tasks) -> str:
    settings = tasks.settings
    queues = "all queues" if settings.queues is None else f"queues {', '.join(map(printable, settings.queues))}"
    names = _some([printable(name) for name in tasks.names])
    return f"treadle {__version__} works on {_place(tasks)}: {names}; concurrency {settings.concurrency}, {queues}"


def _place(tasks: Tasks) -> str:
    url = given_url()
    if url is not None:
        return shown(url)
    kind = type(tasks.store)
    return kind.__name__ if kind.__repr__ is object.__repr__ else printable(repr(tasks.store))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


async def _ending(tasks: Tasks, hurried: bool) -> str:
    how = "stopped at once" if hurried else "stopped"
    try:
        left = await _left_running(tasks)
    except StoreError as error:
        return f"{how}; the store does not say what was left running: {error}"
    if not left:
        return f"{how}; no job was left running"
    jobs = _some([f"{printable(job.name)} {job.id}" for job in left])
    return f"{how}; {len(left)} left running, to be taken back when the lease ends: {jobs}"


async def _left_running(tasks: Tasks) -> Sequence[Job]:
    mine = tasks.settings.worker_id
    return [job async for job in tasks.iterate(states=[State.RUNNING]) if job.worker == mine]
