"""`treadle serve`: the functions service (L11, F)."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from treadle import __version__
from treadle.cli.durations import Duration
from treadle.cli.failures import tell
from treadle.cli.functions import folder_option, missing_service
from treadle.cli.logs import LEVELS, Form, configure_logging
from treadle.cli.opening import chosen_url, open_chosen
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.cli.parameters import PlainInteger
from treadle.cli.signals import StopSignals
from treadle.cli.stopping import stopped
from treadle.core.store import Store
from treadle.stores import shown

if TYPE_CHECKING:
    from treadle.functions.service import FunctionsService, Role, Started

DUTIES = {"all": "API, scheduler and worker", "api": "API", "worker": "scheduler and worker"}


@click.command("serve")
@click.option("--host", default="127.0.0.1", metavar="HOST", help="Where to listen.  [default: 127.0.0.1]")
@click.option("--port", type=PlainInteger(0, 65535), default=8700, metavar="PORT", help="0 for any.  [default: 8700]")
@click.option("--role", type=click.Choice(tuple(DUTIES)), default="all", help="What this process does.  [default: all]")
@folder_option
@click.option("--concurrency", type=PlainInteger(1, 100_000), default=10, metavar="N", help="Calls at once.  [default: 10]")
@click.option(
    "--grace", type=Duration(), default="30s", metavar="TIME", help="How long a stop waits for running calls.  [default: 30s]"
)
@click.option("--log-level", type=click.Choice(tuple(LEVELS), case_sensitive=False), default="info", help="[default: info]")
@click.option("--log-format", type=click.Choice(get_args(Form)), help="[default: text on a terminal, else json]")
@json_option
@store_option
def command(
    host: str,
    port: int,
    role: Role,
    folder: Path,
    concurrency: int,
    grace: float,
    log_level: str,
    log_format: Form | None,
    as_json: bool,
) -> int:
    """Run functions in any language as jobs: an HTTP API, cron and dead letters.

    The first start prints the keys that it makes, once. SIGTERM or Ctrl+C stops gracefully: nothing more is claimed, running
    calls get the grace to finish, the rest is given back. A second one stops at once, with exit code 1.
    """
    signals = StopSignals()
    signals.install()
    service_class = _service()
    store = open_chosen(must_exist=False)
    configure_logging(log_level, log_format or ("text" if sys.stderr is not None and sys.stderr.isatty() else "json"))

    async def served() -> int:
        service = service_class(
            store,
            role=role,
            host=host,
            port=port,
            folder=folder,
            concurrency=concurrency,
            environment=os.environ,
        )
        return await _serve(service, store, signals, grace, role, as_json)

    return asyncio.run(served())


def _service() -> type[FunctionsService]:
    try:
        from treadle.functions.service import FunctionsService
    except ModuleNotFoundError as error:
        raise missing_service(error) from None
    return FunctionsService


async def _serve(service: FunctionsService, store: Store, signals: StopSignals, grace: float, role: str, as_json: bool) -> int:
    stop, at_once = signals.attach(grace)
    hurried = False
    try:
        _tell_started(await service.start(), role, as_json)
        await stop.wait()
        hurried = await stopped(service.stop, grace, at_once)
        tell("stopped at once" if hurried else "stopped")
    finally:
        await service.stop(0)
        await store.close()
    status = 1 if hurried else 0
    signals.ended(status)
    return status


def _tell_started(started: Started, role: str, as_json: bool) -> None:
    out = Out()
    where = shown(chosen_url())
    if as_json:
        out.json({"url": started.url, "role": role, "store": where, "keys": dict(started.made)})
    else:
        at = f" at {started.url}" if started.url else ""
        out.line(f"treadle {__version__} serves functions{at}: {DUTIES[role]}, on {where}")
        if started.made:
            out.line("These keys were made just now, and are shown this once; the store keeps only their hashes:")
            for name, key in started.made.items():
                out.line(f"  {name:<12}  {key}")
    out.flush()
