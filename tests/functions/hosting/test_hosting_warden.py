"""A service that is killed takes its functions along (F2)."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.functions.hosting.grounds import DEAF, FAMILY, SERVER, Grounds, alive, open_descriptors, request, until

from treadle.functions.hosting import Hosts

SERVICE = Path(__file__).with_name("service.py")


def service(grounds: Grounds, *names: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(SERVICE), str(grounds.folder), *names]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def killed(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(10)
    assert process.stdout is not None
    process.stdout.close()


def test_a_killed_service_takes_its_functions_along(grounds: Grounds) -> None:
    grounds.program("polite")
    grounds.program("deaf", DEAF)
    grounds.program("family", FAMILY)
    process = service(grounds, "polite", "deaf", "family")
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["begun\n", "ready\n"]
    running = grounds.processes()
    assert len(running) == 4
    [warden] = [child for child in psutil.Process(process.pid).children() if child not in running]
    killed(process)
    asyncio.run(until(lambda: not any(alive(one.pid) for one in [*running, warden])))


@pytest.mark.slow
def test_a_service_that_is_killed_at_any_moment_of_a_start_leaves_nothing(grounds: Grounds) -> None:
    for number in range(4):
        grounds.program(f"f{number}", SERVER if number % 2 else DEAF)
    for number in range(12):
        process = service(grounds, *(f"f{number}" for number in range(4)))
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        began = time.monotonic()
        while time.monotonic() - began < number * 0.01:
            pass  # a moment of the start, another one in each round
        killed(process)
        asyncio.run(until(lambda: not grounds.processes()))


def test_a_service_that_is_killed_before_the_warden_knows_leaves_nothing(grounds: Grounds) -> None:
    """The process waits at a gate until the warden has been told of it, and its end is the service's end."""
    grounds.program("one", "open('../../notes', 'w').close()\n" + SERVER)
    killing = """
import os
from treadle.functions.hosting import wards
wards.Wards.add = lambda *_: os.kill(os.getpid(), 9)
async def main"""
    text = SERVICE.read_text().replace("async def main", killing)
    script = grounds.folder.parent / "killed.py"
    script.write_text(text)
    ended = subprocess.run([sys.executable, str(script), str(grounds.folder), "one"], stdout=subprocess.DEVNULL, timeout=20)
    assert ended.returncode == -signal.SIGKILL
    asyncio.run(until(lambda: not grounds.processes()))
    assert not grounds.notes.exists()


def test_a_warden_that_is_killed_is_replaced_and_knows_of_all(grounds: Grounds) -> None:
    grounds.program("one")
    process = service(grounds, "one")
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["begun\n", "ready\n"]
    [function] = grounds.processes()

    def wardens() -> set[psutil.Process]:
        return set(psutil.Process(process.pid).children()) - {function}

    [first] = wardens()
    first.kill()
    asyncio.run(until(lambda: wardens() - {first}))
    assert alive(function.pid)
    killed(process)
    asyncio.run(until(lambda: not alive(function.pid)))


def ignores(pid: int, number: int) -> bool:
    """Whether the process has come to ignore the signal."""
    [mask] = [line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn")]
    return bool(int(mask, 16) & 1 << (number - 1))


def wardens_here() -> list[psutil.Process]:
    """The wardens of this process; a child may end while it is looked at."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "warden.py" in " ".join(child.cmdline()):
                found.append(child)
    return found


def test_the_warden_outlives_a_signal_to_everything_and_ends_with_the_service(grounds: Grounds) -> None:
    grounds.program("one", DEAF)

    async def story(hosts: Hosts) -> None:
        url = await hosts.place("one", "s", 20)
        pid = hosts.states()[0].pid
        [warden] = [child for child in wardens_here() if child.pid != pid]
        await until(lambda: ignores(warden.pid, signal.SIGTERM))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(warden.pid, number)
        assert (await request(url))[0] == 200
        assert alive(warden.pid)
        assert os.getsid(warden.pid) == warden.pid  # no Ctrl+C of a terminal reaches it
        await hosts.stop()
        assert not psutil.pid_exists(warden.pid)

    grounds.run(story, stop_within=0.3)


def test_a_warden_that_is_replaced_leaves_nothing_open(grounds: Grounds) -> None:
    grounds.program("one")
    before = open_descriptors()

    async def story(hosts: Hosts) -> None:
        await hosts.place("one", "s", 20)
        for _ in range(3):
            pid = hosts.states()[0].pid
            [warden] = wardens_here()
            warden.kill()
            await until(lambda warden=warden: not psutil.pid_exists(warden.pid))
            await until(wardens_here)
            assert hosts.states()[0].pid == pid

    grounds.run(story)
    assert open_descriptors() <= before


def test_a_service_without_a_function_in_use_has_no_warden(grounds: Grounds) -> None:
    grounds.program("one")
    before = set(psutil.Process().children())

    async def story(hosts: Hosts) -> None:
        await hosts.start()
        assert set(psutil.Process().children()) == before

    grounds.run(story)
