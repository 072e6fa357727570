"""Tying a `Tasks` to the life of a Starlette, FastAPI or Litestar application (E25)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from treadle.core.errors import InvalidArgument


def install(app: Any, start: Callable[[], Awaitable[None]], stop: Callable[[], Awaitable[None]]) -> None:
    """Have `start` awaited after the application's own start-up, and `stop` before its own shutdown.

    Signals stay the server's business: it ends the application's life, and that ends the worker's.
    """
    router = getattr(app, "router", None)
    if hasattr(router, "lifespan_context"):  # Starlette, FastAPI
        _wrap_lifespan(router, start, stop)
    elif isinstance(getattr(app, "on_startup", None), list) and isinstance(getattr(app, "on_shutdown", None), list):
        app.on_startup.append(start)  # Litestar
        app.on_shutdown.insert(0, stop)
    else:
        raise InvalidArgument(
            f"install takes a Starlette, FastAPI or Litestar application, not {type(app).__name__}; "
            "elsewhere call `await tasks.start()` and `await tasks.stop()` yourself"
        )


def _wrap_lifespan(router: Any, start: Callable[[], Awaitable[None]], stop: Callable[[], Awaitable[None]]) -> None:
    inner = router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[Any]:
        async with inner(app) as state:
            await start()
            try:
                yield state
            finally:
                await stop()

    router.lifespan_context = lifespan
