"""Values: a handler gets exactly what was enqueued, and what is not JSON is refused at once (E4, E5)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from treadle.core.errors import InvalidArgument
from treadle.core.job import State
from treadle.core.payload import JSON, encode
from treadle.core.policies.retry import Fixed
from treadle.engine.execution import Context
from treadle.testing.contract import expect
from treadle.testing.contract.payloads import CASES
from treadle.testing.library.bench import Bench
from treadle.testing.suite import Group

values = Group[Bench]("values")


@values
async def a_handler_gets_exactly_what_was_enqueued(b: Bench) -> None:
    """NUL, emoji, large integers, floats, empty lists and objects reach the handler as they were (scenarios 74, 78)."""
    tasks = b.tasks()
    got: dict[str, str] = {}

    @tasks.handler("job")
    async def handler(payload: list[Any]) -> None:
        got[payload[0]] = encode(payload[1])

    for words, payload in CASES.items():
        await tasks.enqueue("job", [words, payload])
    await tasks.drain()
    for words, payload in CASES.items():
        expect.that(words in got, f"the handler was called with {words}")
        expect.same_json(got[words], encode(payload), f"the handler gets {words} as it was")


@values
async def a_payload_is_the_same_at_every_attempt(b: Bench) -> None:
    """Delay, retry and redrive change nothing in it, nor does a handler that does (scenario 78)."""
    tasks = b.tasks(retry=Fixed(0), max_attempts=2)
    payload: JSON = {"items": [], "map": {}, "nested": [[], [{}]], "t": True, "n": None}
    got: list[str] = []

    @tasks.handler("job")
    async def handler(payload: dict[str, Any], ctx: Context) -> None:
        got.append(encode(payload))
        payload["items"].append("changed")
        raise ValueError

    enqueued = await tasks.enqueue("job", payload, delay=10)
    b.clock.advance(10)
    await tasks.drain()
    await tasks.retry(enqueued.id)
    await tasks.drain()
    expect.equal(len(got), 4, "two attempts before the redrive and two after")
    for text in got:
        expect.same_json(text, encode(payload), "every attempt gets the payload as it was enqueued")


@values
async def what_is_not_json_is_refused_and_stores_nothing(b: Bench) -> None:
    """NaN, infinities, bytes, sets, keys that are not text, and lone surrogates raise InvalidArgument (scenario 76)."""
    tasks = b.tasks()
    bad: list[object] = [
        {"v": float("nan")},
        [float("inf")],
        {"a": [{"b": float("-inf")}]},
        b"bytes",
        {1, 2},
        {1: "a"},
        "\ud800",
        datetime(2026, 1, 1),  # noqa: DTZ001  # naive on purpose: no datetime is JSON
        object(),
    ]
    for payload in bad:
        try:
            await tasks.enqueue("job", payload)
        except InvalidArgument as error:
            expect.that("\n" not in str(error), "the error is one line", str(error))
        else:
            expect.that(False, f"the payload {payload!r} is refused")
    expect.equal(await b.jobs(), [], "nothing is stored of what is refused")


@values
async def an_error_with_nul_is_a_normal_failure(b: Bench) -> None:
    """An error text with NUL and lone surrogates ends the attempt like any other (scenario 74)."""
    tasks = b.tasks(max_attempts=1)

    @tasks.handler("job")
    async def handler(payload: object) -> None:
        raise ValueError("a\0b \ud800 \U0001f600" + "x" * 1000)

    enqueued = await tasks.enqueue("job")
    await tasks.drain()
    job = await b.job(enqueued.id)
    expect.equal(job.state, State.DEAD, "the job is dead")
    expect.equal((job.last_error or "")[:19], "ValueError: ab ? \U0001f600x", "the text is kept without NUL and surrogates")
    expect.equal(len(job.last_error or ""), 500, "and cut at 500 code points")
