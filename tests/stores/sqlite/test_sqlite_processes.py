"""Several processes on one file: no lock reaches a user, nothing committed is lost, forks are safe, arrivals are noticed."""

import asyncio
import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from treadle.core.errors import StoreUnavailable
from treadle.core.filter import EVERYTHING
from treadle.core.job import NewJob
from treadle.core.store import Demand
from treadle.stores.sqlite import SQLiteStore, writer

# Newer Pythons warn of any fork of a process with threads; that forks are safe here is what is tested.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

MEMBER = Path(__file__).with_name("member.py")


def member(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, str(MEMBER), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_eight_processes_hammer_one_file(tmp_path):
    path, jobs = tmp_path / "tasks.db", 60
    members = [member("hammer", path, number, jobs) for number in range(8)]
    ran = []
    for one in members:
        out, errors = one.communicate(timeout=60)
        assert one.returncode == 0, errors
        ran += out.split()
    assert len(ran) == len(set(ran)) == 8 * jobs

    async def main():
        store = SQLiteStore(path)
        stats = await store.stats()
        assert (stats.pending, stats.running, stats.done, stats.dead) == (0, 0, 8 * jobs, 0)
        await store.close()

    asyncio.run(main())
    assert checked(path) == "ok"


def test_kill_9_loses_nothing_that_was_stored(tmp_path):
    path = tmp_path / "tasks.db"
    for _ in range(3):
        one = member("write", path)
        said = [one.stdout.readline().strip() for _ in range(300)]
        one.kill()
        said += one.communicate(timeout=10)[0].split()

        async def stored():
            store = SQLiteStore(path)
            found = {job.id for job in await store.find(EVERYTHING, limit=100_000)}
            await store.close()
            return found

        # The last line may have been cut short by the kill.
        assert {id for id in said if len(id) == 8} <= asyncio.run(stored())
        assert checked(path) == "ok"


def test_the_child_of_a_fork_opens_its_own(tmp_path):
    store = SQLiteStore(tmp_path / "tasks.db")
    asyncio.run(fill(store, "before"))
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(fill(store, "child"))
            asyncio.run(store.close())
        except BaseException:
            os._exit(1)
        os._exit(0)
    asyncio.run(fill(store, "parent"))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    asyncio.run(has(store, 150))
    assert checked(tmp_path / "tasks.db") == "ok"


def test_a_parent_that_closes_leaves_the_childs_log_alone(tmp_path):
    """SQLite's locks are not inherited: without care, the parent would take itself for the last and delete the log."""
    path = tmp_path / "tasks.db"
    store = SQLiteStore(path)
    asyncio.run(fill(store, "before"))
    to_child, to_parent = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(fill(store, "child"))
            os.write(to_parent[1], b"x")
            os.read(to_child[0], 1)
            asyncio.run(fill(store, "again"))
        except BaseException:
            os._exit(1)
        os._exit(0)  # as if killed: what it stored is in the log
    assert os.read(to_parent[0], 1) == b"x"
    asyncio.run(fill(store, "parent"))
    asyncio.run(store.close())
    os.write(to_child[1], b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for end in (*to_child, *to_parent):
        os.close(end)
    asyncio.run(has(store, 200))
    assert checked(path) == "ok"


def test_a_fork_waits_for_what_is_being_written(tmp_path):
    """The threads are between two operations when the process forks, and its child inherits no lock."""
    path = tmp_path / "tasks.db"
    store = SQLiteStore(path)

    async def main():
        inside, forked = threading.Event(), []

        def slow(session):
            inside.set()
            forked.append(released.wait(0.3))  # the fork is being waited for by now
            return True

        released = threading.Event()
        task = asyncio.create_task(store._connection.write(slow))
        await asyncio.to_thread(inside.wait, 10)
        child = os.fork()
        if child == 0:
            lock = Path(f"{path}-lock").stat().st_ino
            os._exit(any(inode(fd) == lock for fd in range(3, 256)))
        released.set()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert await task
        assert forked == [False]
        await store.close()

    asyncio.run(main())


def test_a_listener_hears_on_after_a_fork(tmp_path):
    async def main():
        store = SQLiteStore(tmp_path / "tasks.db")
        woken, loop = asyncio.Event(), asyncio.get_running_loop()
        listener = await store.listen(lambda: loop.call_soon_threadsafe(woken.set))
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        other = SQLiteStore(tmp_path / "tasks.db")
        await other.migrate()
        await asyncio.wait_for(woken.wait(), 10)
        woken.clear()
        await other.enqueue([NewJob("1", "a")])
        await asyncio.wait_for(woken.wait(), 10)
        await listener.close()
        await other.close()
        await store.close()

    asyncio.run(main())


def test_a_child_wakes_nobody_who_listened_in_its_parent(tmp_path):
    """Their loops are copies that nobody runs, and what is handed to one stays there for ever."""

    async def main():
        store = SQLiteStore(tmp_path / "tasks.db")
        rung = []
        listener = await store.listen(lambda: rung.append(os.getpid()))
        child = os.fork()
        if child == 0:
            thread = threading.Thread(target=in_child, args=(store, rung))  # for another loop than the parent's
            thread.start()
            thread.join()
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        await listener.close()
        await store.close()

    def in_child(store, rung):
        async def used():
            before = len(rung)
            await store.enqueue([NewJob("1", "a")])
            assert len(rung) == before, "the parent's listener"
            own = []
            listener = await store.listen(lambda: own.append(1))
            await store.enqueue([NewJob("2", "b")])
            assert own
            await listener.close()
            await store.close()

        try:
            asyncio.run(used())
        except BaseException:
            os._exit(1)
        os._exit(0)

    asyncio.run(main())


def test_a_lock_held_outside_is_waited_out(tmp_path):
    path = tmp_path / "tasks.db"

    async def main():
        store = SQLiteStore(path)
        await store.migrate()
        outside = sqlite3.connect(path, isolation_level=None)
        outside.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        task = asyncio.create_task(store.enqueue([NewJob("1", "a")]))
        assert await store.get(["1"]) == []  # reading goes on
        done, _ = await asyncio.wait([task], timeout=1.2)
        assert not done
        outside.execute("COMMIT")
        assert (await task)[0].created
        assert time.monotonic() - began >= 1.2
        outside.close()
        await store.close()

    asyncio.run(main())


def test_patience_ends_with_a_clear_error(tmp_path):
    path = tmp_path / "tasks.db"

    async def main():
        store = SQLiteStore(path, busy_timeout=0.2)
        await store.migrate()
        outside = sqlite3.connect(path, isolation_level=None)
        outside.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="held locked by another program"):
            await store.enqueue([NewJob("1", "a")])
        outside.execute("COMMIT")
        outside.close()
        assert (await store.enqueue([NewJob("1", "a")]))[0].created
        await store.close()

    asyncio.run(main())


def test_a_stopped_process_that_holds_the_lock_is_named(tmp_path):
    """SIGSTOP in the middle of a write: others wait as long as they are told to, and go on once it does."""
    path = tmp_path / "tasks.db"
    one = member("write", path)
    for _ in range(100):
        one.stdout.readline()
    try:
        while not stopped_inside(one, path):  # stop it at moments until one is inside a write
            one.send_signal(signal.SIGCONT)
            one.stdout.readline()

        async def main():
            store = SQLiteStore(path, busy_timeout=0.3)
            with pytest.raises(StoreUnavailable, match=r"-lock was held by another process for 0\.3 s"):
                await store.enqueue([NewJob("x", "a")])
            one.kill()
            one.communicate(timeout=10)
            assert (await store.enqueue([NewJob("x", "a")]))[0].created
            await store.close()

        asyncio.run(main())
    finally:
        one.kill()
        one.communicate(timeout=10)


def test_an_arrival_from_another_process_wakes_the_listener(tmp_path):
    path = tmp_path / "tasks.db"

    async def main():
        store = SQLiteStore(path)
        woken = asyncio.Event()
        loop = asyncio.get_running_loop()
        listener = await store.listen(lambda: loop.call_soon_threadsafe(woken.set))
        one = member("enqueue", path, stdin=subprocess.PIPE)
        assert (await asyncio.to_thread(one.stdout.readline)) == "ready\n"
        for number in range(5):
            woken.clear()
            one.stdin.write("\n")
            one.stdin.flush()
            found = []
            while not found:
                await asyncio.wait_for(woken.wait(), 10)
                woken.clear()
                found = (await store.claim(f"t{number}", [Demand(1)], worker="w", lease=60)).jobs
            assert found[0].id == f"w{number}"
        one.communicate(timeout=10)
        await listener.close()
        await listener.close()
        await store.close()

    asyncio.run(main())


def test_arrivals_of_the_same_store_wake_at_once_and_only_listeners(tmp_path):
    async def main():
        store = SQLiteStore(tmp_path / "tasks.db")
        told = []
        listener = await store.listen(lambda: told.append(1))
        broken = await store.listen(lambda: 1 / 0)
        await store.enqueue([NewJob("1", "a")])
        await store.migrate()
        assert told
        await listener.close()
        told.clear()
        await store.enqueue([NewJob("2", "a")])
        await store.migrate()
        assert not told
        await broken.close()
        await store.close()

    asyncio.run(main())


async def fill(store, prefix):
    for number in range(50):
        await store.enqueue([NewJob(f"{prefix}{number}", "a")])


async def has(store, jobs):
    assert (await store.stats()).pending == jobs
    await store.close()


def inode(descriptor):
    try:
        return os.fstat(descriptor).st_ino
    except OSError:
        return None


def stopped_inside(process, path):
    """Whether the process, once it has really stopped, holds the lock of the file: the signal alone takes it a moment."""
    process.send_signal(signal.SIGSTOP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), status
    return not free(f"{path}-lock")


def free(path):
    """Whether nobody holds the lock file."""
    with Path(path).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def checked(path):
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        connection.close()


def test_without_inotify_the_listener_looks_for_itself(tmp_path, monkeypatch):
    def missing(path, changed):
        raise OSError("no inotify")

    monkeypatch.setattr(writer, "Watch", missing)

    async def main():
        store, other = SQLiteStore(tmp_path / "tasks.db"), SQLiteStore(tmp_path / "tasks.db")
        woken, loop = asyncio.Event(), asyncio.get_running_loop()
        listener = await store.listen(lambda: loop.call_soon_threadsafe(woken.set))
        for number in range(3):
            await other.enqueue([NewJob(str(number), "a")])
            await asyncio.wait_for(woken.wait(), 10)
            woken.clear()
        await listener.close()
        await other.close()
        await store.close()

    asyncio.run(main())
