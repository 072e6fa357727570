"""Moves between stores at work, and moves that are killed: real processes, nothing lost, nothing run twice (S13)."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from fleet import Fleet
from stock import contents
from tests.servers import postgres

from treadle import StoreMoved, Tasks, open_store
from treadle.core.filter import EVERYTHING
from treadle.core.job import Key, NewJob
from treadle.testing.factory import uuid7

TREADLE = [sys.executable, "-m", "treadle.cli.main"]
AROUND = [("sqlite", "postgres"), ("postgres", "valkey"), ("valkey", "sqlite")]
JOBS = 6000
_pause = threading.Event()


def treadle(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TREADLE, *arguments], cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), AROUND)
def test_moving_under_load_loses_nothing_and_runs_nothing_twice(source, target, place, tmp_path):
    here, there = place(source), place(target)
    fleet = Fleet(here, tmp_path)
    enqueued: list[str] = []
    told: list[StoreMoved] = []

    def enqueue(number: int) -> None:
        with closing(Tasks(here).sync) as tasks:
            for turn in range(100_000):
                key = {"idempotency_key": f"{number}:{turn}"} if turn % 3 == 0 else {}
                try:
                    enqueued.append(tasks.enqueue("quick", turn % 5, delay=turn % 4 / 20, **key).id)
                except StoreMoved as error:
                    told.append(error)
                    return

    try:
        workers = [fleet.worker(LEASE="30") for _ in range(2)]
        fleet.started(0)
        threads = [threading.Thread(target=enqueue, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        fleet.started(30)
        moved = treadle("move", "--from", here, "--to", there, "--wait", "30", folder=tmp_path)
        assert moved.returncode == 0, moved.stderr
        for thread in threads:
            thread.join(30)
        assert len(told) == 3
        assert all(f"moved to {there.partition('?')[0].partition(':')[0]}" in str(error) for error in told), told
        for worker in workers:
            fleet.until(lambda worker=worker: "moved to" in worker.output.read_text(), "the worker says so")
        late = fleet.worker()
        assert late.ended() == 1
        assert "the store was moved to" in late.output.read_text()
        done_before = {job.id for job in fleet.tasks.sync.list(states=["done"])}
        for worker in workers:
            worker.signal(signal.SIGTERM)
        (tmp_path / "there").mkdir()
        target_fleet = Fleet(there, tmp_path / "there")
    finally:
        fleet.close()
    try:
        target_fleet.ledger = fleet.ledger
        waiting = target_fleet.tasks.sync.stats().pending
        target_fleet.worker(LEASE="30")
        target_fleet.all_finished()
        done_there = {job.id for job in target_fleet.tasks.sync.list(states=["done"])}
        starts = Counter(line.id for line in target_fleet.lines())
        print(f"{source} to {target}: enqueued {len(enqueued)}, done before {len(done_before)}, moved pending {waiting}")
        assert set(enqueued) <= done_before | done_there, "every job that was answered as stored has run"
        assert {id: count for id, count in starts.items() if count > 1} == {}, "and none twice"
        assert waiting > 0
    finally:
        target_fleet.close()


def fill(url: str) -> None:
    import asyncio

    async def main() -> None:
        store = open_store(url, migrate=True)
        for first in range(0, JOBS, 1000):
            await store.enqueue(
                [
                    NewJob(
                        uuid7(number),
                        f"job-{number % 7}",
                        f'{{"n":{number}}}',
                        key=Key("dedupe", str(number)) if number % 2 else None,
                    )
                    for number in range(first, first + 1000)
                ]
            )
        for number in range(300):
            await store.put_document("settings", f"{number:03}", number)
        await store.close()

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), AROUND)
def test_killed_in_the_middle_it_goes_on_where_it_is_run_again(source, target, place, tmp_path):
    import asyncio

    here, there = place(source), place(target)
    fill(here)
    killed = []

    async def kill_at(threshold: int) -> None:
        """Run it, and kill it when so many jobs are there, or it has only just begun."""
        process = subprocess.Popen([*TREADLE, "move", "--from", here, "--to", there], cwd=tmp_path, stderr=subprocess.PIPE)
        source, target = open_store(here), open_store(there, migrate=True)
        while process.poll() is None:
            if threshold == 0:
                if await source.get_mark() is not None:
                    break
            elif await target.count(EVERYTHING) >= threshold:
                break
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=30)
        killed.append((process.returncode, await target.count(EVERYTHING)))
        assert process.returncode in (0, -signal.SIGKILL), errors
        await source.close()
        await target.close()

    for threshold in (0, 1, JOBS // 3, 2 * JOBS // 3):
        asyncio.run(kill_at(threshold))
    print(f"{source} to {target}: exit codes and jobs in the target after each kill: {killed}")
    assert killed[1][0] == -signal.SIGKILL and 0 < killed[1][1] < JOBS, "at least one came in the middle"
    closed = treadle("list", "--store", here, "--limit", "1", folder=tmp_path)
    assert closed.returncode == 0, "reading goes on"
    ended = treadle("move", "--from", here, "--to", there, folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert re.search(rf"pending +{JOBS:,} +{JOBS:,}$", ended.stdout, re.MULTILINE) or "already" in ended.stdout
    again = treadle("move", "--from", here, "--to", there, folder=tmp_path)
    assert (again.returncode, "nothing was changed" in again.stdout) == (0, True)

    async def compare() -> None:
        one, other = open_store(here), open_store(there)
        assert await contents(other) == await contents(one)
        await one.close()
        await other.close()

    asyncio.run(compare())


@pytest.mark.slow
def test_a_transaction_of_a_caller_that_is_open_is_waited_for(place, tmp_path):
    """What a program has enqueued inside its own transaction is moved with the rest, or was never there (E10)."""
    here, there = place("postgres"), place("sqlite")
    fill(here)
    with closing(Tasks(here).sync) as tasks, postgres.shared_server().connect() as connection:
        with connection.transaction():
            job = tasks.enqueue("mine", 1, connection=connection).id
            process = subprocess.Popen([*TREADLE, "move", "--from", here, "--to", there], cwd=tmp_path)
            waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like 'lock table%%'"
            while postgres.shared_server()._do(waiting) == [(0,)]:
                assert process.poll() is None, "it did not wait"
                _pause.wait(0.01)  # what is waited for happens in another process: look again soon
        assert process.wait(60) == 0
        with pytest.raises(StoreMoved):
            with connection.transaction():
                tasks.enqueue("late", 1, connection=connection)
    with closing(Tasks(there).sync) as tasks:
        assert tasks.get(job).name == "mine"
        assert tasks.stats().pending == JOBS + 1
