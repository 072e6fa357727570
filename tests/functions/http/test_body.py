"""Bodies of requests: what is read, within which bounds, and what is said of the rest (F9, F14)."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, Literal

import msgspec
import pytest
from edges import HOST, Answer, client, endpoint, run, serving
from hypothesis import example, given, settings, strategies as st
from msgspec import UNSET, Meta, Raw, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from treadle.core.payload import MAX_DEPTH, MAX_PAYLOAD, decode, encode
from treadle.functions.http.body import BodyReader, read_json
from treadle.functions.http.envelope import success
from treadle.functions.http.failures import ApiFailure, answer_to

LIMIT = 10_000


class Place(msgspec.Struct, forbid_unknown_fields=True):
    street: str
    number: int = 1


class Job(msgspec.Struct, forbid_unknown_fields=True):
    payload: Annotated[Raw, Meta(description="Any JSON.")] | UnsetType = UNSET
    delay_secs: Annotated[int | float, Meta(description="Seconds.")] = 0
    max_attempts: int | UnsetType = UNSET
    method: Literal["JOB", "POST"] = "JOB"
    places: list[Place] = []
    active: bool = True
    note: str | None = None
    level: Annotated[int, Meta(ge=1, le=5)] = 1


class Cron(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    payload: Raw = Raw(b"null")


BODIES = BodyReader(lambda: 100)


def request(pieces: list[bytes], *headers: tuple[str, str]) -> Request:
    """A request whose body arrives in these pieces."""
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": piece, "more_body": index + 1 < len(pieces)} for index, piece in enumerate(pieces)
    ]

    async def receive() -> Any:
        return messages.pop(0)

    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return Request({"type": "http", "method": "POST", "headers": raw}, receive)


def read(body: bytes, type: Any = Job, *headers: tuple[str, str], limit: int = LIMIT, **options: Any) -> Any:
    return asyncio.run(read_json(request([body], *headers), type, limit=limit, **options))


def refused(body: bytes, type: Any = Job, *headers: tuple[str, str], **options: Any) -> tuple[int, str]:
    with pytest.raises(ApiFailure) as told:
        read(body, type, *headers, **options)
    assert "\n" not in told.value.message
    assert "`" not in told.value.message
    return told.value.status, told.value.message


def payload(text: str) -> str:
    """What a payload that was sent so is stored as."""
    return bytes(read(b'{"payload":' + text.encode() + b"}", limit=MAX_PAYLOAD).payload).decode()


# --- values


@pytest.mark.parametrize("body", [b"{}", b"", b" \r\n\t"])
def test_nothing_stands_for_an_object_without_fields(body: bytes):
    found = read(body)
    assert (found.payload, found.delay_secs, found.max_attempts) == (UNSET, 0, UNSET)


def test_fields_are_what_was_sent():
    found = read(b'{"delay_secs": 1.5, "max_attempts": 7, "places": [{"street": "a"}], "note": null, "payload": null}')
    assert (found.delay_secs, found.max_attempts, found.places, found.note) == (1.5, 7, [Place("a")], None)
    assert bytes(found.payload) == b"null"


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (' { "b" : 1 , "a" : [ ] } ', '{"b":1,"a":[]}'),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("-" + "9" * 4300, "-" + "9" * 4300),
        ("18446744073709551616", "18446744073709551616"),
        ("1.0", "1.0"),
        ("-0.0", "-0.0"),
        ("1e2", "100.0"),
        ("0.1", "0.1"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ('"\\u00e9\\ud83d\\ude00\\/"', '"é😀/"'),
        ('"é"', '"é"'),
        ('""', '""'),
        ("true", "true"),
        ("[" * 100 + "]" * 100, "[" * 100 + "]" * 100),
    ],
)
def test_payloads_are_kept_exactly_and_compactly(sent: str, kept: str):
    assert payload(sent) == kept


def test_the_reader_gives_the_text_of_a_payload_or_null():
    async def main():
        assert BODIES.payload((await BODIES.read(request([b'{"payload": {"a": 1}}']), Job)).payload) == '{"a":1}'
        assert BODIES.payload((await BODIES.read(request([b"{}"]), Job)).payload) == "null"
        assert BODIES.payload((await BODIES.read(request([b'{"name":"x"}']), Cron)).payload) == "null"

    run(main())


# --- what is refused, and in which words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            b'{"delay": 1}',
            "unknown field 'delay'; known are payload, delay_secs, max_attempts, method, places, active, note, level",
        ),
        (b'{"a\\n": 1}', "unknown field 'a\\n'; known"),
        (b'{"delay_secs": "5"}', "delay_secs must be a number, not text"),
        (b'{"delay_secs": null}', "delay_secs must be a number, not null"),
        (b'{"delay_secs": 1e999}', "the body has a number out of range"),
        (b'{"max_attempts": 1.0}', "max_attempts must be a whole number, not a decimal number"),
        (b'{"max_attempts": true}', "max_attempts must be a whole number, not true or false"),
        (b'{"max_attempts": []}', "max_attempts must be a whole number, not a list"),
        (b'{"max_attempts": {}}', "max_attempts must be a whole number, not an object"),
        (b'{"note": 1}', "note must be text or null, not a whole number"),
        (b'{"method": "GET"}', "method must not be 'GET'"),
        (b'{"level": 9}', "level must be a whole number <= 5"),
        (b'{"places": [{"street": "a"}, {"street": 1}]}', "places[1].street must be text, not a whole number"),
        (b'{"places": [{}]}', "the field 'street' is missing in places[0]"),
        (b'{"places": [{"street": "a", "x": 1}]}', "places[0]: object contains unknown field 'x'"),
        (b"[]", "the body must be a JSON object with payload"),
        (b"null", "the body must be a JSON object"),
        (b'"x"', "the body must be a JSON object"),
        (b"{", "the body is not JSON: expecting property name enclosed in double quotes at line 1, column 2"),
        (b"{'a': 1}", "the body is not JSON"),
        (b'{"payload": 1}x', "the body is not JSON: extra data at line 1, column 15"),
        (b'{"payload": 1,}', "the body is not JSON"),
        (b'{"payload": NaN}', "the body is not JSON: NaN is not JSON"),
        (b'{"payload": [-Infinity]}', "the body is not JSON: -Infinity is not JSON"),
        (b'{"payload": 1e400}', "the payload is not JSON: Out of range float"),
        (b'{"payload": "\\ud800"}', "unpaired surrogate"),
        (b'{"payload": {"\\udfff": 1}}', "unpaired surrogate"),
        (b'{"note": "\\ud800"}', "unpaired surrogate"),
        (b'{"\\ud800": 1}', "unknown field '\\ud800'"),
        (b'{"payload": "\xff"}', "it is not UTF-8: byte 0xff at position 13"),
        (b'{"payload": "\xed\xa0\x80"}', "it is not UTF-8"),
        (b'\xef\xbb\xbf{"payload": 1}', "it begins with a byte order mark"),
        ('{"payload": 1}'.encode("utf-16"), "it is not UTF-8"),
        (b'{"payload": "a\nb"}', "invalid control character"),
        (b'{"payload": {"a": 1, "a": 2}}', "the key 'a' is there twice"),
        (b'{"payload": 1, "payload": 2}', "the key 'payload' is there twice"),
        (b'{"payload": ' + b"9" * 5000 + b"}", "a whole number in it has more than 4,300 digits"),
        (b'{"max_attempts": ' + b"9" * 5000 + b"}", "a whole number in it has more than 4,300 digits"),
        (b'{"ratio": ' + b"9" * 400 + b"}", "unknown field 'ratio'"),
        (b'{"payload": ' + b"[" * 101 + b"]" * 101 + b"}", "the payload is nested deeper than 100 levels"),
        (b'{"payload": ' + b"[" * 4000 + b"]" * 4000 + b"}", "nested deeper than 100 levels"),
        (b'{"payload": ' + b'{"a":' * 1500 + b"1" + b"}" * 1500 + b"}", "nested deeper than 100 levels"),
        (b"[" * 9000, "the body is not JSON"),
    ],
)
def test_bad_bodies_are_400_and_say_what_was_expected(body: bytes, words: str):
    status, message = refused(body)
    assert status == 400
    assert words in message


def test_a_missing_field_is_named():
    assert refused(b"", Cron) == (400, "the field 'name' is missing; known are name, payload")


@pytest.mark.parametrize(
    "value",
    ["application/json", "application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"', "application/json; v=1"],
)
def test_json_is_taken_in_utf_8(value: str):
    assert read(b"{}", Job, ("content-type", value)) == Job()


@pytest.mark.parametrize(
    "header",
    [
        ("content-type", "text/plain"),
        ("content-type", "application/x-www-form-urlencoded; charset=latin-1"),
        ("content-type", "multipart/form-data; boundary=x"),
        ("content-type", "application/json; charset=latin-1"),
        ("content-type", ""),
        ("content-type", "application/jsonp"),
        ("content-encoding", "gzip"),
    ],
)
def test_other_content_is_415(header: tuple[str, str]):
    assert refused(b"{}", Job, header)[0] == 415


def test_what_curl_and_urllib_say_unasked_is_taken_as_json():
    assert read(b'{"delay_secs":1}', Job, ("content-type", "application/x-www-form-urlencoded")).delay_secs == 1


def test_an_empty_body_needs_no_type():
    assert read(b"", Job, ("content-type", "text/plain"), ("content-length", "0")) == Job()


def test_a_payload_over_its_limit_is_413():
    sent = b'{"payload": "' + b"x" * 97 + b'"}'
    assert bytes(read(sent, payload_limit=99).payload) == b'"' + b"x" * 97 + b'"'
    status, message = refused(sent, payload_limit=98)
    assert (status, message) == (413, "the payload is larger than the limit of 98 bytes")


def test_a_body_over_the_limit_is_413_however_it_comes():
    assert refused(b"x" * 11, limit=10)[0] == 413
    assert refused(b"", Job, ("content-length", "11"), limit=10)[0] == 413
    for pieces in ([b"x" * 6, b"x" * 5], [b"x"] * 11):
        with pytest.raises(ApiFailure) as told:
            asyncio.run(read_json(request(pieces), Job, limit=10))
        assert told.value.status == 413


# --- fuzz

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec=None), max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
FIELDS = st.sampled_from(["payload", "delay_secs", "max_attempts", "method", "places", "active", "note", "level", "x"])


def tried(body: bytes) -> None:
    try:
        found = read(body, limit=500)
    except ApiFailure as error:
        assert error.status in (400, 413, 415)
        assert json.loads(answer_to(error).body)["error"]["message"].isprintable()
        return
    if found.payload is not UNSET:
        text = bytes(found.payload).decode()
        assert encode(decode(text)) == text
    assert isinstance(found.delay_secs, (int, float))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=600))
@example(b"\x00")
@example(b'{"payload":1e400}')
def test_any_bytes_give_a_value_or_a_refusal(body: bytes):
    tried(body)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(FIELDS, JUNK, max_size=5) | JUNK, st.booleans())
def test_any_json_gives_a_value_or_a_refusal(value: object, ascii: bool):
    tried(json.dumps(value, ensure_ascii=ascii).encode("utf-8", "surrogatepass"))


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(FIELDS, JUNK, max_size=4), st.lists(st.tuples(st.integers(0, 200), st.binary(max_size=3)), max_size=4))
def test_damaged_json_gives_a_value_or_a_refusal(value: object, damage: list[tuple[int, bytes]]):
    body = bytearray(json.dumps(value).encode())
    for place, piece in damage:
        body[place : place + len(piece)] = piece
    tried(bytes(body))


@settings(max_examples=200, deadline=None)
@given(JUNK)
def test_a_payload_means_what_was_sent_or_is_refused(value: object):
    text = json.dumps(value)
    try:
        kept = payload(text)
    except ApiFailure:
        with pytest.raises(Exception):
            encode(value)
    else:
        assert json.loads(kept) == json.loads(text)
        assert list(json.loads(kept)) == list(json.loads(text)) if isinstance(value, dict) else True


# --- on sockets


@endpoint
async def app(req: Request) -> Response:
    body = await read_json(req, Job, limit=LIMIT, seconds=0.3)
    return success({"payload": None if body.payload is UNSET else body.payload})


def post(body: bytes, headers: bytes = b"") -> bytes:
    return b"POST / HTTP/1.1\r\n" + HOST + headers + b"content-length: %d\r\n\r\n" % len(body) + body


def test_a_body_is_read_and_the_connection_stays():
    async def main():
        async with serving(app) as server, client(server.port) as peer:
            for body, kept in ((b'{"payload": [1, 2]}', b"[1,2]"), (b"", None), (b"{", None), (b'{"payload": 3}', b"3")):
                answer = await peer.ask(post(body))
                assert answer.status == (400 if body == b"{" else 200)
                assert answer.header("connection") is None
                if kept:
                    assert answer.body == b'{"data":{"payload":' + kept + b'},"meta":null}'

    run(main())


async def _uploaded(port: int, head: bytes, piece: bytes) -> tuple[Answer, int]:
    """The answer to a client that sends until it sees one, and how much it sent."""
    async with client(port) as peer:
        await peer.send(head)
        answering = asyncio.create_task(peer.answer())
        sent = 0
        while not answering.done() and sent < 100_000_000:
            await peer.send(piece)
            sent += len(piece)
            await asyncio.sleep(0)
        answer = await answering
        assert answer.header("connection") == "close"
        peer.writer.write_eof()
        assert await peer.ended() == b""
        return answer, sent


@pytest.mark.parametrize("chunked", [False, True])
def test_a_huge_upload_is_413_before_it_is_over(chunked: bool):
    async def main():
        async with serving(app) as server:
            framing = b"transfer-encoding: chunked\r\n\r\n" if chunked else b"content-length: 1000000000\r\n\r\n"
            piece = b"%x\r\n%b\r\n" % (60_000, b"x" * 60_000) if chunked else b"x" * 60_000
            answer, sent = await _uploaded(server.port, b"POST / HTTP/1.1\r\n" + HOST + framing, piece)
            assert (answer.status, answer.error[0]) == (413, "payload_too_large")
            assert sent < 50_000_000

    run(main())


def test_a_client_that_asks_first_is_told_413_and_sends_nothing():
    async def main():
        async with serving(app) as server, client(server.port) as peer:
            head = b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 1000000000\r\nexpect: 100-continue\r\n\r\n"
            answer = await peer.ask(head)
            assert (answer.status, answer.header("connection")) == (413, "close")
            assert await peer.ended() == b""

    run(main())


def test_a_body_that_drips_is_408():
    async def main():
        async with serving(app) as server, client(server.port) as peer:
            await peer.send(b"POST / HTTP/1.1\r\n" + HOST + b"content-length: 100\r\n\r\n{")
            answering = asyncio.create_task(peer.answer())
            while not answering.done():
                await peer.send(b" ")
                await asyncio.wait({answering}, timeout=0.05)
            answer = await answering
            assert (answer.status, answer.error[0]) == (408, "timeout")
            assert answer.header("connection") == "close"

    run(main())


def test_a_client_that_goes_in_the_midst_makes_no_noise(caplog: pytest.LogCaptureFixture):
    async def main():
        async with serving(app) as server:
            async with client(server.port) as peer:
                await peer.send(b"POST / HTTP/1.1\r\n" + HOST + b'content-length: 100\r\n\r\n{"a"')
            await server._state.empty.wait()
            while server._state.tasks:
                await asyncio.sleep(0)

    run(main())
    assert not caplog.records


def test_the_depth_that_is_named_is_the_limit():
    assert MAX_DEPTH == 100
