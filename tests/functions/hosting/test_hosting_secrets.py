"""The secret of a function's process: it follows a rotation, with one new start, and never an older one (F2, F4)."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.functions.function_stores import Place, run as on_store
from tests.functions.hosting.grounds import LOGGER, SERVER, Grounds, request, until
from tests.functions.live import live

from treadle.core.errors import NotFound
from treadle.core.signals import CallFailed
from treadle.functions.catalogue import Catalogue
from treadle.functions.directory import Directory
from treadle.functions.hosting import Hosts, Retired
from treadle.functions.hosting.keeper import Keeper

# Says that it was started, and goes on when somebody opens ../../go for writing.
SLOW = "import os\nopen('../../notes', 'a').write('started\\n')\nopen('../../go').read()\n"
TELLING = SERVER.replace('"pid": os.getpid()', '"secret": os.environ["TREADLE_FUNCTION_SECRET"]')
CHECKING = """
import hashlib, hmac, os
{slow}
async def handle(request):
    from starlette.responses import Response
    job = request.url.path.removeprefix("/jobs/")
    signed = f"{{job}}.".encode() + await request.body()
    right = "sha256=" + hmac.new(os.environ["TREADLE_FUNCTION_SECRET"].encode(), signed, hashlib.sha256).hexdigest()
    return Response(status_code=200 if request.headers["x-treadle-signature"] == right else 401)
"""


async def secret_at(url: str) -> str:
    status, body = await request(url)
    assert status == 200
    return str(json.loads(body)["secret"])


def starts(grounds: Grounds) -> int:
    return grounds.notes.read_text().count("started") if grounds.notes.exists() else 0


def let_go(grounds: Grounds) -> None:
    """Let every process go on that waits, and every later one."""
    fifo, here = grounds.folder.parent / "go", grounds.folder.parent / "open"
    here.touch()
    with fifo.open("w"):
        here.rename(fifo)  # a plain file from now on, whose end is there at once


def in_memory(test: Callable[[Place], Awaitable[None]]) -> None:
    on_store("memory", test)


def test_two_secrets_at_once_lead_to_one_replacement(grounds: Grounds) -> None:
    grounds.program("slow", SLOW + TELLING)
    os.mkfifo(grounds.folder.parent / "go")

    async def story(hosts: Hosts) -> None:
        old = asyncio.create_task(hosts.place("slow", "old", 30))
        await until(lambda: starts(grounds) == 1)
        new = asyncio.create_task(hosts.place("slow", "new", 30))
        with pytest.raises(Retired):
            await old
        await until(lambda: starts(grounds) == 2)
        let_go(grounds)
        assert await secret_at(await new) == "new"
        assert starts(grounds) == 2

    grounds.run(story)


def test_calls_made_around_a_rotation_all_reach_the_process_with_the_new_secret(grounds: Grounds) -> None:
    grounds.program("slow", SLOW + TELLING)
    os.mkfifo(grounds.folder.parent / "go")

    async def test(place: Place) -> None:
        async def story(hosts: Hosts) -> None:
            catalogue = Catalogue(Directory(place.store(), place.clock), hosts, place.clock)
            before = [asyncio.create_task(catalogue.reach("slow", 30)) for _ in range(3)]
            await until(lambda: starts(grounds) == 1)
            rotated = await Directory(place.store(), place.clock).rotate_secret("slow")
            place.time.advance(1.1)
            after = [asyncio.create_task(catalogue.reach("slow", 30)) for _ in range(3)]
            await until(lambda: starts(grounds) == 2)
            let_go(grounds)
            reached = await asyncio.gather(*before, *after)
            assert {one.function.secret for one in reached} == {rotated.secret}
            [url] = {one.url for one in reached}
            assert await secret_at(url) == rotated.secret
            assert starts(grounds) == 2

        hosts = grounds.hosts()
        try:
            async with asyncio.timeout(60):
                await story(hosts)
        finally:
            await hosts.stop()

    in_memory(test)


def test_jobs_around_a_rotation_are_signed_as_their_process_expects(grounds: Grounds) -> None:
    """A wrong signature is an answer, and so would complete the job."""
    grounds.python("slow", CHECKING.format(slow=SLOW))
    os.mkfifo(grounds.folder.parent / "go")

    async def test(place: Place) -> None:
        async with live(place, folder=grounds.folder) as service:
            first = await service.enqueue("slow", max_attempts=1)
            await until(lambda: starts(grounds) == 1)
            await service.directory.rotate_secret("slow")
            await service.pass_time(1.1)
            second = await service.enqueue("slow", max_attempts=1)
            await until(lambda: starts(grounds) == 2)
            let_go(grounds)
            for job in (first, second):
                ended = await service.until(job["id"], "completed", "dead")
                assert (ended["status"], ended["response_status"], ended["attempts"]) == ("completed", 200, 1), ended
            assert starts(grounds) == 2

    in_memory(test)


def test_a_call_whose_process_was_replaced_goes_by_what_the_function_is_by_then(grounds: Grounds) -> None:
    grounds.program("slow", SLOW + TELLING)
    os.mkfifo(grounds.folder.parent / "go")

    async def test(place: Place) -> None:
        hosts = grounds.hosts()
        catalogue = Catalogue(Directory(place.store(), place.clock), hosts, place.clock)
        try:
            call = asyncio.create_task(catalogue.reach("slow", 30))
            await until(lambda: starts(grounds) == 1)
            await Directory(place.store(), place.clock).deactivate("slow")
            place.time.advance(1.1)
            replacing = asyncio.create_task(hosts.place("slow", "another", 30))
            with pytest.raises(CallFailed, match=r"^Function 'slow' is inactive$"):
                await call
            replacing.cancel()
        finally:
            await hosts.stop()

    in_memory(test)


# -- nobody acts on what is older than what others have seen


class Late:
    """Has the next `get_document` of a store answer when it is told to, with what it read before."""

    def __init__(self, store: Any) -> None:
        self.read, self.go_on = asyncio.Event(), asyncio.Event()
        self._real = store.get_document
        self._store = store
        store.get_document = self._late

    async def _late(self, *values: Any, **options: Any) -> Any:
        self._store.get_document = self._real
        found = await self._real(*values, **options)
        self.read.set()
        await self.go_on.wait()
        return found


def test_a_late_answer_with_an_older_secret_is_not_used() -> None:
    async def test(place: Place) -> None:
        store = place.store()
        directory = Directory(store, place.clock)
        await directory.add("x", "http://127.0.0.1:9")
        late = Late(store)
        slow = asyncio.create_task(directory.get("x"))
        await late.read.wait()
        rotated = await directory.rotate_secret("x")
        assert (await directory.get("x")).secret == rotated.secret
        late.go_on.set()
        assert (await slow).secret == rotated.secret

    in_memory(test)


def test_a_late_answer_to_the_first_call_of_all_replaces_no_newer_process() -> None:
    async def test(place: Place) -> None:
        store = place.store()
        directory, other = Directory(store, place.clock), Directory(place.store(), place.clock)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "own").mkdir()
            (Path(folder) / "own/function.toml").write_text("command = 'true'")
            catalogue = Catalogue(directory, Hosts(Path(folder), dict, LOGGER), place.clock)
            with pytest.raises(NotFound):
                await directory.get("own")  # is known not to be there, for a second
            await other.ensure("own")
            late = Late(store)
            slow = asyncio.create_task(catalogue.find("own"))
            await late.read.wait()
            rotated = await other.rotate_secret("own")
            late.go_on.set()
            found = await slow
            assert found is not None and found.secret == rotated.secret

    in_memory(test)


def test_what_starts_with_the_service_takes_the_place_of_no_call(grounds: Grounds) -> None:
    """Its secret may have been looked up before a rotation of which the call knows."""
    grounds.program("early", TELLING, manifest='start = "service"')
    asked, answer = asyncio.Event(), asyncio.Event()

    async def secret(name: str) -> str:
        asked.set()
        await answer.wait()
        return "old"

    async def story(hosts: Hosts) -> None:
        starting = asyncio.create_task(hosts.start())
        await asked.wait()
        url = await hosts.place("early", "new", 20)
        answer.set()
        await starting
        assert await hosts.place("early", "new", 20) == url
        assert await secret_at(url) == "new"
        assert [(state.state, state.restarts) for state in hosts.states()] == [("ready", 0)]

    grounds.run(story, secret=secret)


def test_a_process_that_is_replaced_in_the_moment_in_which_it_became_ready_is_not_answered(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    grounds.program("one", TELLING)
    real = Keeper.place

    async def story(hosts: Hosts) -> None:
        async def place(self: Keeper, seconds: float) -> str:
            url = await real(self, seconds)
            monkeypatch.setattr(Keeper, "place", real)
            replacing.append(asyncio.create_task(hosts.place("one", "new", 20)))
            await until(lambda: hosts._keepers["one"].secret == "new")
            return url

        replacing: list[asyncio.Task[str]] = []
        monkeypatch.setattr(Keeper, "place", place)
        with pytest.raises(Retired):
            await hosts.place("one", "old", 20)
        assert await secret_at(await replacing[0]) == "new"

    grounds.run(story)


def test_a_keeper_whose_task_has_ended_is_replaced(grounds: Grounds) -> None:
    """Which nothing does; but every call would ask it, for ever and without a pause."""
    grounds.program("one", TELLING)

    async def story(hosts: Hosts) -> None:
        first = await hosts.place("one", "s", 20)
        keeper = hosts._keepers["one"]
        keeper._task.cancel()
        await until(lambda: keeper.ended)
        assert await hosts.place("one", "s", 20) != first
        await until(lambda: len(grounds.processes()) == 1)

    grounds.run(story)
