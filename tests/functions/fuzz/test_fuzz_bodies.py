"""F14: whatever a body holds, it is refused in one line and leaves nothing behind, or it is stored exactly."""

from __future__ import annotations

import asyncio

from tests.functions.function_stores import KINDS, Place
from tests.functions.fuzz.judge import encoded_of, judged, least
from tests.functions.fuzz.raw import answers, chunked, connect, request
from tests.functions.fuzz.specimens import EXACT, NOT_JSON, ODD_TEXTS, ODD_VALUES, OTHER_TYPES
from tests.functions.fuzz.target import (
    CRON,
    ENQUEUE,
    JSON_TYPE,
    MAX_BODY,
    MAX_PAYLOAD,
    REQUEUE,
    Target,
    encoded,
    exactly,
    on,
    target,
)

from treadle.core.outcome import Dead
from treadle.core.store import Claim, Demand, Ending

OF_THE_STORES = ("no text", "unpaired surrogates", "twice", "too deep")  # what servers of databases read in their own ways


async def _dead_job(shot_at: Target) -> str:
    """A job that could be retried, so that a refusal to do so can be seen."""
    store, token = shot_at.store, "t"
    answer = await shot_at.ask("POST", ENQUEUE, b'{"max_attempts":1}')
    now = shot_at.service.place.clock.for_store()
    claimed = await store.claim(token, [Demand(1, ("functions",))], worker="w", lease=60, now=now)
    assert [job.id for job in claimed.jobs] == [answer.data["id"]]
    await store.finish([Ending(Claim(answer.data["id"], token), Dead("it failed"))], now=now)
    return str(answer.data["id"])


@on(*KINDS)
async def test_what_is_not_such_json_is_refused(place: Place) -> None:
    async with target(place) as shot_at:
        dead = await _dead_job(shot_at)
        routes = [ENQUEUE, CRON, REQUEUE, f"/v1/functions/jobs/{dead}/retry"]
        for kind, bodies in NOT_JSON.items():
            if not shot_at.near and kind not in OF_THE_STORES:
                continue
            for body in bodies:
                for route in routes:
                    if route == CRON and kind == "unknown" and b'"function"' in body:
                        continue
                    answer = await shot_at.refused("POST", route, body, status=(400,))
                    assert answer.code == "invalid_request", (kind, body[:80], answer)


@on("memory", "sqlite")
async def test_other_content_is_refused(place: Place) -> None:
    async with target(place) as shot_at:
        dead = await _dead_job(shot_at)
        for route in (ENQUEUE, CRON, REQUEUE, f"/v1/functions/jobs/{dead}/retry"):
            body = encoded({"payload": 1} if route == ENQUEUE else least(route) if route == CRON else {})
            for kind in OTHER_TYPES:
                await shot_at.refused("POST", route, body, ("content-type", kind), status=(415,))
            for coding in ("gzip", "deflate", "br", "identity, gzip", "x"):
                await shot_at.refused("POST", route, body, ("content-encoding", coding), status=(415,))
            await shot_at.refused("POST", route, body, JSON_TYPE, ("content-type", "text/plain"), status=(415,))


@on(*KINDS)
async def test_each_field_is_taken_exactly_if_the_description_says_so(place: Place) -> None:
    """Every odd value in every field, judged by the JSON Schema that the service publishes."""
    async with target(place) as shot_at:
        taken = refused = 0
        for route, shape in ((ENQUEUE, "EnqueueBody"), (CRON, "CronBody")):
            for field in shot_at.document["components"]["schemas"][shape]["properties"]:
                for value in ODD_VALUES if shot_at.near else ODD_TEXTS:
                    if isinstance(value, int) and abs(value) > 10**300 and field == "payload":
                        continue  # a number beyond a double has its own test
                    if await judged(shot_at, route, encoded({**least(route), field: value})):
                        taken += 1
                    else:
                        refused += 1
            for field in least(route):
                left = {name: value for name, value in least(route).items() if name != field}
                assert field in (await shot_at.refused("POST", route, encoded(left), status=(400,))).message
        assert taken > 40 and refused > 100, (taken, refused)


@on(*KINDS)
async def test_what_is_taken_comes_back_exactly(place: Place) -> None:
    async with target(place) as shot_at:
        before = await shot_at.contents()
        ids = []
        for number, text in enumerate(EXACT):
            answer = await shot_at.ask("POST", ENQUEUE, b'{"payload":%b}' % text.encode())
            assert answer.status == 201, (text[:80], answer)
            ids.append(answer.data["id"])
            for told in (answer, await shot_at.job(answer.data["id"])):
                assert exactly(encoded_of(told.body, "payload")) == exactly(text), text[:80]
            entry = {"name": f"entry-{number}", "schedule": "* * * * *", "function": "a", "payload": 0}
            body = encoded(entry).replace(b'"payload": 0', b'"payload":%b' % text.encode())
            answer = await shot_at.ask("POST", CRON, body)
            assert answer.status == 201, (text[:80], answer)
            assert exactly(encoded_of(answer.body, "payload")) == exactly(text), text[:80]
        listed = (await shot_at.ask("GET", "/v1/functions/jobs?limit=500")).data
        assert [job["id"] for job in listed] == ids[::-1]
        after = await shot_at.contents()
        assert len(after["jobs"]) == len(before["jobs"]) + len(EXACT)
        assert len(after["schedules"]) == len(EXACT)
        assert after["documents"] == before["documents"] and after["intervals"] == before["intervals"]


@on("memory", "sqlite")
async def test_huge_bodies_are_413_and_read_no_further(place: Place) -> None:
    async with target(place) as shot_at:
        large = b'{"payload":"' + b"x" * (MAX_BODY + 1) + b'"}'
        over = b'{"payload":"' + b"x" * (MAX_PAYLOAD - 1) + b'"}'
        dead = await _dead_job(shot_at)
        for route in (ENQUEUE, CRON, REQUEUE, f"/v1/functions/jobs/{dead}/retry"):
            for length in (str(MAX_BODY + 1), str(10**15), "9" * 18):
                # only the head is sent: the answer must not wait for the body
                await shot_at.refused("POST", route, b"{", ("content-length", length), status=(413,))
            await shot_at.refused("POST", route, large, status=(413,))
            body = chunked(large, 7_919)
            await shot_at.refused("POST", route, body, ("transfer-encoding", "chunked"), status=(413,))
            endless = b"ffff\r\n" + b" " * 0xFFFF + b"\r\n"
            await shot_at.refused("POST", route, endless * 3, ("transfer-encoding", "chunked"), status=(413,))
        await shot_at.refused("POST", ENQUEUE, over, status=(413,))
        await shot_at.refused("POST", ENQUEUE, chunked(over, 999), ("transfer-encoding", "chunked"), status=(413,))
        entry = encoded({**least(CRON), "payload": "x" * (MAX_PAYLOAD - 1)})
        await shot_at.refused("POST", CRON, entry, status=(413,))
        exact = b'{"payload":"' + b"x" * (MAX_PAYLOAD - 2) + b'"}'
        assert (await shot_at.ask("POST", ENQUEUE, chunked(exact, 777), ("transfer-encoding", "chunked"))).status == 201


@on("memory", "sqlite")
async def test_a_body_on_a_request_that_takes_none(place: Place) -> None:
    """It is not taken for the next request, and does no harm."""
    async with target(place) as shot_at:
        before = await shot_at.contents()
        smuggled = request("POST", ENQUEUE, b"{}", shot_at.keyed, JSON_TYPE)
        for method in ("GET", "HEAD", "DELETE", "OPTIONS", "PUT"):
            for path in ("/healthz", "/v1/functions/jobs", "/openapi.json", f"{CRON}/none", "/nowhere"):
                for body in (b"{", smuggled, b"\xff" * 70_000):
                    await shot_at.send(request(method, path, body, shot_at.keyed), [method])
                    framed = request(method, path, chunked(body, 4096), shot_at.keyed, ("transfer-encoding", "chunked"))
                    await shot_at.send(framed, [method])
        assert await shot_at.contents() == before


@on("memory", "sqlite")
async def test_slow_bodies_are_ended(place: Place) -> None:
    """One that stops, and one that drips: 408 in time, and nothing is stored."""
    async with target(place, body_seconds=0.3) as shot_at:
        before = await shot_at.contents()

        async def drip(route: str, every: float) -> None:
            line = await connect(shot_at.port)
            try:
                await line.send(request("POST", route, b"", shot_at.keyed, JSON_TYPE, ("content-length", "200")))
                reading = asyncio.create_task(line.rest())
                while not reading.done():
                    await line.send(b" ")
                    await asyncio.wait({reading}, timeout=every)
                (answer,) = answers(reading.result())
                assert (answer.status, answer.code) == (408, "timeout"), answer
            finally:
                await line.close()

        routes = (ENQUEUE, CRON, REQUEUE)
        await asyncio.gather(*(drip(route, every) for route in routes for every in (0.05, 5)))
        assert await shot_at.contents() == before
