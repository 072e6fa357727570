"""The link to the server: a client for each event loop, and scripts called through it, never twice for one call (S7)."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable
from typing import Any

from treadle.core.errors import SchemaTooNew
from treadle.stores import forks
from treadle.stores.redis.abandoning import abandon
from treadle.stores.redis.address import Address, descriptors
from treadle.stores.redis.home import Home
from treadle.stores.redis.precautions import Precautions
from treadle.stores.redis.script import script
from treadle.stores.redis.trouble import translated
from treadle.stores.redis.wire import Argument

LAYOUT = 1
Loop = asyncio.AbstractEventLoop


class Link:
    """Calls scripts from any event loop; connects at the first call on each, and again after `close`.

    `patience` is for how many seconds a call tries to connect before it raises `StoreUnavailable`. Connecting is all that
    is ever repeated: a command whose answer did not come may have been carried out.
    """

    def __init__(self, address: Address, tag: str, patience: float) -> None:
        self.address = address
        self.tag = tag
        self._patience = patience
        self._homes: weakref.WeakKeyDictionary[Loop, Home] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()
        self._precautions = Precautions(address.shown)
        forks.watch(self)

    async def call(self, name: str, *arguments: Argument, sent: Callable[[], None] = lambda: None) -> Any:
        """The result of the script; `sent` is called when the server has got it.

        Raises `StoreUnavailable`, `StoreFull`, `StoreError`, `SchemaTooNew`.
        """
        home = self._home()
        if not home.opened:
            await self._open(home)
        with translated(self.address.shown):
            async with home.slots:
                return await home.run(script(name), self.tag, arguments, sent)

    async def look(self, name: str) -> Any:
        """The result of a script that takes no argument and writes nothing, without marking the store as opening does."""
        home = self._home()
        async with home.opening:
            await home.begin()
        with translated(self.address.shown):
            return await home.run(script(name), self.tag, (), lambda: None)

    async def close(self) -> None:
        """Give up the clients of all loops."""
        with self._lock:
            homes = dict(self._homes)
            self._homes.clear()
        running = asyncio.get_running_loop()
        for loop, home in homes.items():
            if loop is running:
                await home.close()
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(home.close(), loop)
                with contextlib.suppress(Exception):
                    await asyncio.wrap_future(closing)

    def leave(self) -> None:
        """In the child of a fork: leave the clients to the parent (see stores/forks.py)."""
        forks.detach(number for home in self._homes.values() for number in descriptors(home.client))
        abandon(dict(self._homes))
        self._homes = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def _home(self) -> Home:
        loop = asyncio.get_running_loop()
        home = self._homes.get(loop)
        if home is None:
            with self._lock:
                for old in [old for old in self._homes if old.is_closed()]:
                    del self._homes[old]  # its client refers to the loop, so the weak key alone would keep it for ever
                home = self._homes[loop] = Home(self.address, self._patience)
        return home

    async def _open(self, home: Home) -> None:
        async with home.opening:
            if home.opened:
                return
            await home.begin()
            with translated(self.address.shown):
                layout, may_wake = await home.run(script("open"), self.tag, (LAYOUT,), lambda: None)
            if int(layout) > LAYOUT:
                raise SchemaTooNew(
                    f"the store {self.tag} at {self.address.shown} has layout {layout}; this treadle knows {LAYOUT}: upgrade it"
                )
            if not may_wake:
                self._precautions.wakeups_refused(f"{self.tag}:wake")
            home.opened = True
        if self._precautions.wanted:  # behind the lock: nobody else waits for it
            self._precautions.look_at(await home.about_the_server(self.tag))
