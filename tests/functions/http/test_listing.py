"""Lists: a long one is sent as it is read, and what breaks off in the middle does not look whole (F10, F14)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

import httpx2
import pytest
from tests.functions.function_stores import Place, in_memory
from tests.functions.live import live

from treadle.core.errors import StoreUnavailable
from treadle.functions.http.listing import PIECE, listing


def items(values: Sequence[Any], taken: list[Any], failing_at: int | None = None) -> AsyncIterator[Any]:
    """The values one after the other; `taken` is told each that was asked for."""

    async def each() -> AsyncIterator[Any]:
        for number, value in enumerate(values):
            if number == failing_at:
                raise StoreUnavailable("db.internal is away")
            taken.append(value)
            yield value

    return each()


def answered(values: Sequence[Any], method: str = "GET", failing_at: int | None = None) -> tuple[list[Any], list[int]]:
    """What is sent, and how many items were taken by then."""

    async def main() -> tuple[list[Any], list[int]]:
        taken: list[Any] = []
        sent: list[Any] = []
        counts: list[int] = []

        async def send(message: Any) -> None:
            sent.append(message)
            counts.append(len(taken))

        async def receive() -> Any:
            raise AssertionError("nothing is to be received")

        answer = await listing(items(values, taken, failing_at))
        await answer({"type": "http", "method": method}, receive, send)
        return sent, counts

    return asyncio.run(main())


def body_of(sent: Sequence[Any]) -> bytes:
    return b"".join(message["body"] for message in sent[1:])


@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_a_short_list_tells_its_length(count: int) -> None:
    sent, _ = answered(list(range(count)))
    assert json.loads(body_of(sent)) == {"data": list(range(count)), "meta": None}
    assert (b"content-length", b"%d" % len(body_of(sent))) in sent[0]["headers"]
    assert len(sent) == 2


# Pieces that are full just at the end, and others.
@pytest.mark.parametrize(("count", "size"), [(1, PIECE), (4, PIECE), (7, PIECE // 2), (9, PIECE // 3), (300, PIECE // 100)])
def test_a_long_list_leaves_as_it_is_read(count: int, size: int) -> None:
    values = [f"{number}" + "x" * size for number in range(count)]
    sent, counts = answered(values)
    assert json.loads(body_of(sent)) == {"data": values, "meta": None}
    assert not any(name == b"content-length" for name, _ in sent[0]["headers"])
    assert [message["more_body"] for message in sent[1:]] == [True] * (len(sent) - 2) + [False]
    assert max(len(message["body"]) for message in sent[1:]) <= PIECE + size + 100
    assert all(later - sooner <= PIECE // size + 1 for sooner, later in pairwise(counts)), counts


def test_head_of_a_long_list_reads_no_more_of_it() -> None:
    sent, counts = answered(["x" * PIECE] * 50, "HEAD")
    assert body_of(sent) == b"" and sent[-1]["more_body"] is False
    assert counts[-1] == 1


def test_a_store_that_fails_at_first_is_an_error_of_the_request() -> None:
    with pytest.raises(StoreUnavailable):
        answered(["x"] * 5, failing_at=3)


def test_a_store_that_fails_in_the_middle_leaves_the_list_without_its_end(caplog: pytest.LogCaptureFixture) -> None:
    sent, _ = answered(["x" * PIECE] * 5, failing_at=3)
    assert sent[-1]["more_body"] is True
    with pytest.raises(ValueError):
        json.loads(body_of(sent))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "a list broke off, because the store failed: db.internal is away")
    ]


@in_memory
async def test_large_payloads_are_listed_whole(place: Place) -> None:
    async with live(place, role="api") as service:
        made = [(await service.enqueue("large", "é" * 200_000))["id"] for _ in range(12)]
        listed = await service.ask("GET", "/v1/functions/jobs")
        assert [job["id"] for job in listed] == made[::-1]
        assert {job["payload"] for job in listed} == {"é" * 200_000}
        head = await service.http.head("/v1/functions/jobs", headers={"apikey": service.keys["service_role"]})
        assert (head.status_code, head.content) == (200, b"")


@in_memory
async def test_a_list_that_breaks_off_is_noticed_by_whoever_reads_it(place: Place) -> None:
    async with live(place, role="api") as service:
        for _ in range(60):
            await service.enqueue("large", "x" * 50_000)
        find, asked = place.store().find, []

        async def failing(*arguments: Any, **options: Any) -> Any:
            asked.append(1)
            if len(asked) > 1:
                raise StoreUnavailable("away")
            return await find(*arguments, **options)

        with pytest.MonkeyPatch.context() as patch, pytest.raises(httpx2.RemoteProtocolError):
            patch.setattr(place.store(), "find", failing)
            await service.ask("GET", "/v1/functions/jobs?limit=500")
        assert len(asked) == 2
        await service.ask("GET", "/v1/functions/cron")  # on a connection of its own
