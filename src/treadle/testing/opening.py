"""What a contract's factory may be: a callable, an async callable, or one that gives an async context manager (S2)."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from treadle.core.errors import InvalidArgument
from treadle.core.store import Store

StoreFactory = Callable[[], object]
"""Gives an independent store at each call: a `Store`, an awaitable of one, or an async context manager around one.

An async generator function that yields one store is taken too.
"""


@asynccontextmanager
async def opened(factory: StoreFactory) -> AsyncIterator[Store]:
    """The factory's store, closed afterwards. Raises `InvalidArgument` where the factory gives anything else."""
    made = factory()
    if isinstance(made, AsyncGenerator):
        made = asynccontextmanager(partial(_the, made))()
    if inspect.isawaitable(made):
        made = await made
    if isinstance(made, AbstractAsyncContextManager) and not isinstance(made, Store):
        async with made as inner, _closed(inner) as store:
            yield store
    else:
        async with _closed(made) as store:
            yield store


def _the(generator: AsyncGenerator[object, None]) -> AsyncGenerator[object, None]:
    return generator


@asynccontextmanager
async def _closed(made: object) -> AsyncIterator[Store]:
    if not isinstance(made, Store):
        missing = [name for name in dir(Store) if not name.startswith("_") and not hasattr(made, name)]
        raise InvalidArgument(
            f"the factory must give a treadle Store, and gave {type(made).__name__}, which has no {', '.join(missing)}"
        )
    try:
        yield made
    finally:
        await made.close()
