"""The life of a function's process: started at its first use, kept running, stopped (F2)."""

import asyncio
import json
import logging
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.functions.hosting.grounds import (
    DEAF,
    FAMILY,
    QUICK,
    SERVER,
    WAITING,
    Grounds,
    alive,
    noticed,
    open_descriptors,
    request,
    until,
)

from treadle.core.signals import CallFailed
from treadle.functions.hosting import Hosts
from treadle.functions.hosting.ports import free_port


async def pid_of(url: str) -> int:
    status, body = await request(url)
    assert status == 200
    return int(json.loads(body)["pid"])


def test_many_first_uses_at_once_start_one_process(grounds: Grounds) -> None:
    grounds.program("one", "from pathlib import Path\nopen('../../notes', 'a').write('started\\n')\n" + SERVER)

    async def story(hosts: Hosts) -> None:
        urls = await asyncio.gather(*(hosts.place("one", "s", 20) for _ in range(50)))
        assert len(set(urls)) == 1
        [state] = hosts.states()
        assert (state.name, state.state, state.restarts) == ("one", "ready", 0)
        assert state.pid == await pid_of(urls[0])
        assert urls[0] == f"http://127.0.0.1:{state.port}"
        assert state.since.tzinfo is not None

    grounds.run(story)
    assert grounds.notes.read_text() == "started\n"


def test_twenty_functions_start_at_once(grounds: Grounds) -> None:
    for number in range(20):
        grounds.program(f"f{number}")

    async def story(hosts: Hosts) -> None:
        urls = await asyncio.gather(*(hosts.place(f"f{number}", "s", 40) for number in range(20)))
        assert len(set(urls)) == 20
        assert len({await pid_of(url) for url in urls}) == 20

    before = open_descriptors()
    grounds.run(story)
    assert open_descriptors() <= before


def test_what_a_process_finds_around_it(grounds: Grounds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STORE", "postgres://secret")
    monkeypatch.setenv("TREADLE_URL", "the service's own")
    monkeypatch.setenv("FROM_OUTSIDE", "yes")
    text = SERVER.replace('{"pid": os.getpid(),', '{"env": dict(os.environ), "cwd": os.getcwd(), "stdin": sys.stdin.read(),')
    grounds.program("one", text, 'env = { GREETING = "hello", PYTHONUNBUFFERED = "2" }')

    async def story(hosts: Hosts) -> None:
        url = await hosts.place("one", "the-secret", 20)
        seen = json.loads((await request(url))[1])
        env = seen["env"]
        treadle = {name: value for name, value in env.items() if name.startswith("TREADLE_")}
        assert treadle == {
            "TREADLE_URL": "http://service",
            "TREADLE_FUNCTION_NAME": "one",
            "TREADLE_FUNCTION_SECRET": "the-secret",
        }
        assert (env["FROM_OUTSIDE"], env["GREETING"], env["PYTHONUNBUFFERED"]) == ("yes", "hello", "2")
        assert url.endswith(f":{env['PORT']}")
        assert Path(seen["cwd"]) == grounds.folder / "one"
        assert seen["stdin"] == ""
        pid = hosts.states()[0].pid
        assert pid is not None
        assert os.getpgid(pid) == os.getsid(pid) == pid

    grounds.run(story)


def test_the_port_stands_in_the_command_too(grounds: Grounds) -> None:
    grounds.program("one", 'import os, sys\nos.environ["PORT"] = sys.argv[1].partition("=")[2]\n' + SERVER)
    (grounds.folder / "one/function.toml").write_text(f"command = '{sys.executable} serve.py --port=${{PORT}}'")

    async def story(hosts: Hosts) -> None:
        await pid_of(await hosts.place("one", "s", 20))

    grounds.run(story)


def test_a_slow_start_is_waited_for_by_those_with_time(grounds: Grounds) -> None:
    grounds.program(
        "slow", "import os, sys\nopen('../../notes', 'w').close()\nsys.stdin = open('../../go')\nsys.stdin.read()\n" + SERVER
    )
    os.mkfifo(grounds.folder.parent / "go")

    async def story(hosts: Hosts) -> None:
        with pytest.raises(CallFailed, match=r"Function 'slow' cannot be reached: .* not ready in the 0\.[0-3] s that"):
            await hosts.place("slow", "s", 0.3)
        waiting = [asyncio.create_task(hosts.place("slow", "s", 20)) for _ in range(3)]
        await until(grounds.notes.exists)
        with (grounds.folder.parent / "go").open("w"):
            pass  # let it go on
        assert len({await task for task in waiting}) == 1
        assert hosts.states()[0].restarts == 0

    grounds.run(story)


def test_what_is_not_ready_in_time_is_killed(grounds: Grounds) -> None:
    grounds.program(
        "never",
        "import threading\nprint('loading the model', flush=True)\nthreading.Event().wait(600)\n",
        "ready_within = 0.4\n",
    )

    async def story(hosts: Hosts) -> None:
        with pytest.raises(CallFailed) as failed:
            await hosts.place("never", "s", 20)
        assert str(failed.value).startswith(
            "Function 'never' cannot be reached: its process was not ready within 0.4 s (loading the model); it is started"
        )
        assert grounds.processes() == []

    grounds.run(story)


def test_a_call_that_is_cancelled_leaves_the_start_to_the_others(grounds: Grounds) -> None:
    grounds.program("one")

    async def story(hosts: Hosts) -> None:
        first = asyncio.create_task(hosts.place("one", "s", 20))
        second = asyncio.create_task(hosts.place("one", "s", 20))
        await until(lambda: hosts.states())
        first.cancel()
        await pid_of(await second)
        assert hosts.states()[0].restarts == 0

    grounds.run(story)


def test_a_program_that_is_missing_is_told_by_its_name(grounds: Grounds) -> None:
    for name, command in [("a", "no-such-program"), ("b", "./main.sh"), ("c", "./plain.sh")]:
        (grounds.folder / name).mkdir()
        (grounds.folder / name / "function.toml").write_text(f"command = '{command}'")
    (grounds.folder / "c/plain.sh").write_text("#!/bin/sh\n")

    async def story(hosts: Hosts) -> None:
        cannot = "cannot be reached: its process cannot be started: "
        for name, reason in [
            ("a", "the program 'no-such-program' is not installed, or not in PATH"),
            ("b", "there is no program ./main.sh"),
            ("c", "./plain.sh is not executable"),
        ]:
            with pytest.raises(CallFailed) as failed:
                await hosts.place(name, "s", 20)
            assert str(failed.value).startswith(f"Function '{name}' {cannot}{reason}; it is started again in ")

    grounds.run(story)


def test_a_crash_is_followed_by_a_new_start(grounds: Grounds, caplog: pytest.LogCaptureFixture) -> None:
    grounds.program("one")

    async def story(hosts: Hosts) -> None:
        first = await pid_of(await hosts.place("one", "s", 20))
        os.kill(first, signal.SIGKILL)
        await until(lambda: hosts.states()[0].state != "ready")
        second = await pid_of(await hosts.place("one", "s", 20))  # waits, since it comes soon
        assert second != first
        assert hosts.states()[0].restarts == 1
        os.kill(second, signal.SIGKILL)
        await until(lambda: hosts.states()[0].restarts == 2 and hosts.states()[0].state == "ready")  # without a call, too

    grounds.run(story)
    assert "its process was killed by SIGKILL; it is started again in 0.2 s" in caplog.text


def test_a_crash_loop_is_slowed_down_and_calls_are_told_when(grounds: Grounds, caplog: pytest.LogCaptureFixture) -> None:
    grounds.program("bad", "import sys\nprint('reading the settings')\nsys.exit('no settings')\n")
    grounds.program("good")

    async def story(hosts: Hosts) -> None:
        with pytest.raises(CallFailed) as failed:
            await hosts.place("bad", "s", 20)
        assert str(failed.value) == (
            "Function 'bad' cannot be reached: its process ended with exit code 1 before it was ready (no settings); "
            "it is started again in 0 s"
        )
        await pid_of(await hosts.place("good", "s", 20))  # nothing else is disturbed
        await until(lambda: "it is started again in 0.8 s" in caplog.text)
        before = asyncio.get_running_loop().time()
        with pytest.raises(CallFailed, match=r"it is started again in 1 s"):
            await hosts.place("bad", "s", 20)  # the pause is longer than its patience
        assert asyncio.get_running_loop().time() - before < 0.2
        await until(lambda: hosts.states()[0].restarts >= 4)

    grounds.run(story)
    pauses = [text.rsplit(" ", 2)[1] for text in caplog.messages if "'bad'" in text and "started again" in text]
    assert pauses[:4] == ["0.2", "0.4", "0.8", "0.8"]


def test_the_pause_is_short_again_after_a_steady_time(grounds: Grounds, caplog: pytest.LogCaptureFixture) -> None:
    grounds.program("one")

    async def story(hosts: Hosts) -> None:
        for _ in range(3):
            os.kill(await pid_of(await hosts.place("one", "s", 20)), signal.SIGKILL)
            await until(lambda: hosts.states()[0].state != "ready")

    grounds.run(story, pace=replace(QUICK, steady_after=0.0))
    assert caplog.text.count("it is started again in 0.2 s") == 3


def test_a_port_that_turned_out_taken_is_exchanged_for_another(grounds: Grounds) -> None:
    """And no call goes to the stranger, who accepts connections before the function's process has ended."""
    grounds.program("one", "import threading\nthreading.Event().wait(0.3)\n" + SERVER)

    async def story(hosts: Hosts) -> None:
        url = await hosts.place("one", "s", 20)
        assert url.endswith(str(good[0]))
        await pid_of(url)
        assert met == []

    met: list[bytes] = []
    good: list[int] = []

    async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.read(100)
        if data:
            met.append(data)
        writer.close()
        await writer.wait_closed()

    async def told() -> None:
        server = await asyncio.start_server(stranger, "127.0.0.1", 0)
        taken = server.sockets[0].getsockname()[1]
        ports = iter([taken, taken])

        def port() -> int:
            chosen = next(ports, None) or free_port()
            good[:] = [chosen]
            return chosen

        hosts = grounds.hosts(free_port=port)
        try:
            await story(hosts)
        finally:
            await hosts.stop()
            server.close()
            await server.wait_closed()

    asyncio.run(told())


def test_a_failing_health_path_has_the_process_started_anew(grounds: Grounds, caplog: pytest.LogCaptureFixture) -> None:
    text = SERVER.replace("self.send_response(200)", "self.send_response(503 if os.path.exists('../../notes') else 200)")
    grounds.program("one", text, 'health = "/health"')

    async def story(hosts: Hosts) -> None:
        first = await pid_of(await hosts.place("one", "s", 20))
        grounds.notes.touch()
        await until(lambda: not alive(first))
        grounds.notes.unlink()
        second = await pid_of(await hosts.place("one", "s", 20))
        assert second != first

    grounds.run(story)
    assert "it failed 3 checks in a row, the last one because /health answered 503; it is started again" in caplog.text


def test_a_process_is_ready_when_its_health_path_says_so(grounds: Grounds) -> None:
    text = SERVER.replace("self.send_response(200)", "self.send_response(200 if os.path.exists('../../notes') else 503)")
    grounds.program("one", text, 'health = "/health"')

    async def story(hosts: Hosts) -> None:
        with pytest.raises(CallFailed, match=r"not ready in the [01]\.\d s that"):
            await hosts.place("one", "s", 1)
        grounds.notes.touch()
        await pid_of(await hosts.place("one", "s", 20))
        assert hosts.states()[0].restarts == 0

    grounds.run(story)


def test_a_process_that_listens_no_more_is_started_anew(grounds: Grounds) -> None:
    text = SERVER.replace(
        "def answer(self):",
        "def answer(self):\n        if self.path == '/deaf': self.server.socket.close(); threading.Event().wait(600)",
    )
    grounds.program("one", text)

    async def story(hosts: Hosts) -> None:
        url = await hosts.place("one", "s", 20)
        first = await pid_of(url)
        deaf = asyncio.create_task(request(url, path="/deaf"))
        await until(lambda: not alive(first))
        await asyncio.gather(deaf, return_exceptions=True)
        assert await pid_of(await hosts.place("one", "s", 20)) != first

    grounds.run(story)


def test_a_process_that_is_busy_is_left_alone(grounds: Grounds) -> None:
    """Its queue of connections is full, as it is with ten jobs for a server that does one at a time."""
    text = SERVER.replace("def answer(self):", "def answer(self):\n        if self.path == '/busy': open('../../go').read()")
    grounds.program(
        "busy",
        text.replace("class Handler", "http.server.HTTPServer.request_queue_size = 1\nclass Handler"),
    )
    os.mkfifo(grounds.folder.parent / "go")

    async def story(hosts: Hosts) -> None:
        url = await hosts.place("busy", "s", 20)
        first = hosts.states()[0].pid
        calls = [asyncio.create_task(request(url, path="/busy"))]
        calls += [asyncio.create_task(request(url)) for _ in range(6)]
        done, _ = await asyncio.wait(calls, timeout=2)  # ten checks
        assert not done
        with (grounds.folder.parent / "go").open("w"):
            pass
        answers = await asyncio.gather(*calls)
        assert {json.loads(body)["pid"] for _, body in answers} == {first}

    grounds.run(story)


def test_a_change_is_taken_up_at_the_next_call(grounds: Grounds) -> None:
    path = grounds.program("one")

    async def story(hosts: Hosts) -> None:
        first = await pid_of(await hosts.place("one", "s", 20))
        await noticed(hosts, "one", lambda: path.write_text(SERVER.replace("200", "202")))
        urls = await asyncio.gather(*(hosts.place("one", "s", 20) for _ in range(10)))
        assert len(set(urls)) == 1
        assert (await request(urls[0]))[0] == 202
        await until(lambda: not alive(first))
        (path.parent / "function.toml").write_text("command = 1")
        with pytest.raises(CallFailed, match="command must be text"):
            await hosts.place("one", "s", 20)
        await until(lambda: hosts.states() == [])

    grounds.run(story)


def test_the_files_that_say_most_are_looked_at_with_every_call(grounds: Grounds) -> None:
    grounds.python("one", "async def handle(request): return 'old'")

    async def story(hosts: Hosts) -> None:
        await hosts.start()
        for word in ("old", "new", "old"):
            grounds.python("one", f"async def handle(request): return '{word}'")
            assert await request(await hosts.place("one", "s", 20)) == (200, word.encode())
        (grounds.folder / "one/main.py").unlink()
        with pytest.raises(CallFailed, match="Function 'one' not found"):
            await hosts.place("one", "s", 20)

    grounds.run(story, pace=replace(QUICK, look_every=3600.0))


def test_another_secret_reaches_the_process(grounds: Grounds) -> None:
    grounds.program("one", SERVER.replace("os.getpid()", "os.environ['TREADLE_FUNCTION_SECRET']"))

    async def story(hosts: Hosts) -> None:
        for secret in ("first", "second"):
            url = await hosts.place("one", secret, 20)
            assert json.loads((await request(url))[1])["pid"] == secret

    grounds.run(story)


def test_a_repaired_function_is_tried_at_once(grounds: Grounds) -> None:
    path = grounds.program("one", "1 / 0")

    async def story(hosts: Hosts) -> None:
        with pytest.raises(CallFailed, match="ZeroDivisionError"):
            await hosts.place("one", "s", 20)
        await until(lambda: hosts.states()[0].restarts >= 3)
        await noticed(hosts, "one", lambda: path.write_text(SERVER))
        await pid_of(await hosts.place("one", "s", 20))
        assert hosts.states()[0].restarts == 0

    grounds.run(story)


def test_calls_under_way_outlive_a_change(grounds: Grounds) -> None:
    grounds.python(
        "one",
        """
        import asyncio
        async def handle(request):
            await asyncio.to_thread(open, "../../go")
            return "old"
        """,
    )
    os.mkfifo(grounds.folder.parent / "go")

    async def story(hosts: Hosts) -> None:
        call = asyncio.create_task(request(await hosts.place("one", "s", 20)))
        old = hosts.states()[0].pid
        assert old is not None
        await until(lambda: psutil.Process(old).num_threads() > 1)
        grounds.python("one", "async def handle(request): return 'new'")
        assert await request(await hosts.place("one", "s", 20)) == (200, b"new")
        assert [state.state for state in hosts.states()].count("stopping") == 1
        with (grounds.folder.parent / "go").open("w"):
            pass
        assert await call == (200, b"old")
        await until(lambda: not alive(old))

    grounds.run(story)


def test_a_folder_that_goes_takes_its_process_along(grounds: Grounds) -> None:
    path = grounds.program("one")

    async def story(hosts: Hosts) -> None:
        await hosts.start()
        first = await pid_of(await hosts.place("one", "s", 20))
        path.parent.rename(grounds.folder.parent / "elsewhere")
        await until(lambda: not alive(first))
        assert hosts.names() == []
        with pytest.raises(CallFailed, match="Function 'one' not found"):
            await hosts.place("one", "s", 20)
        grounds.program("two")
        await until(lambda: hosts.names() == ["two"])

    grounds.run(story)


def test_what_starts_with_the_service_runs_without_a_call(grounds: Grounds) -> None:
    grounds.program("early", manifest='start = "service"')
    grounds.program("idle")
    asked: list[str] = []

    async def secret(name: str) -> str:
        asked.append(name)
        return "s"

    async def story(hosts: Hosts) -> None:
        await hosts.start()
        await until(lambda: hosts.states()[0].state == "ready")
        first = hosts.states()[0].pid
        assert await pid_of(await hosts.place("early", "s", 20)) == first
        assert [state.name for state in hosts.states()] == ["early"]
        grounds.program("later", manifest='start = "service"')
        await until(lambda: [state.name for state in hosts.states() if state.state == "ready"] == ["early", "later"])
        grounds.program("early", SERVER + "# changed", manifest='start = "service"')
        await until(lambda: hosts.states()[0].state == "ready" and hosts.states()[0].pid != first)
        assert asked == ["early", "later"]

    grounds.run(story, secret=secret)


def test_a_stop_ends_what_ignores_it(grounds: Grounds) -> None:
    grounds.program("deaf", DEAF)
    grounds.program("polite")

    async def story(hosts: Hosts) -> None:
        pids = [await pid_of(await hosts.place(name, "s", 20)) for name in ("deaf", "polite")]
        before = asyncio.get_running_loop().time()
        await hosts.stop()
        assert 0.5 <= asyncio.get_running_loop().time() - before < 3
        assert not any(psutil.pid_exists(pid) for pid in pids)  # reaped, too
        await hosts.stop()
        with pytest.raises(CallFailed, match="Function 'polite' cannot be reached: the service is stopping"):
            await hosts.place("polite", "s", 20)

    grounds.run(story, stop_within=0.5)


def test_a_stop_ends_children_and_what_was_replaced_or_is_being_started(grounds: Grounds) -> None:
    replaced = grounds.program("replaced", DEAF)
    grounds.program("family", FAMILY)
    grounds.program("starting", WAITING)

    async def story(hosts: Hosts) -> None:
        for name in ("replaced", "family"):
            await hosts.place(name, "s", 20)
        await noticed(hosts, "replaced", lambda: replaced.write_text(SERVER))
        await hosts.place("replaced", "s", 20)
        starting = asyncio.create_task(hosts.place("starting", "s", 20))
        await until(lambda: len(grounds.processes()) == 5)
        await hosts.stop()
        with pytest.raises(CallFailed, match="the service is stopping"):
            await starting
        assert grounds.processes() == []
        assert hosts.states() == []

    grounds.run(story, stop_within=0.3)


def test_a_crash_ends_the_children_that_it_leaves(grounds: Grounds) -> None:
    grounds.program("family", FAMILY)

    async def story(hosts: Hosts) -> None:
        first = await pid_of(await hosts.place("family", "s", 20))
        [child] = psutil.Process(first).children()
        os.kill(first, signal.SIGKILL)
        await until(lambda: not alive(child.pid))

    grounds.run(story)


def test_stop_is_safe_before_start_and_start_after_stop(grounds: Grounds) -> None:
    grounds.program("one")

    async def told() -> None:
        hosts = grounds.hosts()
        await hosts.stop()
        await hosts.start()
        await hosts.start()
        await pid_of(await hosts.place("one", "s", 20))
        await hosts.stop()
        await hosts.stop()

    asyncio.run(told())


def test_two_services_run_processes_of_their_own(grounds: Grounds) -> None:
    grounds.program("one")

    async def told() -> None:
        both = [grounds.hosts(), grounds.hosts()]
        try:
            urls = [await hosts.place("one", "s", 20) for hosts in both]
            first, second = [await pid_of(url) for url in urls]
            assert first != second
            await both[0].stop()
            assert not alive(first)
            assert await pid_of(urls[1]) == second
        finally:
            await asyncio.gather(*(hosts.stop() for hosts in both))

    asyncio.run(told())


def test_what_it_writes_is_in_the_log(grounds: Grounds, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    text = "import os\nprint('out')\nos.write(2, b'err \\xff \\x1b[2J\\r\\n' + b'x' * 9000 + b'\\nno end')\n" + SERVER
    grounds.program("one", text)

    async def story(hosts: Hosts) -> None:
        await hosts.place("one", "s", 20)

    grounds.run(story)
    told = [record.getMessage() for record in caplog.records if record.name == "treadle.functions.one"]
    assert told == ["out", "err � \\x1b[2J", "x" * 2000 + "...", "no end"]


def test_a_flood_of_output_blocks_neither_the_function_nor_the_service(
    grounds: Grounds, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    flood = "def flood():\n    while True: os.write(1, b'spam and eggs\\n' * 4000)\n"
    grounds.program(
        "loud",
        SERVER.replace(
            "if __name__", f"import threading\n{flood}threading.Thread(target=flood, daemon=True).start()\nif __name__"
        ),
    )

    async def story(hosts: Hosts) -> None:
        url = await hosts.place("loud", "s", 30)
        for _ in range(10):
            assert (await request(url))[0] == 200
        await until(lambda: "lines of its output were left out" in caplog.text)

    grounds.run(story)
    assert len([record for record in caplog.records if record.name == "treadle.functions.loud"]) < 5000
