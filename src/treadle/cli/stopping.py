"""Stopping when asked to: within the grace, or at once at a second signal (E24, L7)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def unless(stop: asyncio.Event, start: Callable[[], Awaitable[T]]) -> T | None:
    """Start, or give it up when a stop is asked for meanwhile: a store that does not answer must not hold that up."""
    starting, asked = asyncio.ensure_future(start()), asyncio.create_task(stop.wait())
    await asyncio.wait({starting, asked}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if not starting.done():
        starting.cancel()
    await asyncio.wait({starting, asked})
    return None if starting.cancelled() else starting.result()


async def stopped(stop: Callable[[float], Awaitable[None]], grace: float, at_once: asyncio.Event) -> bool:
    """Stop within the grace, or without any once `at_once` is set; answers whether it was."""
    graceful = asyncio.ensure_future(stop(grace))
    asked = asyncio.create_task(at_once.wait())
    await asyncio.wait({graceful, asked}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if graceful.done():
        await graceful
        return False
    await stop(0)
    graceful.cancel()
    await asyncio.wait({graceful, asked})
    return True
