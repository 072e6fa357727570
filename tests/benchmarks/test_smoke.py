"""The benchmark runs: at a tiny scale, without peers, so that it cannot rot. No time is asserted."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(tmp_path, *options):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", "--peers", "none", "--runs", "1", "--scale", "0.002", "--out", tmp_path, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


def records_of(tmp_path):
    [lines] = tmp_path.glob("*.jsonl")
    head, *records = map(json.loads, lines.read_text().splitlines())
    assert head["machine"]["cores"]
    assert not [record for record in records if "void" in record], records
    return records


def test_a_tiny_run_measures_and_reports(tmp_path):
    subjects = "treadle,loop,treadle FULL,bare FULL"
    done = run(tmp_path, "--stores", "memory,sqlite", "--subjects", subjects, "--what", "bulk,failing,pickup_here")
    assert done.returncode == 0, done.stderr
    measured = {(record["store"], record["subject"], record["measure"]): record for record in records_of(tmp_path)}
    for store, subject in (("memory", "treadle"), ("memory", "loop"), ("sqlite", "treadle FULL"), ("sqlite", "bare FULL")):
        assert measured[store, subject, "bulk"]["rate"] > 0
        assert measured[store, subject, "failing"]["settled"]
        assert measured[store, subject, "pickup_here"]["p50_ms"] > 0
    [report] = tmp_path.glob("*.md")
    assert "## Targets" in report.read_text() and "## sqlite" in report.read_text()
    assert "pickup in one process, p50" in done.stdout


def test_drains_over_piles_are_compared_and_drawn(tmp_path):
    done = run(tmp_path, "--stores", "sqlite", "--subjects", "treadle FULL", "--what", "drain,piles")
    assert done.returncode == 0, done.stderr
    measured = {record["measure"] for record in records_of(tmp_path)}
    assert {"drain", "drain empty", "drain finished", "drain unknown", "drain future"} <= measured
    [plot] = tmp_path.glob("*.svg")
    assert "<svg" in plot.read_text()
    assert "drain with a million finished jobs" in done.stdout


def test_schedules_fire_in_one_process(tmp_path):
    done = run(tmp_path, "--stores", "memory", "--subjects", "treadle", "--what", "punctual,firing")
    assert done.returncode == 0, done.stderr
    punctual, firing = records_of(tmp_path)
    assert 0 <= punctual["p50_ms"] <= punctual["max_ms"] and punctual["start_p99_ms"] > 0
    assert firing["jobs"] == 20 and 0 < firing["enqueued_s"] <= firing["run_s"]
    assert "lateness of a schedule's job" in done.stdout and "20 schedules due at one second" in done.stdout


def test_schedules_fire_in_other_processes(tmp_path):
    done = run(tmp_path, "--stores", "sqlite", "--subjects", "treadle FULL", "--what", "punctual,firing2")
    assert done.returncode == 0, done.stderr
    punctual, firing = records_of(tmp_path)
    assert (punctual["workers"], firing["workers"]) == (1, 2)
    assert punctual["jobs"] == 2 and firing["jobs"] == 20
    [report] = tmp_path.glob("*.md")
    assert "| treadle FULL, 2 workers | 20.0 |" in report.read_text()


def test_an_unknown_word_is_refused(tmp_path):
    done = run(tmp_path, "--stores", "mysql")
    assert done.returncode == 2 and "'mysql' is none of" in done.stderr


def test_a_tiny_run_of_the_service_measures_and_reports(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.service", "--stores", "sqlite", "--runs", "1", "--scale", "0.01", "--out", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    [document] = tmp_path.glob("*.json")
    [run] = json.loads(document.read_text())["runs"]["sqlite"]
    assert {"enqueue_rate", "p99_ms", "call_rate", "queued_mib", "working_mib"} <= set(run) and all(
        value > 0 for value in run.values()
    )
    [report] = tmp_path.glob("*.md")
    assert "| jobs that call a function, jobs/s |" in report.read_text()
