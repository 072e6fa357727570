"""`treadle move`: everything from one store into another (S13, L12)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar, assert_never

import click

from treadle.cli.durations import Duration
from treadle.cli.failures import tell
from treadle.cli.opening import given_url, sqlite_path
from treadle.cli.options import json_option
from treadle.cli.output import Out
from treadle.cli.progress import Progress
from treadle.core.errors import Conflict, InvalidArgument, NotFound, SchemaMissing, StoreError
from treadle.core.transfer import Counts, Movable, Stage
from treadle.engine.clock import EngineClock
from treadle.engine.ids import new_id
from treadle.engine.move import End, Move, Report, Survey
from treadle.stores import open_store, shown

T = TypeVar("T")
LABELS = {"done": "done, with a key"}
SHOWN = 10
UNFINISHED = "the move is not over, and both stores stay closed: run it again to go on, or with --undo to give it up"


class Patience(Duration):
    """A duration, or seconds in plain digits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds, or a usage error."""
        plain = isinstance(value, str) and value.isascii() and value.isdigit()
        return super().convert(f"{value}s" if plain else value, param, ctx)


@click.command("move")
@click.option("--from", "source", metavar="URL", required=True, help="The store to move from: sqlite:, postgres: or redis:.")
@click.option("--to", "target", metavar="URL", required=True, help="The store to move into.")
@click.option("--dry-run", is_flag=True, help="Change nothing on either side; count by the same rule.")
@click.option(
    "--wait",
    type=Patience(),
    default="0s",
    metavar="SECONDS",
    help="Let running jobs end for so long, such as 30 or 10m.  [default: refuse while any runs]",
)
@click.option("--undo", is_flag=True, help="Give up a move that is not over: the source takes up work again.")
@click.option("--force", is_flag=True, help="Fill a store again that another move has left closed; it is emptied first.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    source: str,
    target: str,
    dry_run: bool,
    wait: float,
    undo: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Move everything into another store.

    Pending, delayed and dead jobs, done jobs that hold an idempotency key, intervals, schedules and documents. Other
    done jobs stay behind. The source is marked as moved: what still uses it is told where to go. After a failure, the
    same command goes on.
    """
    if given_url(context) is not None:
        raise click.UsageError("--store does not go with move; --from and --to name the stores.", context)
    if undo and (dry_run or force or wait):
        raise click.UsageError("--undo goes with no other option but --json.", context)
    from_store = _opened(context, source, "--from", must_exist=True, migrate=False)
    to_store = _opened(context, target, "--to", must_exist=False, migrate=not dry_run)
    names = from_store.name, to_store.name
    if names[0] == names[1]:
        raise click.UsageError("--from and --to are the same store.", context)

    async def work(progress: Progress) -> Survey | Report | None:
        def update(doing: str, done: int, total: int | None) -> None:
            progress.turn_to(doing, total)
            progress.update(done)

        clock = EngineClock()
        move = Move(
            from_store,
            to_store,
            clock,
            lambda: new_id(clock.unix_ms()),
            wait=wait,
            force=force,
            progress=update,
        )
        if not await from_store.store.founded():
            raise SchemaMissing(f"{from_store.name} holds no treadle tables, so there is nothing to move")
        if undo:
            await move.undo()
            return None
        if dry_run:
            return await move.survey(founded=await to_store.store.founded())
        return await _told(move.run, from_store)

    return _tell(names, asyncio.run(_session(work, from_store, to_store)), as_json)


def _opened(context: click.Context, url: str, option: str, *, must_exist: bool, migrate: bool) -> End:
    path = sqlite_path(url)
    if path == ":memory:" or url.lower().startswith("memory:"):
        raise click.BadParameter(f"{url} lives and ends within one process; name a store on disk.", context, param_hint=option)
    try:
        store = open_store(url, migrate=migrate)  # opens nothing yet
    except InvalidArgument as error:
        raise click.BadParameter(f"{error}.", context, param_hint=option) from None
    assert isinstance(store, Movable)  # all that a URL can name are
    if path is None:
        # A scheme alone means what the environment says, which nobody else can read from it.
        return End(store, shown(url) if url.partition(":")[2] else repr(store))
    full = Path(path).resolve()
    if must_exist and not full.exists():
        raise NotFound(f"there is no store at {shown(url)}")
    return End(store, f"sqlite:{full}")


async def _session(work: Callable[[Progress], Awaitable[T]], *ends: End) -> T:
    try:
        async with Progress("Looking", "things") as progress:
            return await work(progress)
    finally:
        for end in ends:
            await end.store.close()


async def _told(run: Callable[[], Awaitable[T]], source: End) -> T:
    """The result; where the move stops half way, what to do about it is said."""
    try:
        return await run()
    except Conflict:
        raise  # nothing was moved
    except StoreError as error:
        if await _closed(source):
            raise StoreError(f"{error}; {UNFINISHED}") from error
        raise
    except asyncio.CancelledError:
        if await _closed(source):
            tell(UNFINISHED)
        raise


async def _closed(source: End) -> bool:
    try:
        mark = await source.store.get_mark()
    except StoreError:
        return True  # it cannot be asked; better one warning too many
    return mark is not None and mark.fence is not None and mark.stage is not Stage.OVER


def _tell(names: tuple[str, str], result: Survey | Report | None, as_json: bool) -> int:
    """Print what came of it; answers the exit code."""
    out = Out()
    match result:
        case Survey():
            return _tell_survey(out, names, result, as_json)
        case Report():
            _tell_report(out, names, result, as_json)
        case None:
            if as_json:
                out.json({"from": names[0], "to": names[1], "undone": True})
            else:
                out.line(f"Gave the move up: {names[0]} takes up work again")
        case _:
            assert_never(result)
    out.flush()
    return 0


def _tell_survey(out: Out, names: tuple[str, str], survey: Survey, as_json: bool) -> int:
    found = survey.clashes
    if as_json:
        out.json(
            {
                **_document(names, survey.source, Counts(), survey.left, dry_run=True, already=survey.already),
                "running": survey.running,
                "conflicts": found.number,
                "conflicting": found.known,
            }
        )
    elif survey.already:
        out.line(f"{names[0]} was moved to {names[1]} already; there is nothing to move")
    else:
        out.line(f"Would move from {names[0]} to {names[1]} (dry run, nothing changed):")
        _table(out, survey.source, None)
        _left(out, survey.left, "Would stay behind")
        if survey.running:
            out.line(f"{survey.running:,} jobs run there now: stop the workers, or let the move wait with --wait")
        for words in found.known[:SHOWN]:
            out.line(f"in the way: {words}")
        if found.number > SHOWN:
            out.line(f"and {found.number - SHOWN:,} more (--json names {len(found.known):,} of them)")
    out.flush()
    if found.number:
        tell(f"{found.number:,} things in {names[1]} are in the way")
    return 1 if found.number else 0


def _tell_report(out: Out, names: tuple[str, str], report: Report, as_json: bool) -> None:
    if as_json:
        out.json(_document(names, report.source, report.target, report.left, dry_run=False, already=report.already))
    elif report.already:
        out.line(f"{names[0]} was moved to {names[1]} already; nothing was changed")
    else:
        out.line(f"Moved from {names[0]} to {names[1]}:")
        _table(out, report.source, report.target)
        _left(out, report.left, "Stayed behind")


def _document(
    names: tuple[str, str], source: Counts, target: Counts, left: int, *, dry_run: bool, already: bool
) -> dict[str, Any]:
    theirs = target.as_dict()
    return {
        "from": names[0],
        "to": names[1],
        "dry_run": dry_run,
        "already_moved": already,
        "counts": {kind: {"source": number, "target": theirs[kind]} for kind, number in source.as_dict().items()},
        "left_behind": left,
    }


def _table(out: Out, source: Counts, target: Counts | None) -> None:
    theirs = None if target is None else target.as_dict()
    rows = [("KIND", "SOURCE", "TARGET")]
    for kind, number in source.as_dict().items():
        rows.append((LABELS.get(kind, kind), f"{number:,}", "" if theirs is None else f"{theirs[kind]:,}"))
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    for place, row in enumerate(rows):
        cells = [row[0].ljust(widths[0]), row[1].rjust(widths[1])]
        if theirs is not None:
            cells.append(row[2].rjust(widths[2]))
        line = "  ".join(cells).rstrip()
        out.line(out.styled(line, "bold") if place == 0 else line)


def _left(out: Out, left: int, stay: str) -> None:
    if left:
        out.line(f"{stay} (done, without an idempotency key): {left:,}")
