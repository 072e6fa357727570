"""L8: long work shows progress on standard error, on a terminal only, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable

import pytest
from runs import Run, Shop

from treadle.cli import progress
from treadle.cli.progress import Progress


class Terminal(io.StringIO):
    """A terminal that tells when something was written."""

    def __init__(self, on_write: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._on_write = on_write

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._on_write()
        return super().write(text)


def test_l8_long_work_shows_how_far_it_is_and_wipes_the_line_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER", 0.0)

    async def work() -> str:
        shown = asyncio.Event()
        terminal = Terminal(shown.set)
        async with Progress("Deleting", stream=terminal) as line:
            line.update(12_500)
            line.total = 100_000
            await asyncio.wait_for(shown.wait(), 10)
        return terminal.getvalue()

    seen = asyncio.run(work())
    assert seen.startswith("\r\033[KDeleting: 12,500 of 100,000 jobs, 0 s")
    assert seen.endswith("\r\033[K")


def test_l8_quick_work_shows_nothing() -> None:
    async def work() -> str:
        terminal = Terminal()
        async with Progress("Deleting", stream=terminal) as line:
            line.update(1)
            await asyncio.sleep(0)
        return terminal.getvalue()

    assert asyncio.run(work()) == ""


def test_l8_nothing_is_shown_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER", 0.0)

    async def work() -> str:
        stream = io.StringIO()
        async with Progress("Deleting", stream=stream):
            for _ in range(10):
                await asyncio.sleep(0)
        return stream.getvalue()

    assert asyncio.run(work()) == ""


def test_l8_prune_on_a_terminal_knows_how_many_there_will_be(
    treadle: Run, stocked: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int | None, str]] = []

    class Watched(Progress):
        def __init__(self, doing: str, unit: str = "jobs", **options: object) -> None:
            super().__init__(doing, unit, stream=Terminal())

        def update(self, count: int) -> None:
            super().update(count)
            seen.append((self.total, self.text()))

    monkeypatch.setattr("treadle.cli.commands.prune.Progress", Watched)
    assert treadle("prune", "--older-than", "0s", "--store", stocked.url).out == "Deleted 2 jobs\n"
    assert seen == [(2, "Deleting: 2 of 2 jobs, 0 s")]
