"""Each operation sends exactly one request, and exactly this one; what cannot be sent is refused before."""

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.client.faces import KEY, Face, Functions
from tests.client.server import Answer, Server
from tests.client.shapes import CRON, CRON_VALUE, JOB, JOB_ID, JOB_VALUE, NEW_JOB, NEW_JOB_VALUE

from treadle.client import Requeued


@dataclass(frozen=True)
class Case:
    """A call, the request that it sends, what the service answers, and what the caller gets."""

    call: Callable[[Functions], Any]
    line: str
    body: bytes = b""
    answer: Answer = field(default_factory=Answer)
    result: Any = None
    headers: dict[str, str] = field(default_factory=dict)


CREATED, FOUND = Answer(201, NEW_JOB), Answer(200, JOB)
CASES = [
    Case(
        lambda f: f.enqueue_job("send-report"),
        "POST /v1/functions/send-report/jobs",
        b'{"payload":null,"delay_secs":0}',
        CREATED,
        NEW_JOB_VALUE,
    ),
    Case(
        lambda f: f.enqueue_job("x", {"z": [1, "ü\x00"], "a": 1.5}, 60, 7),
        "POST /v1/functions/x/jobs",
        '{"payload":{"z":[1,"ü\\u0000"],"a":1.5},"delay_secs":60,"max_attempts":7}'.encode(),
        CREATED,
        NEW_JOB_VALUE,
    ),
    Case(
        lambda f: f.enqueue_job("x", (1,), delay_secs=0.5, max_attempts=1, idempotency_key="order 42/ü".replace("ü", "u")),
        "POST /v1/functions/x/jobs",
        b'{"payload":[1],"delay_secs":0.5,"max_attempts":1}',
        FOUND,
        JOB_VALUE,
        {"idempotency-key": "order 42/u"},
    ),
    Case(
        lambda f: f.enqueue_job("x", delay_secs=dt.timedelta(minutes=1)),
        "POST /v1/functions/x/jobs",
        b'{"payload":null,"delay_secs":60.0}',
        CREATED,
        NEW_JOB_VALUE,
    ),
    Case(lambda f: f.get_job(JOB_ID), f"GET /v1/functions/jobs/{JOB_ID}", answer=FOUND, result=JOB_VALUE),
    Case(lambda f: f.list_jobs(), "GET /v1/functions/jobs?limit=50", answer=Answer(data=[]), result=[]),
    Case(
        lambda f: f.list_jobs("dead", 2),
        "GET /v1/functions/jobs?status=dead&limit=2",
        answer=Answer(data=[JOB, NEW_JOB]),
        result=[JOB_VALUE, NEW_JOB_VALUE],
    ),
    Case(
        lambda f: f.list_jobs(status="pen ding&limit=1"),
        "GET /v1/functions/jobs?status=pen+ding%26limit%3D1&limit=50",
        answer=Answer(data=[]),
        result=[],
    ),
    Case(lambda f: f.list_dead(), "GET /v1/functions/jobs/dlq?limit=50", answer=Answer(data=[JOB]), result=[JOB_VALUE]),
    Case(lambda f: f.list_dead(limit=500), "GET /v1/functions/jobs/dlq?limit=500", answer=Answer(data=[]), result=[]),
    Case(
        lambda f: f.retry_job(JOB_ID),
        f"POST /v1/functions/jobs/{JOB_ID}/retry",
        answer=Answer(data=NEW_JOB),
        result=NEW_JOB_VALUE,
    ),
    Case(
        lambda f: f.requeue_dead(),
        "POST /v1/functions/jobs/dlq/requeue",
        answer=Answer(data={"requeued": 3}),
        result=Requeued(3),
    ),
    Case(
        lambda f: f.create_cron_job("nightly", "0 3 * * *", "cleanup", {"dry_run": False}),
        "POST /v1/functions/cron",
        b'{"name":"nightly","schedule":"0 3 * * *","function":"cleanup","payload":{"dry_run":false}}',
        Answer(201, CRON),
        CRON_VALUE,
    ),
    Case(
        lambda f: f.create_cron_job("n", "* * * * *", "x"),
        "POST /v1/functions/cron",
        b'{"name":"n","schedule":"* * * * *","function":"x","payload":null}',
        Answer(201, CRON),
        CRON_VALUE,
    ),
    Case(lambda f: f.list_cron_jobs(), "GET /v1/functions/cron", answer=Answer(data=[CRON]), result=[CRON_VALUE]),
    Case(lambda f: f.delete_cron_job("nightly"), "DELETE /v1/functions/cron/nightly", answer=Answer(data=None)),
    Case(lambda f: f.delete_cron_job("a b%2Fc?d#é"), "DELETE /v1/functions/cron/a%20b%252Fc%3Fd%23%C3%A9"),
    Case(lambda f: f.get_job("dlq?limit=1"), "GET /v1/functions/jobs/dlq%3Flimit%3D1", answer=FOUND, result=JOB_VALUE),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.line)
def test_an_operation_sends_this_request_and_answers_this(case: Case, face: Face, server: Server) -> None:
    server.script.append(case.answer)
    with face.open(server.url) as opened:
        assert case.call(opened.functions) == case.result
    [received] = server.received
    assert (received.line, received.body) == (case.line, case.body)
    agent = received.headers.pop("user-agent")
    assert agent.startswith("treadle-client/0.")
    content = {"content-type": "application/json"} if case.body else {}
    if received.method == "POST" or case.body:
        content["content-length"] = str(len(case.body))
    assert received.headers == {
        "host": f"127.0.0.1:{server.port}",
        "apikey": KEY,
        "accept": "application/json",
        **content,
        **case.headers,
    }


@pytest.mark.parametrize(("base", "before"), [("/", ""), ("/treadle", "/treadle"), ("/a%20b/", "/a%20b")])
def test_a_service_may_live_below_a_path(base: str, before: str, face: Face, server: Server) -> None:
    server.script.append(Answer(data=[]))
    with face.open(server.url + base) as opened:
        opened.functions.list_cron_jobs()
    assert server.received[0].target == f"{before}/v1/functions/cron"


INVOKED = [
    (lambda f: f.invoke("x"), "POST /v1/functions/x/invoke/", b"", {}),
    (
        lambda f: f.invoke("x", "/a/ü?q=1&r=a%20b#c", "put", {"a": 1}, headers={"X-Own": "1"}),
        "PUT /v1/functions/x/invoke/a/%C3%BC?q=1&r=a%20b%23c",
        b'{"a":1}',
        {"x-own": "1", "content-type": "application/json"},
    ),
    (
        lambda f: f.invoke("x", payload=b"\x00raw", headers={"content-type": "a/b", "apikey": "other"}),
        "POST /v1/functions/x/invoke/",
        b"\x00raw",
        {"content-type": "a/b"},
    ),
    (lambda f: f.invoke("x", "/a%2Fb", "GET"), "GET /v1/functions/x/invoke/a%2Fb", b"", {}),
    (
        lambda f: f.invoke("x", "/page", "GET", headers={"Accept": "text/html", "User-Agent": "mine/1"}),
        "GET /v1/functions/x/invoke/page",
        b"",
        {"accept": "text/html", "user-agent": "mine/1"},
    ),
]


@pytest.mark.parametrize(("call", "line", "body", "headers"), INVOKED, ids=[line for _, line, *_ in INVOKED])
@pytest.mark.parametrize("status", [200, 302, 404, 500, 503])
def test_a_direct_call_answers_what_the_function_answers(
    call: Callable[[Functions], Any],
    line: str,
    body: bytes,
    headers: dict[str, str],
    status: int,
    face: Face,
    server: Server,
) -> None:
    server.script.append(Answer(status, body=b"<own>", headers={"content-type": "text/html", "location": "/else"}))
    with face.open(server.url) as opened:
        answer = call(opened.functions)
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (status, b"<own>", "text/html")
    [received] = server.received
    assert (received.line, received.body, received.headers["apikey"]) == (line, body, KEY)
    assert received.headers.items() >= headers.items()
    assert (
        KEY
        not in f"{answer!r}{answer.request!r}{answer.request.headers!r}{answer.next_request and answer.next_request.headers!r}"
    )


def circle() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def deep() -> list[Any]:
    made: list[Any] = []
    for _ in range(100_000):
        made = [made]
    return made


NOT_JSON = [
    (float("nan"), "range float"),
    ([float("inf")], "range float"),
    (b"bytes", "bytes"),
    ({"at": dt.datetime(2026, 1, 1)}, "datetime"),
    ({"set": {1}}, "set"),
    ({1: "a"}, "key 1 is int"),
    ({"a": [{None: 1}]}, "key None is NoneType"),
    ({(1, 2): 1}, "keys must be"),
    ("half \ud800", "half of a character"),
    (circle(), "Circular"),
    (deep(), "nested too deeply"),
]


@pytest.mark.parametrize(("payload", "said"), NOT_JSON, ids=[said for _, said in NOT_JSON])
def test_a_payload_that_is_not_json_is_refused_and_nothing_is_sent(payload: Any, said: str, face: Face, server: Server) -> None:
    with face.open(server.url) as opened:
        with pytest.raises(ValueError, match=f"^payload is .*{said}"):
            opened.functions.enqueue_job("x", payload)
        with pytest.raises(ValueError, match=f"^payload is .*{said}"):
            opened.functions.create_cron_job("x", "* * * * *", "x", payload)
    assert server.connections == 0


NOT_SENT: list[tuple[Callable[[Functions], Any], str]] = [
    (lambda f: f.enqueue_job("x", delay_secs=float("nan")), "delay_secs is not JSON"),
    (lambda f: f.enqueue_job("x", delay_secs=dt.datetime(2026, 1, 1)), "delay_secs is not JSON"),
    (lambda f: f.enqueue_job("x", idempotency_key=""), "the idempotency key"),
    (lambda f: f.enqueue_job("x", idempotency_key="a\r\nx: y"), "the idempotency key"),
    (lambda f: f.enqueue_job("x", idempotency_key=" a"), "the idempotency key"),
    (lambda f: f.enqueue_job("x", idempotency_key="ü"), "the idempotency key"),
    (lambda f: f.enqueue_job("x", idempotency_key=7), "the idempotency key"),
    (lambda f: f.enqueue_job(""), "the function's name"),
    (lambda f: f.enqueue_job("x/invoke"), "the function's name"),
    (lambda f: f.get_job(".."), "the job's id"),
    (lambda f: f.get_job("."), "the job's id"),
    (lambda f: f.get_job("a\\b"), "the job's id"),
    (lambda f: f.get_job("\udc80"), "the job's id"),
    (lambda f: f.get_job(uuid.uuid4()), "the job's id"),
    (lambda f: f.retry_job(None), "the job's id"),
    (lambda f: f.delete_cron_job("../jobs"), "the name of the cron entry"),
    (lambda f: f.invoke("x", "a"), "the path"),
    (lambda f: f.invoke("x", "/a/../../jobs"), "the path"),
    (lambda f: f.invoke("x", "/a/%2e%2E/b"), "the path"),
    (lambda f: f.invoke("x", "/a%2F..%2Fb"), "the path"),
    (lambda f: f.invoke("x", "/\ud800"), "the path"),
    (lambda f: f.invoke("x", timeout=0), "timeout"),
    (lambda f: f.invoke("x", method="A B"), "cannot be sent"),
    (lambda f: f.invoke("x", headers={"a": "b\nc"}), "cannot be sent"),
]


@pytest.mark.parametrize(("call", "said"), NOT_SENT)
def test_what_cannot_be_sent_is_refused_and_nothing_is(
    call: Callable[[Functions], Any], said: str, face: Face, server: Server
) -> None:
    with face.open(server.url) as opened, pytest.raises(ValueError, match=said):
        call(opened.functions)
    assert server.received == []
