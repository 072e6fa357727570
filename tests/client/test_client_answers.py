"""What the client makes of answers: values, the service's errors, and whatever else a server may say."""

import dataclasses
import json
import pickle
from typing import Any

import pytest
from tests.client.faces import KEY, Face
from tests.client.server import Answer, Raw, Server, refusal
from tests.client.shapes import CRON, JOB, JOB_ID, JOB_VALUE

from treadle.client import ApiError, ClientError, Job, TimedOut, UnexpectedAnswer, Unreachable


def test_values_are_immutable() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        JOB_VALUE.status = "dead"  # type: ignore[misc]


def test_fields_of_a_newer_service_are_passed_over_and_its_status_may_be_missing(face: Face, server: Server) -> None:
    older = {name: value for name, value in JOB.items() if name != "response_status"}
    server.script += [Answer(data=JOB | {"priority": 7}), Answer(data=older)]
    with face.open(server.url) as opened:
        assert opened.functions.get_job(JOB_ID) == JOB_VALUE
        assert opened.functions.get_job(JOB_ID) == dataclasses.replace(JOB_VALUE, response_status=None)


def test_times_of_other_zones_are_given_in_utc(face: Face, server: Server) -> None:
    server.script.append(Answer(data=JOB | {"scheduled_at": "2026-10-12T17:40:00+02:00"}))
    with face.open(server.url) as opened:
        job: Job = opened.functions.get_job(JOB_ID)
    assert job.scheduled_at == JOB_VALUE.scheduled_at
    assert str(job.scheduled_at) == "2026-10-12 15:40:00+00:00"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 413, 429, 500, 502, 503, 504])
def test_an_error_of_the_service_is_an_api_error(status: int, face: Face, server: Server) -> None:
    server.script.append(refusal(status, "the_code", "what was wrong", retry_after="7"))
    with face.open(server.url, retries=0) as opened, pytest.raises(ApiError) as raised:
        opened.functions.get_job(JOB_ID)
    error = raised.value
    assert (error.status, error.code, error.message, error.retry_after) == (status, "the_code", "what was wrong", 7.0)
    assert str(error) == f"what was wrong ({status} the_code)"
    assert repr(error) == f"ApiError({status}, 'the_code', 'what was wrong')"
    assert error.sent


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>502 Bad Gateway</html>",
        b'{"error": "x"}',
        b'{"error": {"code": 7, "message": "x"}}',
        b'{"detail": "x"}',
        b"null",
        b"\xff\xfe",
    ],
)
def test_an_error_in_another_form_is_an_api_error_that_says_so(body: bytes, face: Face, server: Server) -> None:
    server.script.append(Answer(418, body=body, headers={"content-type": "text/html"}))
    with face.open(server.url) as opened, pytest.raises(ApiError, match="but not as a functions service of treadle") as raised:
        opened.functions.get_job(JOB_ID)
    assert (raised.value.status, raised.value.code) == (418, "unknown")
    assert f"{server.url}/v1/functions/jobs/{JOB_ID} answered GET with 418 Said" in str(raised.value)


GARBAGE: list[tuple[bytes, str]] = [
    (b"", "0 bytes that are not JSON"),
    (b"<html>Log in, please</html>", "27 bytes that are not JSON"),
    (b'{"data": ', "9 bytes that are not JSON"),
    (b'{"data": NaN}', "not JSON"),
    (b"[" * 200_000, "200,000 bytes that are not JSON"),
    (b"\xff\x00\xfe", "not JSON"),
    (b'{"data": "\xe4"}', "not JSON"),
    (b"[]", "JSON without `data`"),
    (b'"data"', "JSON without `data`"),
    (b'{"result": {}}', "JSON without `data`"),
    (b'{"data": null}', "NoneType in place of a job"),
    (b'{"data": []}', "list in place of a job"),
    (b'{"data": {}}', "a job without `id`"),
]
WRONG: list[tuple[str, Any, str]] = [
    ("id", 7, "`id` is '7', not text"),
    ("status", "failed", "`status` is 'failed', not one of pending, running, completed, dead"),
    ("status", None, "`status` is 'None'"),
    ("attempts", "2", "`attempts` is '2', not a whole number"),
    ("attempts", True, "`attempts` is 'True', not a whole number"),
    ("error", 5, "`error` is '5', not text"),
    ("scheduled_at", None, "`scheduled_at` is 'None', not text"),
    ("scheduled_at", "2026-10-12T15:40:00", "not a time with its zone"),
    ("scheduled_at", "2026-10-12", "not a time with its zone"),
    ("scheduled_at", "yesterday", "`scheduled_at` is 'yesterday', not a time of RFC 3339"),
    ("completed_at", 1760283600, "`completed_at` is '1760283600', not text"),
    ("response_status", "500", "`response_status` is '500', not a whole number"),
]
UNREADABLE = GARBAGE + [(json.dumps({"data": JOB | {name: value}}).encode(), said) for name, value, said in WRONG]


@pytest.mark.parametrize(("body", "said"), UNREADABLE, ids=[said for _, said in UNREADABLE])
@pytest.mark.parametrize("status", [200, 201])
def test_what_is_no_answer_of_the_service_is_said_to_be_none(
    body: bytes, said: str, status: int, face: Face, server: Server
) -> None:
    server.script.append(Answer(status, body=body))
    with face.open(server.url) as opened, pytest.raises(UnexpectedAnswer) as raised:
        opened.functions.enqueue_job("x")
    assert said in str(raised.value)
    assert str(raised.value).endswith("is this a functions service of treadle?")
    assert len(server.received) == 1, "the same would come again"


def test_lists_and_cron_entries_are_read_as_strictly(face: Face, server: Server) -> None:
    server.script += [
        Answer(data={"jobs": []}),
        Answer(data=[JOB, None]),
        Answer(data=[CRON | {"next_run": "soon"}]),
        Answer(data={"requeued": "3"}),
        Answer(data=3),
    ]
    with face.open(server.url) as opened:
        for call, said in [
            (opened.functions.list_jobs, "dict in place of a list"),
            (opened.functions.list_dead, "NoneType in place of a job"),
            (opened.functions.list_cron_jobs, "a cron entry whose `next_run` is 'soon'"),
            (opened.functions.requeue_dead, "`requeued` is '3', not a whole number"),
            (opened.functions.requeue_dead, "int in place of the count"),
        ]:
            with pytest.raises(UnexpectedAnswer, match=said):
                call()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_never_followed(status: int, face: Face, server: Server) -> None:
    server.script.append(Answer(status, body=b"", headers={"location": f"{server.url}/elsewhere"}))
    with face.open(server.url) as opened, pytest.raises(UnexpectedAnswer, match=f"{status} Said, which leads to .*/elsewhere"):
        opened.functions.enqueue_job("x")
    assert len(server.received) == 1, "the key goes nowhere but to its service"


@pytest.mark.parametrize("status", [304, 399])
def test_so_is_any_other_answer_of_that_kind(status: int, face: Face, server: Server) -> None:
    server.script.append(Raw(f"HTTP/1.1 {status} Odd\r\ncontent-length: 0\r\n\r\n".encode()))
    with face.open(server.url) as opened, pytest.raises(UnexpectedAnswer, match="correct the client's URL"):
        opened.functions.list_jobs()


def test_a_body_that_cannot_be_unpacked_is_no_answer(face: Face, server: Server) -> None:
    server.script.append(Answer(body=b"this is no gzip", headers={"content-encoding": "gzip"}))
    with face.open(server.url) as opened, pytest.raises(UnexpectedAnswer, match="cannot be decoded"):
        opened.functions.enqueue_job("x")
    assert len(server.received) == 1


@pytest.mark.parametrize("garbage", [b"SSH-2.0-OpenSSH_9.6\r\n", b"\x15\x03\x01\x00\x02\x02\x46", b"HTTP/1.1 999999 \r\n\r\n"])
def test_another_protocol_is_an_answer_that_broke_off(garbage: bytes, face: Face, server: Server) -> None:
    server.script.append(Raw(garbage))
    with face.open(server.url) as opened, pytest.raises(Unreachable, match="broke off"):
        opened.functions.enqueue_job("x")
    assert len(server.received) == 1


def test_cookies_are_not_kept(face: Face, server: Server) -> None:
    server.script.append(Answer(data=[], headers={"set-cookie": "session=1; path=/"}))
    server.script.append(Answer(data=[]))
    with face.open(server.url) as opened:
        opened.functions.list_jobs()
        opened.functions.list_jobs()
    assert "cookie" not in server.received[1].headers


def test_no_error_and_no_repr_shows_the_key(face: Face, server: Server) -> None:
    server.script += [
        refusal(403),
        Answer(body=b"<html>"),
        Raw(),
        Answer(307, headers={"location": "/x"}),
        Raw(b"garbage\r\n\r\n"),
    ]
    count = len(server.script)
    with face.open(server.url, retries=0) as opened:
        for _ in range(count):
            with pytest.raises(ClientError) as raised:
                opened.functions.requeue_dead()
            seen: BaseException | None = raised.value
            while seen is not None:
                assert KEY not in f"{seen}{seen!r}{seen.args}{vars(seen)}"
                seen = seen.__cause__
        assert KEY not in f"{opened.client!r}{opened.client}{opened.functions._functions!r}"
        assert repr(opened.client).endswith(f" of {server.url}>")
        assert KEY not in repr(opened.client._settings)


ERRORS = [
    ApiError(409, "conflict", "it is not dead", 2.5),
    Unreachable("refused", sent=False),
    TimedOut("late", sent=True),
    UnexpectedAnswer("odd"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_being_handed_to_another_process(error: ClientError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
