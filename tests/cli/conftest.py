"""Stores with jobs in every state, and ways to run the command on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from runs import APP, Result, Run, Shop, Worker

from treadle.cli.main import main


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """An empty folder."""
    return Shop(tmp_path)


@pytest.fixture
def stocked(shop: Shop) -> Shop:
    """A store with one job in each state but running."""
    shop.ids["done"], shop.ids["dead"] = shop.enqueue(
        {"name": "good", "payload": {"n": 1}, "idempotency_key": "good:1"},
        {"name": "bad", "payload": {"text": "é → 😀"}, "dedupe_key": "bad:1"},
        drain=True,
    )
    (shop.ids["pending"],) = shop.enqueue({"name": "later", "delay": 3600, "queue": "slow", "priority": 7})
    return shop


@pytest.fixture
def treadle(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> Run:
    """Run the command in this process, in the test's folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("TREADLE_STORE", "TREADLE_DEBUG", "COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Result:
        capfdbinary.readouterr()
        code = main(arguments)
        captured = capfdbinary.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def work(shop: Shop) -> Iterator[Callable[..., Worker]]:
    """Start a worker of the application above; it is gone after the test, and has printed nothing on standard output."""
    started: list[Worker] = []

    def start(*arguments: str, grace: float = 20.0, app: str = "shopapp:tasks", prefix: Sequence[str] = ()) -> Worker:
        (shop.folder / "shopapp.py").write_text(APP.format(grace=grace))
        worker = Worker(shop.folder, app, *arguments, prefix=prefix)
        started.append(worker)
        return worker

    yield start
    for worker in started:
        assert worker.close() == ""
