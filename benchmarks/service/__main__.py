"""`python -m benchmarks.service`: measure the functions service on loopback, and write the results down."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.machine import machine, short_name
from benchmarks.processes import ROOT, cpu_ns, memory_mib
from benchmarks.servers import place_of
from benchmarks.service.load import Target, flood, paced

STORES = ("sqlite", "postgres", "redis")
KEY = "the-service-role-key-of-the-benchmark"
REQUESTS, CALLS, PACED = 10_000, 10_000, 8.0
TARGETS = (
    ("enqueue_rate", "enqueue, requests/s", 2000.0, False),
    ("p99_ms", "enqueue at 1,000/s, p99 in ms", 50.0, True),
    ("call_rate", "jobs that call a function, jobs/s", 1000.0, False),
    ("queued_mib", "memory with 10,000 queued jobs, MiB", 300.0, True),
    ("working_mib", "memory while they are worked off, MiB", 300.0, True),
)


@contextlib.contextmanager
def process(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A process of the benchmark, ended with it."""
    child = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        child.terminate()
        with contextlib.suppress(BrokenPipeError):
            child.communicate(timeout=40)


@contextlib.contextmanager
def serving(url: str, folder: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A service process, and its port."""
    command = ("-m", "treadle.cli.main", "serve", "--json", "--port", "0", "--log-level", "error", "--functions", folder)
    with process(*command, *options, TREADLE_STORE=url, TREADLE_SERVICE_ROLE_KEY=KEY) as child:
        assert child.stdout is not None
        started = json.loads(child.stdout.readline())
        yield child, int(started["url"].rpartition(":")[2]) if started["url"] else 0


def measured(url: str, folder: str, scale: float) -> dict[str, float]:
    """One run on one store."""
    found: dict[str, float] = {}
    requests, calls = int(REQUESTS * scale), int(CALLS * scale)
    treadle = [sys.executable, "-m", "treadle.cli.main"]
    subprocess.run([*treadle, "migrate", "--store", url], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    with serving(url, folder) as (child, port):
        target = Target(port, KEY, "later", delay=86400)
        asyncio.run(flood(target, max(200, requests // 10)))
        used = cpu_ns(child.pid)
        found["enqueue_rate"] = asyncio.run(flood(target, requests))
        found["enqueue_cpu_us"] = (cpu_ns(child.pid) - used) / requests / 1000
        took = sorted(asyncio.run(paced(target, 1000.0, max(0.5, PACED * scale))))
        found["p50_ms"], found["p99_ms"] = (took[int(len(took) * share)] * 1000 for share in (0.5, 0.99))
        found["queued_mib"] = memory_mib(child.pid)[1]
    with process("-m", "benchmarks.service.callee", str(calls)) as callee:
        assert callee.stdout is not None
        address = f"http://127.0.0.1:{int(callee.stdout.readline())}"
        subprocess.run(
            [*treadle, "functions", "add", "bench", address, "--store", url], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
        )
        with serving(url, folder, "--role", "api") as (_, port):
            asyncio.run(flood(Target(port, KEY), calls))
        with serving(url, folder, "--concurrency", "50") as (child, _):
            seen = json.loads(callee.stdout.readline())
            found["call_rate"] = (calls - 1) / seen["seconds"]
            found["working_mib"] = memory_mib(child.pid)[1]
            assert seen["calls"] == calls, "a job was called twice"
    return found


def bare(scale: float) -> float:
    """Requests a second that Starlette and uvicorn answer on this machine, with nothing behind them."""
    with process("-m", "benchmarks.service.bare") as child:
        assert child.stdout is not None
        target = Target(int(child.stdout.readline()), KEY)
        asyncio.run(flood(target, 200))
        return asyncio.run(flood(target, int(REQUESTS * scale)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__)
    parser.add_argument("--stores", default=",".join(STORES), help=f"of {', '.join(STORES)}; default: all")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual number of requests and jobs")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    places = ROOT / "data"
    places.mkdir(exist_ok=True)
    runs: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-", dir=places) as folder:
        described = machine(Path(folder))
        for number in range(options.runs):
            runs.setdefault("bare", []).append({"enqueue_rate": bare(options.scale)})
            for store in options.stores.split(","):
                with place_of(store) as place:
                    url = place.url() or f"sqlite:{folder}/tasks-{number}.db"
                    found = measured(url, folder, options.scale)
                runs.setdefault(store, []).append(found)
                print(f"run {number + 1}, {store}: {_shown(found)}", file=sys.stderr, flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    stem = options.out / f"{time.strftime('%Y-%m-%d')}-{short_name(described)}-service"
    Path(f"{stem}.json").write_text(json.dumps({"machine": described, "scale": options.scale, "runs": runs}, indent=1) + "\n")
    report = "\n".join(_report(described, runs)) + "\n"
    Path(f"{stem}.md").write_text(report)
    print(report)
    return 0


def _shown(found: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:,.1f}" for name, value in found.items())


def _report(described: dict[str, Any], runs: dict[str, list[dict[str, float]]]) -> Iterator[str]:
    medians = {
        store: {name: statistics.median(run[name] for run in found) for name in found[0]} for store, found in runs.items()
    }
    yield "# The functions service"
    yield ""
    yield (
        f"{described['cpu']}, {described['cores']} cores, {described['memory_gib']} GiB; {described['python']}; treadle "
        f"{described['treadle']}. Load average before the run: {described['load_before']}. {len(runs['bare'])} runs, medians; "
        "one service process, the load, the function and the database's server share the cores."
    )
    yield ""
    yield f"Starlette on uvicorn with nothing behind it: {medians['bare']['enqueue_rate']:,.0f} requests/s."
    for store in [store for store in medians if store != "bare"]:
        found = medians[store]
        yield from ("", f"## {store}", "", "| | found | wanted |", "|---|---|---|")
        for name, text, wanted, at_most in TARGETS:
            met = found[name] <= wanted if at_most else found[name] >= wanted
            bound = f"{'at most' if at_most else 'at least'} {wanted:,.0f}"
            yield f"| {text} | {found[name]:,.1f} | {bound}: {'met' if met else 'missed'} |"
        share = statistics.median(
            run["enqueue_rate"] / empty["enqueue_rate"] for run, empty in zip(runs[store], runs["bare"], strict=True)
        )
        yield f"| enqueue, as a share of nothing behind it | {share:.2f} | |"
        yield f"| CPU of the service, µs an enqueue | {found['enqueue_cpu_us']:,.0f} | |"


if __name__ == "__main__":
    sys.exit(main())
