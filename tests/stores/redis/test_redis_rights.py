"""Users of access control lists: the documented rights are enough, and without the channel all but wake-ups works (S7)."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import valkey

from treadle.core.job import NewJob
from treadle.core.outcome import RetryAfter
from treadle.core.store import Claim, Demand, Ending
from treadle.core.transfer import Mark, Side, Stage
from treadle.stores.redis import RedisStore

REFERENCE = Path(__file__).parents[3] / "docs/reference/stores.md"


def documented(prefix: str) -> list[str]:
    """The rights that the reference gives."""
    [line] = re.findall(r"^ACL SETUSER shop on >password (.*)$", REFERENCE.read_text(), re.MULTILINE)
    return line.replace("{treadle}", f"{{{prefix}}}").split()


@contextmanager
def user(server: valkey.ValkeyServer, name: str, rights: list[str]) -> Iterator[str]:
    """The URL of a user with these rights."""
    server.command("ACL", "SETUSER", name, "reset", "on", ">pw", *rights)
    try:
        yield f"redis://{name}:pw@127.0.0.1:{server.port}/0"
    finally:
        server.command("ACL", "DELUSER", name)


async def turn(store: RedisStore) -> None:
    """A job through all that rings, and a move's mark."""
    await store.enqueue([NewJob("1", "a")])
    claimed = await store.claim("t", [Demand(5)], worker="w", lease=60.0)
    assert [job.id for job in claimed.jobs] == ["1"]
    claim = Claim("1", "t")
    assert await store.finish([Ending(claim, RetryAfter(0.0, "E"))]) == {claim}
    mark = Mark("m", Side.SOURCE, Stage.DRAINING, "elsewhere")
    assert await store.put_mark(mark, expect=None)
    assert await store.put_mark(None, expect=mark)
    assert (await store.stats()).pending == 1


def used(url: str, prefix: str) -> None:
    async def main() -> None:
        store = RedisStore(url, prefix=prefix)
        await turn(store)
        await store.close()
        await store.stats()  # opens anew, and says nothing more
        await store.close()

    asyncio.run(main())


def test_the_documented_rights_are_enough(server: valkey.ValkeyServer, prefix: str, caplog) -> None:
    caplog.set_level(logging.WARNING)
    with user(server, prefix, documented(prefix)) as url:
        used(url, prefix)
    assert caplog.messages == []


def test_without_the_channel_jobs_are_stored_and_it_is_said_once(server: valkey.ValkeyServer, prefix: str, caplog) -> None:
    caplog.set_level(logging.WARNING)
    rights = [right for right in documented(prefix) if not right.startswith("&")]
    assert len(rights) == len(documented(prefix)) - 1
    with user(server, prefix, ["resetchannels", *rights]) as url:
        used(url, prefix)
    [said] = caplog.messages
    assert said == (
        f"Redis at 127.0.0.1:{server.port} lets this client publish no wake-ups, so that workers find its jobs by "
        f"polling alone; grant its user the channel &{{{prefix}}}:wake"
    )
