"""No process of a function is lost sight of, above all not for want of something in the service itself (F2)."""

import asyncio
import errno
import logging
import os
import signal
import socket
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.functions.hosting.grounds import QUICK, Grounds, open_descriptors, until
from tests.functions.shortages import no_more_files

from treadle.engine.clock import EngineClock
from treadle.functions.hosting import Hosts, keeper, probe, program
from treadle.functions.hosting.folder import Folder
from treadle.functions.seldom import SeldomLog
from treadle.functions.shortage import NO_PROCESS, NO_THREAD, Shortage, lacking
from treadle.testing import ManualClock


class Looks:
    """Counts the looks at processes, and what they found or raised; `instead` replaces them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: list[object] = []
        self.instead: Callable[[], str | None] | None = None
        self._real = probe.trouble
        monkeypatch.setattr(probe, "trouble", self._look)

    async def _look(self, port: int, health: str | None, within: float) -> str | None:
        try:
            found = await self._real(port, health, within) if self.instead is None else self.instead()
        except BaseException as error:
            self.found.append(error)
            raise
        self.found.append(found)
        return found


def failing(error: Exception) -> Callable[[], str | None]:
    def look() -> str | None:
        raise error

    return look


def test_a_process_that_cannot_be_looked_at_is_left_alone(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    grounds.program("one")
    looks = Looks(monkeypatch)

    async def story(hosts: Hosts) -> None:
        await hosts.start()
        url = await hosts.place("one", "s", 20)
        [before] = hosts.states()
        with no_more_files():
            seen = len(looks.found)
            await until(lambda: len(looks.found) >= seen + 8)
            assert all(isinstance(one, OSError) and one.errno == errno.EMFILE for one in looks.found[seen + 1 :])
            assert await hosts.place("one", "s", 20) == url
        seen = len(looks.found)
        await until(lambda: len(looks.found) >= seen + 2)
        assert looks.found[-1] is None
        assert hosts.states() == [before]
        [process] = grounds.processes()
        assert process.pid == before.pid

    grounds.run(story, pace=replace(QUICK, check_every=0.05))
    told = [text for text in caplog.messages if "one" in text or "seen" in text]
    assert told == ["whether functions are well cannot be seen: this process has too many open files"]


def test_a_process_is_ended_whatever_ended_the_keeping_of_it(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    grounds.program("one")
    looks = Looks(monkeypatch)

    async def story(hosts: Hosts) -> None:
        for state in ("ready", "starting"):
            await hosts.place("one", "s", 20)
            first = hosts.states()[0].pid
            assert first is not None
            if state == "starting":
                os.kill(first, signal.SIGKILL)
                await until(lambda: hosts.states()[0].pid not in (None, first))
                first = hosts.states()[0].pid
            looks.instead = failing(ValueError("unforeseen"))
            await until(lambda: hosts.states()[0].state == "waiting")
            assert grounds.processes() == [], "it lives on, and nobody knows of it"
            looks.instead = None
            await hosts.place("one", "s", 20)
            [process] = grounds.processes()
            assert process.pid == hosts.states()[0].pid

    grounds.run(story, pace=replace(QUICK, patience=5))
    assert caplog.text.count("the function 'one' could not be started") == 2


def test_a_starting_process_that_cannot_be_looked_at_is_given_the_time(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    grounds.program("one", manifest="ready_within = 0.3")
    looks = Looks(monkeypatch)
    looks.instead = failing(OSError(errno.ENFILE, "too many"))

    async def story(hosts: Hosts) -> None:
        with pytest.raises(Shortage, match=r"not ready in the 0\.[45] s that") as failed:
            await hosts.place("one", "s", 0.45)
        assert failed.value.lacking == "this machine has too many open files"
        await until(lambda: len(looks.found) > 8)
        first = hosts.states()[0].pid
        looks.instead = None
        await hosts.place("one", "s", 20)
        assert (hosts.states()[0].pid, hosts.states()[0].restarts) == (first, 0)

    grounds.run(story)


@pytest.mark.parametrize(
    "error", [OSError(errno.EMFILE, "too many"), RuntimeError("can't start new thread")], ids=["files", "threads"]
)
def test_a_port_whose_owner_cannot_be_found_is_looked_at_again(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    grounds.program("one")
    asked: list[int] = []
    real = keeper.listens

    def listens(port: int, group: int) -> bool:
        asked.append(port)
        if len(asked) < 3:
            raise error
        return real(port, group)

    monkeypatch.setattr(keeper, "listens", listens)

    async def story(hosts: Hosts) -> None:
        await hosts.place("one", "s", 20)
        assert hosts.states()[0].restarts == 0

    grounds.run(story)
    assert len(asked) == 3


def test_what_cannot_be_started_for_want_of_something_here_is_no_fault_of_the_function(
    grounds: Grounds, caplog: pytest.LogCaptureFixture
) -> None:
    grounds.program("one")

    async def story(hosts: Hosts) -> None:
        await hosts.start()
        with no_more_files():
            for _ in range(2):
                with pytest.raises(Shortage) as failed:
                    await hosts.place("one", "s", 20)
                assert str(failed.value).startswith(
                    "Function 'one' cannot be reached: its process cannot be started: this process has too many open files; "
                )
            await until(lambda: hosts.states()[0].restarts >= 5)
        await hosts.place("one", "s", 20)

    before = open_descriptors()
    grounds.run(story, pace=replace(QUICK, first_pause=0.05, longest_pause=60.0))
    assert open_descriptors() <= before
    told = [text for text in caplog.messages if "'one'" in text]
    assert len(told) == 1, "as often as it was tried, and with the same short pause each time"


def test_a_machine_that_starts_no_further_process(grounds: Grounds, monkeypatch: pytest.MonkeyPatch) -> None:
    grounds.program("one")

    async def refused(self: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(program.Wards, "open", refused)

    async def story(hosts: Hosts) -> None:
        with pytest.raises(Shortage) as failed:
            await hosts.place("one", "s", 20)
        assert failed.value.lacking == NO_PROCESS

    grounds.run(story)


def test_the_folder_stays_as_it_was_while_no_file_can_be_opened(grounds: Grounds, caplog: pytest.LogCaptureFixture) -> None:
    path = grounds.program("one")
    grounds.python("two", "")
    grounds.program("late")

    async def story(hosts: Hosts) -> None:
        (grounds.folder / "late").rename(grounds.folder.parent / "late")
        await hosts.start()
        url = await hosts.place("one", "s", 20)
        before = hosts.find("one"), hosts.find("two"), hosts.states()
        with no_more_files():
            (path.parent / "function.toml").touch()
            (grounds.folder.parent / "late").rename(grounds.folder / "late")
            assert await hosts.place("one", "s", 20) == url
            with pytest.raises(Shortage, match=r"^Function 'late' cannot be reached: this process has too many open files$"):
                await hosts.place("late", "s", 20)
            hosts._folder.look()
            assert (hosts.find("one"), hosts.find("two"), hosts.states()) == before
        await hosts.place("late", "s", 20)
        assert await hosts.place("one", "s", 20) != url  # its `function.toml` was changed, and is read now
        assert [one.broken for one in (hosts.find("one"), hosts.find("late")) if one is not None] == [None, None]

    grounds.run(story)
    assert "broken" not in caplog.text


def test_a_function_toml_that_could_not_be_read_is_read_again_though_it_is_the_same(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = grounds.program("one").with_name("function.toml")
    real, forbidden = Path.read_bytes, [path]

    def read_bytes(self: Path) -> bytes:
        if self in forbidden:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(self)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    folder = Folder(grounds.folder, logging.getLogger("treadle.tests.hosting"))
    for look in (lambda: folder.look()["one"], lambda: folder.fresh("one")):
        found = look()
        assert found is not None and found.broken == "function.toml cannot be read: Permission denied"
    forbidden.clear()
    found = folder.fresh("one")
    assert found is not None and found.broken is None


# -- a look


def resetting() -> tuple[socket.socket, int]:
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(50)
    server.setblocking(False)
    return server, server.getsockname()[1]


def test_a_port_that_resets_what_it_has_accepted_is_found_the_same_each_time() -> None:
    """Whether the reset is seen in time is chance, and must neither raise nor count now and then."""
    server, port = resetting()

    async def reset_all() -> None:
        while True:
            accepted, _ = await asyncio.get_running_loop().sock_accept(server)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            accepted.close()

    async def main() -> None:
        task = asyncio.create_task(reset_all())
        try:
            assert {await probe.trouble(port, None, 5) for _ in range(200)} == {None}
            assert {await probe.trouble(port, "/health", 5) for _ in range(50)} == {"/health broke off its answer"}
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    with server:
        asyncio.run(main())


class Met(socket.socket):
    """A socket whose peer has reset it by the time that it is asked about."""

    def getpeername(self) -> object:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")


def test_a_reset_before_the_peer_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    server, port = resetting()

    async def main() -> None:
        monkeypatch.setattr(probe.socket, "socket", Met)
        assert await probe.trouble(port, None, 5) is None

    with server:
        asyncio.run(main())


def test_a_look_without_a_free_descriptor_says_so_and_nothing_of_the_function() -> None:
    server, port = resetting()

    async def main() -> None:
        with no_more_files(), pytest.raises(OSError, match="Too many open files"):
            await probe.trouble(port, None, 5)
        assert await probe.trouble(port, None, 5) is None

    with server:
        asyncio.run(main())

    async def refused() -> None:
        assert await probe.trouble(port, None, 5) == "its port refuses connections"

    asyncio.run(refused())


# -- what is lacking


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EMFILE, "x"), "this process has too many open files"),
        (OSError(errno.ENFILE, "x"), "this machine has too many open files"),
        (OSError(errno.EADDRNOTAVAIL, "x"), "this machine has no free port left"),
        (OSError(errno.ENOMEM, "x"), "this machine has no memory left"),
        (OSError(errno.ENOBUFS, "x"), "this machine has no room left for what is sent"),
        (socket.gaierror(socket.EAI_MEMORY, "x"), "this machine has no memory left"),
        (RuntimeError("can't start new thread"), NO_THREAD),
        (ExceptionGroup("x", [OSError(errno.ECONNREFUSED, "x"), OSError(errno.EMFILE, "x")]), "this process has too many"),
        (OSError(errno.ECONNREFUSED, "x"), None),
        (OSError("x"), None),
        (OSError(), None),
        (TimeoutError(), None),
        (socket.gaierror(socket.EAI_AGAIN, "x"), None),
        (socket.gaierror(socket.EAI_NONAME, "x"), None),
        (RuntimeError("x"), None),
        (ExceptionGroup("x", [OSError(errno.ECONNREFUSED, "x"), ValueError("x")]), None),
    ],
)
def test_what_an_error_says_of_this_process(error: Exception, words: str | None) -> None:
    found = lacking(error)
    assert found is None if words is None else found is not None and found.startswith(words)


def test_a_name_that_is_unknown_since_no_file_can_be_opened() -> None:
    with no_more_files():
        assert lacking(socket.gaierror(socket.EAI_AGAIN, "x")) == "this process has too many open files"


def test_a_seldom_log_says_each_kind_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    log = SeldomLog(logging.getLogger("treadle.tests.seldom"), EngineClock(clock))
    for number, passed in enumerate((0, 0, 29, 1, 29)):
        clock.advance(passed)
        log.warning("one %s", number)
        log.warning("another")
    assert caplog.messages == ["one 0", "another", "one 3", "another"]
