"""The catalogue: functions by URL and of a folder in one, and what the worker reads of it (F1)."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

from tests.functions.function_stores import Place, in_memory
from tests.functions.live import live

from treadle.functions.catalogue import Catalogue
from treadle.functions.directory import NAMESPACE, Directory
from treadle.functions.hosting import Hosts
from treadle.testing import FaultyStore

URL = "http://127.0.0.1:9"


def in_folder(folder: str, *names: str, concurrency: int) -> None:
    for name in names:
        (Path(folder) / name).mkdir()
        (Path(folder) / name / "function.toml").write_text(f'command = "true"\nconcurrency = {concurrency}')


@in_memory
async def test_the_limits_of_all_functions_are_one_read(place: Place) -> None:
    store = FaultyStore(place.store())
    directory = Directory(store, place.clock)
    await directory.add("wide", URL)
    await directory.add("narrow", URL, concurrency=2)
    await directory.add("both", URL, concurrency=4)
    names = [f"own-{number}" for number in range(9)]
    with tempfile.TemporaryDirectory() as folder:
        in_folder(folder, *names, "both", concurrency=3)
        hosts = Hosts(Path(folder), dict, logging.getLogger("treadle"))
        catalogue = Catalogue(directory, hosts, place.clock)
        limits = {"function:narrow": 2, "function:both": 4, **{f"function:{name}": 3 for name in names}}
        assert await catalogue.limits() == limits
        place.time.advance(1.1)
        before = store.calls["get_document"], store.calls["list_documents"], store.calls["put_document"]
        for _ in range(3):
            assert await catalogue.limits() == limits
        after = store.calls["get_document"], store.calls["list_documents"], store.calls["put_document"]
        assert (after[0] - before[0], after[1] - before[1], after[2] - before[2]) == (0, 1, 0)


@in_memory
async def test_one_bad_document_holds_up_no_other_function(place: Place) -> None:
    with tempfile.TemporaryDirectory() as folder:
        in_folder(folder, "worse", concurrency=1)
        async with live(place, folder=Path(folder)) as service:
            function = await service.function("good")
            for name in ("bad", "worse"):
                value = {"secret": "s", "active": True, "url": URL, "method": "PUT"}
                await place.store().put_document(NAMESPACE, name, value, now=place.time.now())
            await service.pass_time(1.1)
            await service.until((await service.enqueue("good"))["id"], "completed")
            assert len(function.calls) == 1
            failed = await service.enqueue("bad", max_attempts=1)
            assert "what the store has as function 'bad' is bad" in (await service.until(failed["id"], "dead"))["error"]


@in_memory
async def test_looking_at_the_functions_of_a_folder_stores_nothing(place: Place) -> None:
    store = FaultyStore(place.store())
    with tempfile.TemporaryDirectory() as folder:
        in_folder(folder, "own", concurrency=3)
        hosts = Hosts(Path(folder), dict, logging.getLogger("treadle"))
        catalogue = Catalogue(Directory(store, place.clock), hosts, place.clock)
        assert [(one.name, one.active, one.concurrency) for one in await catalogue.list()] == [("own", True, 3)]
        assert store.calls["put_document"] == 0
        found = await catalogue.find("own")
        assert found is not None and found.secret and store.calls["put_document"] == 1
