"""Workers as real processes, the ledger that their handlers write, and what must hold of it at the end."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from treadle import Tasks

HERE = Path(__file__).parent
_pause = threading.Event()


class Worker:
    """One `treadle work app:tasks` process."""

    def __init__(self, fleet: "Fleet", settings: dict[str, str]) -> None:
        environment = {**os.environ, "STORE": fleet.url, "LEDGER": str(fleet.ledger), "PYTHONPATH": str(HERE), **settings}
        self.output = fleet.folder / f"worker-{len(fleet.workers)}.log"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*fleet.prefix, sys.executable, "-m", "treadle.cli.main", "work", settings.get("APP", "app:tasks")],
                env=environment,
                stdout=output,
                stderr=output,
            )
        self.pid = self.process.pid

    def signal(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)

    def kill9(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait(10)

    def ended(self, seconds: float = 15) -> int:
        return self.process.wait(seconds)


@dataclass
class Line:
    what: str
    id: str
    attempt: int
    pid: int


class Fleet:
    """Workers on one store, and the store itself as the test sees it."""

    def __init__(self, url: str, folder: Path, prefix: list[str] | None = None) -> None:
        self.url, self.folder, self.prefix = url, folder, prefix or []
        self.ledger = folder / "ledger"
        self.ledger.touch()
        self.workers: list[Worker] = []
        self.tasks = Tasks(url, migrate=True)
        self.tasks.sync.stats()  # makes the tables, so that the workers find them
        self.server = None

    def worker(self, **settings: str) -> Worker:
        worker = Worker(self, settings)
        self.workers.append(worker)
        return worker

    def go(self) -> None:
        """Let the handlers that wait go on."""
        (self.folder / "go").touch()

    def lines(self, what: str = "start") -> list[Line]:
        found = []
        for text in self.ledger.read_text().splitlines():
            kind, id, attempt, pid = text.split()
            if kind == what:
                found.append(Line(kind, id, int(attempt), int(pid)))
        return found

    def until(self, condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}\n{self.logs()}"
            _pause.wait(0.01)  # what is waited for happens in other processes: look again soon

    def started(self, count: int = 1) -> None:
        self.until(lambda: len(self.lines()) >= count, f"{count} start(s)")

    def all_finished(self, seconds: float = 60) -> None:
        def finished() -> bool:
            stats = self.tasks.sync.stats()
            return stats.pending == stats.running == 0

        self.until(finished, "every job done or dead", seconds)

    def job(self, id: str):
        return self.tasks.sync.get(id)

    def logs(self) -> str:
        return "\n".join(f"--- {worker.output.name}\n{worker.output.read_text()[-3000:]}" for worker in self.workers)

    def account(self, ids: list[str]) -> str:
        """Hold the books: nothing lost, nothing run after it was done, and more starts only where an attempt was cut short."""
        jobs = {job.id: job for job in self.tasks.sync.list()}
        starts = Counter(line.id for line in self.lines())
        lost = [id for id in ids if id not in jobs]
        done = [job for job in jobs.values() if job.state == "done"]
        dead = [job for job in jobs.values() if job.state == "dead"]
        repeated = sum(count - 1 for count in starts.values() if count > 1)
        told = f"enqueued {len(ids)}, done {len(done)}, dead {len(dead)}, lost {len(lost)}, repeated starts {repeated}"
        print(told)
        assert not lost, told
        assert len(done) + len(dead) == len(jobs), told
        for job in done:
            assert starts[job.id] >= 1, f"{job.id} is done and never started"
            assert starts[job.id] <= job.attempts + job.interruptions, f"{job.id} started {starts[job.id]} times: {job}"
        return told

    def close(self) -> None:
        for worker in self.workers:
            worker.signal(signal.SIGCONT)
            worker.signal(signal.SIGKILL)
            worker.process.wait(10)
        self.tasks.sync.close()
