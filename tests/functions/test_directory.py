"""The directory of functions, on every store: what is registered, what is kept, and how often it is read (F1)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from function_stores import Place, in_memory, on_every_store

from treadle.core.errors import InvalidArgument, NotFound, StoreUnavailable
from treadle.functions.directory import NAMESPACE, REMEMBERED, BadFunction, Directory
from treadle.functions.fail_on import FailOn
from treadle.functions.function import Function
from treadle.testing import FaultyStore

URL = "http://127.0.0.1:9000"


@on_every_store
async def test_a_function_that_is_added_is_found(here: Place) -> None:
    directory, other = Directory(here.store(), here.clock), Directory(here.store(), here.clock)
    added = await directory.add("send-report", f"{URL}/", "POST", ">=500", 3)
    assert added == Function("send-report", added.secret, URL, "POST", FailOn(">=500"), 3, active=True)
    assert len(added.secret) > 43
    assert await directory.get("send-report") == await other.get("send-report") == added
    plain = await other.add("a", URL)
    assert plain == Function("a", plain.secret, URL, "JOB", None, None, active=True)
    assert plain.secret != added.secret
    assert await directory.list() == [plain, added]


@on_every_store
async def test_adding_again_replaces_all_but_the_secret_and_the_flag(here: Place) -> None:
    directory = Directory(here.store(), here.clock)
    first = await directory.add("x", URL, "POST", "500", 2)
    await directory.deactivate("x")
    second = await directory.add("x", "https://example.com/fn")
    assert second == Function("x", first.secret, "https://example.com/fn", active=False)
    assert await directory.get("x") == second
    assert await directory.list() == [second]


@on_every_store
async def test_activating_deactivating_and_a_new_secret(here: Place) -> None:
    directory = Directory(here.store(), here.clock)
    added = await directory.add("x", URL)
    assert (await directory.deactivate("x")).active is False
    assert (await directory.deactivate("x")).active is False
    assert (await directory.get("x")).active is False
    assert (await directory.activate("x")) == added
    rotated = await directory.rotate_secret("x")
    assert rotated.secret != added.secret
    assert await directory.get("x") == rotated


@on_every_store
async def test_a_removed_function_is_not_found(here: Place) -> None:
    directory = Directory(here.store(), here.clock)
    old = await directory.add("x", URL)
    await directory.get("x")
    await directory.remove("x")
    for call in (
        directory.get("x"),
        directory.remove("x"),
        directory.activate("x"),
        directory.deactivate("x"),
        directory.rotate_secret("x"),
    ):
        with pytest.raises(NotFound, match=r"^Function 'x' not found$"):
            await call
    assert await directory.list() == []
    assert (await directory.add("x", URL)).secret != old.secret


@on_every_store
async def test_of_a_folders_function_the_secret_and_the_flag_are_kept(here: Place) -> None:
    directories = [Directory(here.store(), here.clock) for _ in range(4)]
    with pytest.raises(NotFound):
        await directories[0].get("local")
    ensured = await asyncio.gather(*(one.ensure("local") for one in directories))
    assert {one.secret for one in ensured} == {ensured[0].secret}
    assert ensured[0] == Function("local", ensured[0].secret)
    assert await directories[0].get("local") == ensured[0], "the one that made it sees it at once"
    await directories[1].deactivate("local")
    assert (await directories[2].ensure("local")).active is False


@on_every_store
async def test_changes_at_once_lose_nothing(here: Place) -> None:
    one, other = Directory(here.store(), here.clock), Directory(here.store(), here.clock)
    for _ in range(3):
        await one.add("x", URL)
        await one.activate("x")
        await asyncio.gather(one.add("x", f"{URL}/new"), other.deactivate("x"))
        there = await Directory(here.store(), here.clock).get("x")
        assert (there.url, there.active) == (f"{URL}/new", False)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Bad"},
        {"name": "jobs"},
        {"name": ""},
        {"url": "ftp://x"},
        {"url": ""},
        {"url": None},
        {"method": "GET"},
        {"method": "post"},
        {"fail_on": ">=1000"},
        {"fail_on": ""},
        {"fail_on": 500},
        {"concurrency": 0},
        {"concurrency": True},
        {"concurrency": "3"},
    ],
)
def test_bad_values_are_refused_and_nothing_is_stored(wrong: dict[str, Any]) -> None:
    @in_memory
    async def test(here: Place) -> None:
        directory = Directory(here.store(), here.clock)
        with pytest.raises(InvalidArgument) as refused:
            await directory.add(**({"name": "x", "url": URL} | wrong))
        assert "\n" not in str(refused.value)
        assert await directory.list() == []

    test()


# -- how often the store is read


@in_memory
async def test_a_name_is_read_once_a_second_however_many_ask(here: Place) -> None:
    store = FaultyStore(here.store())
    directory = Directory(store, here.clock)
    await directory.add("x", URL)
    before = store.calls["get_document"]
    for second in range(1, 4):
        for _ in range(3):
            found = await asyncio.gather(*(directory.get("x") for _ in range(50)))
            assert {one.url for one in found} == {URL}
            absent = await asyncio.gather(*(directory.get("ghost") for _ in range(50)), return_exceptions=True)
            assert {type(one) for one in absent} == {NotFound}
        assert store.calls["get_document"] - before == 2 * second
        here.time.advance(1)


@on_every_store
async def test_what_another_process_changes_is_seen_within_a_second(here: Place) -> None:
    here_too, command = Directory(here.store(), here.clock), Directory(here.store(), here.clock)
    with pytest.raises(NotFound):
        await here_too.get("x")
    added = await command.add("x", URL)
    here.time.advance(1)
    assert await here_too.get("x") == added
    await command.deactivate("x")
    here.time.advance(1)
    assert (await here_too.get("x")).active is False
    await command.remove("x")
    here.time.advance(1)
    with pytest.raises(NotFound):
        await here_too.get("x")


@in_memory
async def test_any_number_of_unknown_names_takes_no_memory_without_end(here: Place) -> None:
    directory = Directory(here.store(), here.clock)
    await directory.add("x", URL)
    for number in range(REMEMBERED + 300):
        with pytest.raises(NotFound):
            await directory.get(f"ghost-{number}")
    assert len(directory._readings) <= REMEMBERED
    assert (await directory.get("x")).url == URL


@in_memory
async def test_unknown_names_drive_no_function_out_while_the_store_is_away(here: Place) -> None:
    store = FaultyStore(here.store())
    directory = Directory(store, here.clock, logging.getLogger("treadle.directory"))
    added = await directory.add("x", URL)
    await directory.get("x")
    store.fail_before("get_document")
    here.time.advance(5)
    for number in range(REMEMBERED + 300):
        with pytest.raises(StoreUnavailable):
            await directory.get(f"ghost-{number}")
    assert len(directory._readings) <= REMEMBERED
    assert await directory.get("x") == added


@in_memory
async def test_a_known_function_is_found_for_a_minute_without_the_store(here: Place) -> None:
    store = FaultyStore(here.store())
    directory = Directory(store, here.clock, logging.getLogger("treadle.directory"))
    added = await directory.add("x", URL)
    await directory.get("x")
    store.fail_before("get_document")
    here.time.advance(59)
    assert await directory.get("x") == added
    with pytest.raises(StoreUnavailable):
        await directory.get("ghost")
    here.time.advance(1)
    with pytest.raises(StoreUnavailable):
        await directory.get("x")
    store.heal()
    assert await directory.get("x") == added


@in_memory
async def test_an_outage_is_told_once_for_all_functions(here: Place) -> None:
    store, logger = FaultyStore(here.store()), logging.getLogger("treadle.test.directory.away")
    told: list[str] = []
    logger.addFilter(lambda record: told.append(record.getMessage()) or False)
    directory = Directory(store, here.clock, logger)
    names = [f"f-{number}" for number in range(50)]
    for name in names:
        await directory.add(name, URL)
        await directory.get(name)
    here.time.advance(2)
    store.fail_before("get_document")
    for _ in range(2):
        for name in [*names, "ghost-1", "ghost-2"]:
            await asyncio.gather(directory.get(name), return_exceptions=True)
        here.time.advance(2)
    assert told == ["the functions: the store failed, trying again: the store cannot be reached (a fault that the test set)"]
    store.heal()
    for _ in range(2):
        for name in names:
            await directory.get(name)
        async with asyncio.timeout(20):
            while any(reading.under_way for reading in directory._readings.values()):
                await asyncio.sleep(0)  # the last values serve while it is looked whether the store is back
        here.time.advance(2)
    assert len(told) == 2 and told[1].startswith("the functions: the store is back after ")


@in_memory
async def test_a_bad_document_is_no_outage_and_is_refused_at_once(here: Place) -> None:
    store, logger = here.store(), logging.getLogger("treadle.test.directory.bad")
    told: list[str] = []
    logger.addFilter(lambda record: told.append(record.getMessage()) or False)
    directory = Directory(store, here.clock, logger)
    await directory.add("x", URL)
    await directory.get("x")
    await store.put_document(NAMESPACE, "x", ["bad"], now=here.clock.for_store())
    here.time.advance(2)
    for _ in range(3):
        with pytest.raises(BadFunction):
            await directory.get("x")
    assert told == []


class Held:
    """A store whose reads wait until they may go on."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.reads = 0
        self.go_on = asyncio.Event()

    async def get_document(self, *values: Any, **options: Any) -> Any:
        self.reads += 1
        await self.go_on.wait()
        return await self.inner.get_document(*values, **options)


@in_memory
async def test_a_name_that_is_being_read_is_not_forgotten(here: Place) -> None:
    """Else its readers would begin again with another read, whose answer may overtake the first one's."""
    held = Held(here.store())
    directory = Directory(held, here.clock)  # type: ignore[arg-type]  # it only reads
    readers = [asyncio.create_task(directory.get(f"ghost-{number}")) for number in range(REMEMBERED + 300)]
    async with asyncio.timeout(20):
        while held.reads < len(readers):
            await asyncio.sleep(0)
        held.go_on.set()
        assert {type(one) for one in await asyncio.gather(*readers, return_exceptions=True)} == {NotFound}
    assert held.reads == len(readers)
    with pytest.raises(NotFound):
        await directory.get("one-more")
    assert len(directory._readings) <= REMEMBERED


# -- what is stored is checked


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"secret": "s"},
        {"secret": "", "active": True},
        {"secret": 7, "active": True},
        {"secret": "s\0", "active": True},
        {"secret": "s", "active": 1},
        {"secret": "s", "active": True, "url": "nowhere"},
        {"secret": "s", "active": True, "url": 7},
        {"secret": "s", "active": True, "method": "GET"},
        {"secret": "s", "active": True, "fail_on": "bad"},
        {"secret": "s", "active": True, "fail_on": ["500"]},
        {"secret": "s", "active": True, "concurrency": -1},
    ],
)
def test_a_bad_document_is_an_error_of_one_line_that_names_it(value: Any) -> None:
    @in_memory
    async def test(here: Place) -> None:
        store = here.store()
        await store.put_document(NAMESPACE, "x", value, now=here.clock.for_store())
        directory = Directory(store, here.clock)
        for call in (directory.get("x"), directory.ensure("x"), directory.activate("x")):
            with pytest.raises(BadFunction, match=r"^what the store has as function 'x' is ") as refused:
                await call
            assert "\n" not in str(refused.value)
        await directory.remove("x")
        assert (await directory.add("x", URL)).url == URL

    test()


@in_memory
async def test_a_bad_document_is_left_out_of_the_list_and_told_once(here: Place) -> None:
    store, logger = here.store(), logging.getLogger("treadle.test.directory")
    told: list[str] = []
    logger.addFilter(lambda record: told.append(record.getMessage()) or False)
    directory = Directory(store, here.clock, logger)
    await directory.add("good", URL)
    await store.put_document(NAMESPACE, "x", {"secret": "s", "active": True, "method": "PUT"}, now=here.clock.for_store())
    for _ in range(2):
        assert [function.name for function in await directory.list()] == ["good"]
    [line] = told
    assert line.startswith("what the store has as function 'x' is bad: ")


@in_memory
async def test_what_older_and_newer_versions_leave_out_or_add_is_no_error(here: Place) -> None:
    store = here.store()
    await store.put_document(NAMESPACE, "x", {"secret": "s", "active": False, "newer": [1]}, now=here.clock.for_store())
    assert await Directory(store, here.clock).get("x") == Function("x", "s", active=False)
