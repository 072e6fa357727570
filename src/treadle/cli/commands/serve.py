"""`treadle serve`: the functions service (L11, F)."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
from click.core import ParameterSource

from treadle import __version__
from treadle.cli.durations import Duration
from treadle.cli.failures import reason
from treadle.cli.functions import folder_option, missing_service
from treadle.cli.logs import LEVELS, Form, JsonFormatter, configure_logging
from treadle.cli.opening import chosen_url, open_chosen
from treadle.cli.options import json_option, store_option
from treadle.cli.orphans import reap_orphans
from treadle.cli.output import Out, OutputFailed, ReaderGone
from treadle.cli.parameters import PlainInteger
from treadle.cli.signals import StopSignals
from treadle.cli.stopping import stopped, unless
from treadle.core.store import Store
from treadle.stores import shown

if TYPE_CHECKING:
    from treadle.functions.identity import KeyRole
    from treadle.functions.service import FunctionsService, Role, Started

PORT = 8700
DUTIES = {"all": "API, scheduler and worker", "api": "API", "worker": "scheduler and worker"}
_logger = logging.getLogger("treadle")


@click.command("serve")
@click.option("--host", default="127.0.0.1", metavar="HOST", help="Where to listen.  [default: 127.0.0.1]")
@click.option(
    "--port",
    type=PlainInteger(0, 65535),
    metavar="PORT",
    help="0 for any. A worker answers health and metrics there.  [default: 8700; of a worker none]",
)
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
    port: int | None,
    role: Role,
    folder: Path,
    concurrency: int,
    grace: float,
    log_level: str,
    log_format: Form | None,
    as_json: bool,
) -> int:
    """Run the functions service until told to stop.

    Functions in any language are called as jobs; there are an HTTP API, cron and dead letters. The first start prints the keys
    that it makes, once. SIGTERM or Ctrl+C stops gracefully: nothing more is claimed, running calls get the grace to finish, the
    rest is given back. A second one stops at once, with exit code 1.
    """
    signals = StopSignals("it is loaded")
    signals.install()
    form: Form = log_format or ("text" if sys.stderr is not None and sys.stderr.isatty() else "json")
    service_class = _service()
    _raise_limits()
    store = open_chosen(must_exist=False, secrets=True)
    configure_logging(log_level, form)
    if form == "json":
        signals.written = _as_json
    named = click.get_current_context().get_parameter_source("folder") is not ParameterSource.DEFAULT
    if named and not folder.is_dir():
        _logger.warning("there is no folder %s; its functions are found once it is there", folder)
    out = Out()  # now, since a standard output that is closed must not swallow the keys of a first start

    async def served() -> int:
        service = service_class(
            store,
            role=role,
            host=host,
            port=PORT if port is None and role != "worker" else port,
            folder=folder,
            concurrency=concurrency,
            environment=os.environ,
        )
        return await _serve(service, store, signals, grace, _Told(out, role, as_json))

    try:
        return asyncio.run(served())
    except Exception as error:
        if form == "text" or os.environ.get("TREADLE_DEBUG"):
            raise
        why = reason(error)
    _logger.error("%s", why)  # in the form of all other lines, for whoever reads them
    return 1


def _service() -> type[FunctionsService]:
    try:
        from treadle.functions.service import FunctionsService
    except ModuleNotFoundError as error:
        raise missing_service(error) from None
    return FunctionsService


def _raise_limits() -> None:
    from treadle.functions.http.descriptors import raise_limit  # of the same extra, which is there by then

    raise_limit()


def _as_json(text: str) -> str:
    return JsonFormatter().format(logging.LogRecord(_logger.name, logging.INFO, "", 0, text, None, None))


async def _serve(service: FunctionsService, store: Store, signals: StopSignals, grace: float, told: _Told) -> int:
    stop, at_once = signals.attach(grace)
    hurried = False
    reaping = asyncio.create_task(reap_orphans())
    try:
        try:
            started = await unless(stop, lambda: service.start(told.beginning))
        finally:
            if not service.ready:
                told.keys(service.made)  # which nobody would ever see otherwise
        if started is not None:
            await stop.wait()
        hurried = await stopped(service.stop, grace, at_once)
        signals.say("stopped at once" if hurried else "stopped")
    finally:
        await service.stop(0)
        await store.close()
        reaping.cancel()
    status = 1 if hurried else 0
    signals.ended(status)
    return status


class _Told:
    """What is printed on standard output: where the service answers, and the keys that this start made."""

    def __init__(self, out: Out, role: str, as_json: bool) -> None:
        self._out = out
        self._role = role
        self._as_json = as_json
        self._store = shown(chosen_url())

    def beginning(self, started: Started) -> None:
        """It has started."""
        at = f" at {started.url}" if started.url else ""
        line = f"treadle {__version__} serves functions{at}: {DUTIES[self._role]}, on {self._store}"
        self._print(started.url, started.made, line)

    def keys(self, made: Mapping[KeyRole, str]) -> None:
        """It has not, and may have made keys all the same."""
        if made:
            self._print(None, made)

    def _print(self, url: str | None, made: Mapping[KeyRole, str], *lines: str) -> None:
        try:
            if self._as_json:
                self._out.json({"url": url, "role": self._role, "store": self._store, "keys": dict(made)})
            else:
                if made:
                    shown_once = "These keys were made just now, and are shown this once; the store keeps only their hashes:"
                    lines = (*lines, shown_once, *(f"  {name:<12}  {key}" for name, key in made.items()))
                for line in lines:
                    self._out.line(line)
            self._out.flush()
        except ReaderGone:
            if made:
                raise OutputFailed(
                    "nobody reads standard output, so that the keys made just now were not seen; "
                    "`treadle config rotate-key NAME` makes new ones"
                ) from None
