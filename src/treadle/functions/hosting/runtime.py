"""The runtime of `main.py`: serves its ASGI app, or its `handle(request)`, on a port of 127.0.0.1.

Run as `python -P -m treadle.functions.hosting.runtime DIR PORT`. It speaks HTTP by h11, since the faster parser refuses the
method JOB.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from traceback import print_exception
from types import ModuleType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

Handle = Callable[[Request], Awaitable[object]]


class Handler:
    """`handle` as an ASGI app, for every method and path."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        response = answer(await self._handle(Request(scope, receive, send)))
        await response(scope, receive, send)


def answer(value: object) -> Response:
    """What `handle` returned, as a response. Raises `TypeError`."""
    match value:
        case Response():
            return value
        case None:
            return Response(status_code=204)
        case str():
            return PlainTextResponse(value)
        case bytes():
            return Response(value, media_type="application/octet-stream")
        case dict() | list():
            return JSONResponse(value)
        case _:
            raise TypeError(f"handle returned {type(value).__name__}; it may return a Response, str, bytes, dict, list or None")


def app_of(main: ModuleType) -> ASGIApp:
    """The ASGI app of a `main.py`. Raises `SystemExit` with one line that says what is wrong."""
    app, handle = getattr(main, "app", None), getattr(main, "handle", None)
    if app is not None:
        if not callable(app):
            raise SystemExit(f"main.py: app must be an ASGI app, not {type(app).__name__}")
        return app  # type: ignore[no-any-return]  # whatever can be called may be one; uvicorn finds out
    if handle is None:
        raise SystemExit("main.py has neither an ASGI app named app nor a coroutine handle(request)")
    if not inspect.iscoroutinefunction(handle):
        raise SystemExit("main.py: handle must be a coroutine: async def handle(request)")
    endpoint: Any = Handler(handle)
    return Starlette(routes=[Route("/{path:path}", endpoint)])


def load(folder: Path) -> ModuleType:
    """Run `main.py`, which may import what stands beside it. Raises `SystemExit` once its error is told."""
    sys.dont_write_bytecode = True  # it would lie among the author's files, and be stale after two edits within a second
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("main", folder / "main.py")
    assert spec is not None
    assert spec.loader is not None
    main = sys.modules["main"] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(main)
    except Exception as error:
        traceback = error.__traceback__
        while traceback is not None and not traceback.tb_frame.f_code.co_filename.startswith(str(folder)):
            traceback = traceback.tb_next  # the author's part of it is enough
        print_exception(type(error), error, traceback)
        raise SystemExit(1) from None
    return main


def run(folder: Path, port: int) -> None:
    """Serve until SIGTERM; requests under way are finished first."""
    app = app_of(load(folder))
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")  # unless main.py has done so
    logging.getLogger("uvicorn.error").addFilter(lambda record: "startup failed" not in record.getMessage())
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=port,
        http="h11",
        loop="asyncio",
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )
    uvicorn.Server(config).run()


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
