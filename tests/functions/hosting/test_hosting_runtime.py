"""The runtime of `main.py`: what it serves, and what it says where it cannot (F1)."""

import asyncio
import json
import logging
import os
import signal

import pytest
from tests.functions.hosting.grounds import Grounds, alive, noticed, request, until

from treadle.core.signals import CallFailed
from treadle.functions.hosting import Hosts


def test_a_coroutine_answers_with_whatever_fits(grounds: Grounds) -> None:
    grounds.python(
        "one",
        """
        from starlette.exceptions import HTTPException
        from starlette.responses import Response

        async def handle(request):
            match request.url.path:
                case "/text": return "ß"
                case "/bytes": return b"\\x00\\xff"
                case "/dict": return {"é": [1, None]}
                case "/list": return []
                case "/none": return None
                case "/response": return Response("made", 418)
                case "/refused": raise HTTPException(404, "no such thing")
                case "/broken": 1 / 0
                case "/wrong": return 7
                case _: return {"method": request.method, "path": request.url.path, "body": (await request.body()).decode()}
        """,
    )

    async def story(hosts: Hosts) -> None:
        url = await hosts.place("one", "s", 20)
        for path, expected in {
            "/text": (200, "ß".encode()),
            "/bytes": (200, b"\x00\xff"),
            "/dict": (200, '{"é":[1,null]}'.encode()),
            "/list": (200, b"[]"),
            "/none": (204, b""),
            "/response": (418, b"made"),
            "/refused": (404, b"no such thing"),
            "/broken": (500, b"Internal Server Error"),
            "/wrong": (500, b"Internal Server Error"),
        }.items():
            assert await request(url, path=path) == expected
        for method in ("JOB", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            status, body = await request(url, method, "/jobs/1%2F2", b'{"a":1}')
            assert status == 200
            assert json.loads(body) == {"method": method, "path": "/jobs/1/2", "body": '{"a":1}'}

    grounds.run(story)


def test_what_goes_wrong_in_it_is_in_the_log(grounds: Grounds, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    grounds.python(
        "one", "import logging\nasync def handle(request):\n    logging.getLogger('mine').info('dividing')\n    1 / 0\n"
    )

    async def story(hosts: Hosts) -> None:
        await request(await hosts.place("one", "s", 20))
        await until(lambda: "ZeroDivisionError" in caplog.text)

    grounds.run(story)
    assert "INFO mine: dividing" in caplog.text


def test_an_asgi_app_is_served_with_its_lifespan(grounds: Grounds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    grounds.python(
        "one",
        """
        from contextlib import asynccontextmanager
        from starlette.applications import Starlette
        from starlette.responses import PlainTextResponse
        from starlette.routing import Route
        import beside

        @asynccontextmanager
        async def life(app):
            yield
            open("../../notes", "w").close()

        async def job(request):
            return PlainTextResponse(beside.WORD + request.path_params["id"])

        app = Starlette(routes=[Route("/jobs/{id}", job, methods=["JOB"])], lifespan=life)
        """,
    )
    (grounds.folder / "one/beside.py").write_text("WORD = 'one '")
    # Names that Python itself uses hide nothing from the runtime.
    (grounds.folder / "one/logging.py").write_text("raise SystemExit('hidden')")

    async def story(hosts: Hosts) -> None:
        url = await hosts.place("one", "s", 20)
        assert await request(url, "JOB", "/jobs/7") == (200, b"one 7")
        assert (await request(url, "GET", "/jobs/7"))[0] == 405
        beside = grounds.folder / "one/beside.py"
        await noticed(hosts, "one", lambda: beside.write_text("WORD = 'two '"))  # the same size, within the same second
        assert await request(await hosts.place("one", "s", 20), "JOB", "/jobs/7") == (200, b"two 7")

    grounds.run(story)
    assert grounds.notes.exists()
    assert not (grounds.folder / "one/__pycache__").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "main.py has neither an ASGI app named app nor a coroutine handle(request)"),
        ("def handle(request): ...", "main.py: handle must be a coroutine: async def handle(request)"),
        ("app = 7", "main.py: app must be an ASGI app, not int"),
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("def f(:", "SyntaxError: invalid syntax"),
        ("raise SystemExit('not today')", "not today"),
    ],
)
def test_what_cannot_be_served_is_said_in_the_calls_error(grounds: Grounds, text: str, reason: str) -> None:
    grounds.python("one", text)

    async def story(hosts: Hosts) -> None:
        with pytest.raises(CallFailed) as failed:
            await hosts.place("one", "s", 20)
        assert str(failed.value).startswith(
            f"Function 'one' cannot be reached: its process ended with exit code 1 before it was ready ({reason}); "
        )

    grounds.run(story)


def test_a_lifespan_that_fails_is_said_in_the_calls_error(grounds: Grounds) -> None:
    grounds.python(
        "one",
        """
        from contextlib import asynccontextmanager
        from starlette.applications import Starlette

        @asynccontextmanager
        async def life(app):
            raise ValueError("no database")
            yield

        app = Starlette(lifespan=life)
        """,
    )

    async def story(hosts: Hosts) -> None:
        with pytest.raises(CallFailed, match=r"exit code 3 before it was ready \(ValueError: no database\)"):
            await hosts.place("one", "s", 20)

    grounds.run(story)


def test_requests_under_way_are_finished_at_sigterm(grounds: Grounds) -> None:
    text = "import asyncio\nasync def handle(request):\n    await asyncio.to_thread(open, '../../go')\n    return 'done'"
    grounds.python("one", text)
    os.mkfifo(grounds.folder.parent / "go")

    async def story(hosts: Hosts) -> None:
        call = asyncio.create_task(request(await hosts.place("one", "s", 20)))
        pid = hosts.states()[0].pid
        assert pid is not None
        # A writer can open a FIFO without waiting only where a reader has opened it: the request is under way.
        await until(lambda: _open_to_write(grounds) is not None)
        os.kill(pid, signal.SIGTERM)
        assert await call == (200, b"done")
        await until(lambda: not alive(pid))

    grounds.run(story)


def _open_to_write(grounds: Grounds) -> bool | None:
    try:
        os.close(os.open(grounds.folder.parent / "go", os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return None
    return True
