"""The runner: one trial after another, subjects in turn within each run, so that the machine's noise hits them alike."""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.entries import Entry, takes
from benchmarks.environment import NoEnvironment, interpreter
from benchmarks.processes import ROOT
from benchmarks.servers import Place, place_of

PILES = ("empty", "finished", "unknown", "future")
PILE = 1_000_000
_LIMIT = 240.0  # seconds a trial
Record = dict[str, Any]


class Runner:
    """Runs what is asked for; each record goes to `write` as it comes."""

    def __init__(self, folder: Path, *, runs: int, scale: float, what: Sequence[str], write: Callable[[Record], None]) -> None:
        self._folder = folder
        self._runs = runs
        self._scale = scale
        self._what = what
        self._write = write
        self._pythons: dict[str, str] = {}
        self._best: dict[str, int] = {}
        self._place = Place()

    def store(self, store: str, entries: Sequence[Entry]) -> None:
        """All measures of one store. Drains come first: they find the setting that all else uses."""
        self._pythons, self._best = {}, {}
        entries = self._installed(entries)
        with place_of(store) as self._place:
            if self._place.version:
                self._write({"server": self._place.version, "store": store})
            for measure in sorted(self._what, key=lambda measure: measure != "drain"):
                if measure == "piles":
                    for entry in entries:
                        if takes(entry, measure):
                            self._piles(entry)
                else:
                    self._measure(measure, [entry for entry in entries if takes(entry, measure)])

    def _installed(self, entries: Sequence[Entry]) -> list[Entry]:
        installed = []
        for entry in entries:
            try:
                self._pythons[entry.name] = interpreter(entry)
                installed.append(entry)
            except NoEnvironment as reason:
                self._write({"store": entry.store, "subject": entry.name, "measure": "install", "void": str(reason)})
        return installed

    def _measure(self, measure: str, entries: Sequence[Entry]) -> None:
        found: dict[tuple[str, int], list[float]] = {}
        turns = [
            (entry, setting)
            for entry in entries
            for setting in (entry.settings if measure == "drain" else (self._best.get(entry.name, entry.settings[-1]),))
        ]
        for run in range(self._runs):
            for entry, setting in turns if run % 2 == 0 else reversed(turns):  # A B B A, so that a drift hits both
                record = self._trial(entry, measure, setting, run)
                if record is not None and "rate" in record:
                    found.setdefault((entry.name, setting), []).append(record["rate"])
        if measure == "drain":
            for entry in entries:
                rates = {setting: statistics.median(found.get((entry.name, setting), [0.0])) for setting in entry.settings}
                self._best[entry.name] = max(rates, key=rates.__getitem__)

    def _trial(self, entry: Entry, measure: str, setting: int, run: int) -> Record | None:
        here = entry.store == "memory"
        what = {"drain2": "drain", "kilobyte": "drain", "failing": "drain", "firing2": "firing"}.get(measure, measure)
        spec = {
            "what": "drain_here" if here and what == "drain" else what,
            "kind": measure if measure in {"kilobyte", "failing"} else "plain",
            "jobs": entry.jobs(measure, self._scale),
            "workers": 2 if measure in {"drain2", "firing2"} else 0 if here and measure in {"punctual", "firing"} else 1,
            "concurrency": setting,
            "reset": True,
            "seconds": max(0.5, 4.0 * min(1.0, self._scale)) if measure == "idle" else 120.0,
        }
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            result = self._run(entry, spec, folder, self._place.url())
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if result.get("void") == "no bulk call":
            return None
        return self._record(entry, measure, run, {"setting": setting, "workers": spec["workers"], **result})

    def _piles(self, entry: Entry) -> None:
        """Drains and idling over stores that hold a million jobs that are no concern of the worker."""
        setting = self._best.get(entry.name, entry.settings[-1])
        folders = {pile: Path(tempfile.mkdtemp(dir=self._folder)) for pile in PILES}
        spec = {"kind": "plain", "workers": 1, "concurrency": setting, "reset": False}
        drained = {**spec, "what": "drain", "jobs": max(20, int(20_000 * self._scale)), "seconds": 120.0}
        idle = {**spec, "what": "idle", "jobs": 1, "seconds": max(0.5, 4.0 * min(1.0, self._scale))}
        trials = [("drain", drained), ("look", {**spec, "what": "look", "jobs": 0})]
        if "idle" in self._what:
            trials.append(("idle", idle))
        try:
            for pile in PILES:
                jobs = 0 if pile == "empty" else max(1000, int(PILE * self._scale) // 1000 * 1000)
                filled = {**spec, "what": "pile", "pile": pile, "jobs": jobs, "seconds": 600.0}
                self._record(entry, f"fill {pile}", 0, self._run(entry, filled, folders[pile], self._place.url(pile)))
            for measure, each in trials:
                for run in range(self._runs):
                    for pile in PILES if run % 2 == 0 else reversed(PILES):
                        result = self._run(entry, each, folders[pile], self._place.url(pile))
                        self._record(entry, f"{measure} {pile}", run, {"setting": setting, **result})
        finally:
            for folder in folders.values():
                shutil.rmtree(folder, ignore_errors=True)

    def _record(self, entry: Entry, measure: str, run: int, result: Mapping[str, Any]) -> Record:
        record = {
            "store": entry.store,
            "subject": entry.name,
            "role": entry.role,
            "grade": entry.grade,
            "at_least_once": entry.at_least_once,
            "measure": measure,
            "run": run,
            **result,
        }
        self._write(record)
        return record

    def _run(self, entry: Entry, spec: Mapping[str, Any], folder: Path, url: str) -> Record:
        full = {**spec, "module": entry.module, "variant": entry.variant, "place": str(folder), "url": url}
        answer = folder / "result.json"
        answer.unlink(missing_ok=True)
        with (folder / "trial.log").open("w+b") as log:
            trial = subprocess.Popen(
                [self._pythons[entry.name], "-m", "benchmarks.trial", "run", json.dumps(full)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            )
            try:
                trial.wait(_LIMIT + float(spec.get("seconds", 0.0)))
            except subprocess.TimeoutExpired:
                return {"void": "the trial did not end in time"}
            finally:
                if trial.poll() is None:
                    os.killpg(trial.pid, signal.SIGKILL)
                    trial.wait()
            log.seek(0)
            said = log.read().decode(errors="replace").strip().splitlines()
        if not answer.exists():
            return {"void": said[-1][:200] if said else f"exit code {trial.returncode}"}
        result: Record = json.loads(answer.read_text())
        return result


def shown(record: Mapping[str, Any]) -> str:
    """A record as a line of progress."""
    head = f"{record['store']:9}{record['subject']:16}{record['measure']:15}"
    if "void" in record:
        return f"{head}void: {record['void']}"
    parts = []
    if "rate" in record:
        parts.append(f"{record['rate']:>11,.0f} jobs/s")
    if "cpu_us" in record:
        parts.append(f"{record['cpu_us']:7.1f} us CPU a job")
    if "p50_ms" in record:
        parts.append(f"p50 {record['p50_ms']:.2f} ms, p99 {record['p99_ms']:.2f} ms")
    if "start_p50_ms" in record:
        parts.append(
            f"max {record['max_ms']:.2f} ms; start p50 {record['start_p50_ms']:.2f} ms, p99 {record['start_p99_ms']:.2f} ms"
        )
    if "enqueued_s" in record:
        parts.append(f"{record['jobs']:,} enqueued in {record['enqueued_s']:.3f} s, run in {record['run_s']:.3f} s")
    if "list_ms" in record:
        parts.append(f"list {record['list_ms']:.1f} ms, stats {record['stats_ms']:.1f} ms")
    if "core_percent" in record:
        parts.append(f"{record['core_percent']:.2f} % of a core")
    setting = f"at {record['setting']}" if record.get("setting") else ""
    return " ".join([head, *parts, setting]).rstrip()


def progress(text: str) -> None:
    """A line on standard error."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
