"""F14: what is no HTTP, half of it, too much of it or too slow ends in a refusal or a closed connection, and stores nothing."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.functions.function_stores import Place
from tests.functions.fuzz.firing_range import FiringRange
from tests.functions.fuzz.raw import Line, answers, chunked, connect, request
from tests.functions.fuzz.target import CRON, ENQUEUE, JSON_TYPE, MAX_BODY, REQUEUE, Target, checked, encoded, on, target

from treadle.functions.http.lifetime import Limits

GARBAGE = [
    b"\r\n",
    b"\r\n" * 50_000,
    b"\n" * 100,
    b"\x00" * 1_000,
    b"\xff" * 100_000,
    b"GET\r\n\r\n",
    b"GET /\r\n\r\n",
    b"GET / \r\n\r\n",
    b"GET / HTTP\r\n\r\n",
    b"GET / HTTP/0.9\r\n\r\n",
    b"GET / HTTP/1.2\r\nhost: x\r\n\r\n",
    b"GET / HTTP/2.0\r\nhost: x\r\n\r\n",
    b"GET / HTTP/9999999999.1\r\n\r\n",
    b"GET / http/1.1\r\nhost: x\r\n\r\n",
    b"GET  /  HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET\t/\tHTTP/1.1\r\nhost: x\r\n\r\n",
    b" GET / HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET / HTTP/1.1 \r\nhost: x\r\n\r\n",
    b"GET / HTTP/1.1\nhost: x\n\n",
    b"GET / HTTP/1.1\r\rhost: x\r\r",
    b"GET / HTTP/1.1\r\nhost x\r\n\r\n",
    b"GET / HTTP/1.1\r\n: x\r\n\r\n",
    b"GET / HTTP/1.1\r\n host: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost : x\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200)),
    b"SSH-2.0-OpenSSH_9.9\r\n",
    b"EHLO here\r\n",
    b"*1\r\n$4\r\nPING\r\n",
    b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
    b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n",
    b"\r\n\r\n\x00\r\nPROXY\n" + b"\x21\x11\x00\x0c" + bytes(12),
    b"{}" * 1_000,
    b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    b"CONNECT here:443 HTTP/1.1\r\nhost: here\r\n\r\n",
    b"A" * 200_000,
    b"GET /" + b"a" * 200_000,
    b"GET / HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 50_000,
    b"GET / HTTP/1.1\r\nhost: " + b"x" * 200_000,
]
CHUNKS = {
    b"z\r\n{}\r\n0\r\n\r\n": {400},
    b"-2\r\n{}\r\n0\r\n\r\n": {400},
    b"0x2\r\n{}\r\n0\r\n\r\n": {400},
    b"2 \r\n{}\r\n0\r\n\r\n": {400},
    b"\r\n{}\r\n0\r\n\r\n": {400},
    b"2\r\n{}0\r\n\r\n": {400},
    b"1\r\n{}\r\n0\r\n\r\n": {400},
    b"2\n{}\n0\n\n": {400},
    b"f" * 17 + b"\r\n{}\r\n0\r\n\r\n": {400},
    b"7fffffffffffffff\r\n{}\r\n0\r\n\r\n": {408},  # of which more might still come
    b"ffffffffffffffff\r\n{}\r\n0\r\n\r\n": {408},
    b"2\r\n{}\r\n0\r\nno colon\r\n\r\n": {400},
    b"2;" + b"x" * 60_000 + b"\r\n{}\r\n0\r\n\r\n": {400, 201},  # as it comes: in one piece with the rest, or in several
    b"2\r\n{}\r\n0\r\n" + b"a: b\r\n" * 50_000 + b"\r\n": {400},
    b"2;name=value\r\n{}\r\n0\r\n\r\n": {201},
    b"00002\r\n{}\r\n000\r\n\r\n": {201},
    b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n": {201},
    b"2\r\n{}\r\n0\r\napikey: other\r\n\r\n": {201},
    b"2\r\n{}\r\n0\r\ncontent-length: 5\r\n\r\n": {400},
    b"0\r\n\r\n": {201},
}


@on("memory", "sqlite")
async def test_what_is_no_http_is_refused_or_closed(place: Place) -> None:
    async with target(place, limits=Limits(head_seconds=0.5, idle=0.5, linger=0.5)) as shot_at:
        before = await shot_at.contents()

        async def shoot(data: bytes) -> None:
            found = await shot_at.send(data)
            assert len(found) <= 1, (data[:60], found)
            assert all(400 <= answer.status < 502 for answer in found), (data[:60], found)

        for start in range(0, len(GARBAGE), 8):
            await asyncio.gather(*(shoot(data) for data in GARBAGE[start : start + 8]))
        assert await shot_at.contents() == before


@on("memory", "sqlite")
async def test_bodies_in_odd_chunks(place: Place) -> None:
    async with target(place, body_seconds=1) as shot_at:
        head = request("POST", ENQUEUE, None, shot_at.keyed, JSON_TYPE, ("transfer-encoding", "chunked"))
        for body, statuses in CHUNKS.items():
            before = await shot_at.contents()
            found = await shot_at.send(head + body)
            assert len(found) == 1 and found[0].status in statuses, (body[:60], found)
            stored = len((await shot_at.contents())["jobs"]) - len(before["jobs"])
            assert stored == (found[0].status == 201), body[:60]


@pytest.mark.slow
@on("memory", "sqlite")
async def test_a_request_that_breaks_off_anywhere_stores_nothing(place: Place) -> None:
    """Every beginning of three requests that would store something; then the connection is closed, half closed, or reset."""
    async with target(place) as shot_at:
        entry = encoded({"name": "nightly", "schedule": "0 3 * * *", "function": "clean-up"})
        requests = [
            request("POST", ENQUEUE, b'{"payload":[1]}', shot_at.keyed, JSON_TYPE),
            request(
                "POST", ENQUEUE, chunked(b'{"payload":[1]}', 4), shot_at.keyed, JSON_TYPE, ("transfer-encoding", "chunked")
            ),
            request("POST", CRON, entry, shot_at.keyed, JSON_TYPE),
        ]
        before = await shot_at.contents()

        async def break_off(data: bytes, how: int) -> None:
            line = await connect(shot_at.port)
            try:
                await line.send(data)
                if how == 1:
                    line.writer.write_eof()
                    for answer in answers(await line.rest()):
                        checked(answer)
                        assert 400 <= answer.status < 500
            finally:
                await line.close(abort=how == 2)

        for whole in requests:
            for start in range(0, len(whole), 40):
                cuts = range(start, min(start + 40, len(whole)))
                await asyncio.gather(*(break_off(whole[:cut], cut % 3) for cut in cuts))
        await shot_at.healthy()
        assert await shot_at.contents() == before


@on("memory", "sqlite")
async def test_pipelined_requests_are_each_taken_for_what_they_are(place: Place) -> None:
    """Good ones and bad ones in one piece, in many orders: the answers come in their order, and only the good are stored."""
    chance = random.Random(14)
    async with target(place) as shot_at:

        def one(number: int) -> tuple[bytes, str, int]:
            keyed, post = shot_at.keyed, (shot_at.keyed, JSON_TYPE)
            body = encoded({"payload": number})
            return chance.choice(
                [
                    (request("POST", ENQUEUE, body, *post, close=False), "POST", 201),
                    (
                        request("POST", ENQUEUE, chunked(body, 3), *post, ("transfer-encoding", "chunked"), close=False),
                        "POST",
                        201,
                    ),
                    (request("POST", ENQUEUE, b"{", *post, close=False), "POST", 400),
                    (request("POST", ENQUEUE, b'{"x":1}', *post, close=False), "POST", 400),
                    (request("POST", ENQUEUE, body, JSON_TYPE, close=False), "POST", 401),
                    (request("POST", ENQUEUE, body, keyed, ("content-type", "text/plain"), close=False), "POST", 415),
                    (request("GET", "/healthz", body, close=False), "GET", 200),
                    (request("HEAD", "/v1/functions/jobs", None, keyed, close=False), "HEAD", 200),
                    (request("PUT", ENQUEUE, body, keyed, close=False), "PUT", 405),
                    (request("GET", f"/nowhere/{number}", None, close=False), "GET", 404),
                ]
            )

        expected: list[int] = []
        for round_ in range(25):
            shots = [one(round_ * 100 + number) for number in range(chance.randint(2, 12))]
            methods = [method for _, method, _ in shots]
            data = b"".join(data for data, _, _ in shots) + request("GET", "/healthz")
            line = await connect(shot_at.port)
            try:
                for piece in [data] if round_ % 2 else [data[at : at + 97] for at in range(0, len(data), 97)]:
                    await line.send(piece)
                found = answers(await line.rest(), [*methods, "GET"])
            finally:
                await line.close()
            assert [answer.status for answer in found] == [*(status for _, _, status in shots), 200], (shots, found)
            for answer, method in zip(found, methods, strict=False):
                checked(answer, bare=method == "HEAD")
            expected += [answer.data["payload"] for answer in found if answer.status == 201]
        stored = [int(job.payload_json) for job in (await shot_at.contents())["jobs"]]
        assert stored == expected[::-1] and len(stored) > 20


@on("memory", "sqlite")
async def test_nothing_is_smuggled_behind_a_refusal(place: Place) -> None:
    """What follows a request whose end cannot be known is not read as another request."""
    async with target(place) as shot_at:
        before = await shot_at.contents()
        hidden = request("POST", ENQUEUE, b"{}", shot_at.keyed, JSON_TYPE)
        for headers in (
            [("content-length", "0"), ("transfer-encoding", "chunked")],
            [("transfer-encoding", "chunked"), ("content-length", "0")],
            [("content-length", "0"), ("content-length", "5")],
            [("transfer-encoding", "gzip")],
            [("transfer-encoding", "chunked, identity")],
            [("transfer-encoding", " chunked\x0b")],
            [("content-length", "1_0")],
            [("content-length", str(MAX_BODY + 1))],
        ):
            data = request("POST", "/v1/functions/other/jobs", b"", shot_at.keyed, JSON_TYPE, *headers, close=False)
            found = await shot_at.send(data + hidden)
            assert len(found) == 1 and 400 <= found[0].status < 502, (headers, found)
        assert await shot_at.contents() == before


@on("memory", "sqlite")
async def test_slow_heads_are_ended(place: Place) -> None:
    async with target(place, limits=Limits(head_seconds=0.4, idle=0.4, linger=0.3)) as shot_at:
        before = await shot_at.contents()
        whole = request("POST", ENQUEUE, b"{}", shot_at.keyed, JSON_TYPE)

        async def drip(data: bytes, every: float) -> list[int]:
            line = await connect(shot_at.port)
            try:
                reading = asyncio.create_task(line.rest())
                for byte in data[:60]:
                    await line.send(bytes([byte]))
                    await asyncio.wait({reading}, timeout=every)
                    if reading.done():
                        break
                found = answers(await reading)
                for answer in found:
                    checked(answer)
                return [answer.status for answer in found]
            finally:
                await line.close()

        assert await asyncio.gather(*(drip(whole, every) for every in (0.03, 0.1, 2))) == [[408]] * 3
        assert await asyncio.gather(*(drip(b"", 1) for _ in range(3))) == [[]] * 3  # nothing was sent: nothing to answer
        assert await shot_at.contents() == before


@on("memory", "sqlite")
async def test_a_crowd_of_bad_clients_does_not_keep_out_a_good_one(place: Place) -> None:
    """Half requests, idle connections and clients that read nothing are there, two hundred at once; good ones are answered."""
    async with target(place, limits=Limits(head_seconds=5, idle=5, writing=1, linger=0.3)) as shot_at:
        bad: list[Line] = []
        try:
            for number in range(200):
                line = await connect(shot_at.port)
                bad.append(line)
                whole = request("POST", ENQUEUE, b'{"payload":1}', shot_at.keyed, JSON_TYPE)
                await line.send([b"", whole[:50], whole[:-5], request("GET", "/openapi.json", close=False) * 20][number % 4])
            for number in range(20):
                answer = await shot_at.ask("POST", ENQUEUE, encoded({"payload": number}))
                assert (answer.status, answer.data["payload"]) == (201, number)
            assert (await shot_at.ask("POST", REQUEUE)).status == 200
        finally:
            for line in bad:
                await line.close(abort=True)
        assert len((await shot_at.contents())["jobs"]) == 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_generated_noise_does_no_harm(kind: str) -> None:
    """Any bytes, and good requests with bytes changed in them: what is stored was asked for in a request that was whole."""
    quick = Limits(head_seconds=0.3, idle=0.3, linger=0.3)
    with FiringRange(kind, body_seconds=0.3, limits=quick) as range_:
        good = request("POST", ENQUEUE, b'{"payload":{"a":[1,2]}}', range_.shot_at.keyed, JSON_TYPE)
        places = st.lists(
            st.tuples(st.integers(0, len(good)), st.integers(0, 3), st.binary(max_size=3)), min_size=1, max_size=3
        )
        noise = st.one_of(st.binary(max_size=200), places.map(lambda changes: changed(good, changes)))

        async def shoot(shot_at: Target, data: bytes) -> None:
            before = await shot_at.contents()
            line = await connect(shot_at.port)
            try:
                await line.send(data)
                await line.send(b"\r\n\r\n" + b"}" * 40 + b"\r\n\r\n")  # so that it seldom waits for more
                found = answers(await line.rest())
            finally:
                await line.close()
            for answer in found:
                checked(answer)
            after = await shot_at.contents()
            assert after["documents"] == before["documents"] and after["schedules"] == before["schedules"], data
            taken = {answer.data["id"] for answer in found if answer.status == 201}
            new = {job.id for job in after["jobs"]} - {job.id for job in before["jobs"]}
            assert taken <= new and len(new) <= 1, (data, found)
            for job in after["jobs"]:
                if job.id in new:
                    assert job.payload_json.encode() in data.replace(b" ", b"") or job.payload_json == "null", (data, job)

        @settings(
            max_examples=150 if kind == "memory" else 60,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(noise)
        def check(data: bytes) -> None:
            range_.run(shoot(range_.shot_at, data))

        check()


def changed(data: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for at, length, instead in changes:
        data = data[:at] + instead + data[at + length :]
    return data
