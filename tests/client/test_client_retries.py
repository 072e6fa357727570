"""What is tried again, and what never is: nothing that may have been carried out is sent a second time."""

import datetime as dt
import email.utils
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.client.faces import Face, Functions
from tests.client.server import DROP, Action, Answer, Raw, Server, black_hole, refusal, serving
from tests.client.shapes import CRON, JOB, JOB_ID, NEW_JOB

from treadle.client import ApiError, TimedOut, Unreachable
from treadle.client.course import Course

Call = Callable[[Functions], Any]
READS: dict[str, tuple[Call, Any]] = {
    "get_job": (lambda f: f.get_job(JOB_ID), JOB),
    "list_jobs": (lambda f: f.list_jobs(), [JOB]),
    "list_dead": (lambda f: f.list_dead(), [JOB]),
    "list_cron_jobs": (lambda f: f.list_cron_jobs(), [CRON]),
    "enqueue_job with a key": (lambda f: f.enqueue_job("x", idempotency_key="k"), NEW_JOB),
}
CHANGES: dict[str, tuple[Call, Any]] = {
    "enqueue_job": (lambda f: f.enqueue_job("x", {"a": 1}), NEW_JOB),
    "retry_job": (lambda f: f.retry_job(JOB_ID), NEW_JOB),
    "requeue_dead": (lambda f: f.requeue_dead(), {"requeued": 1}),
    "create_cron_job": (lambda f: f.create_cron_job("n", "* * * * *", "x"), CRON),
    "delete_cron_job": (lambda f: f.delete_cron_job("n"), None),
    "invoke": (lambda f: f.invoke("x"), None),
    "invoke with GET": (lambda f: f.invoke("x", method="GET"), None),
}
CUT = b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"data": '
BREAKS = {
    "closed without an answer": DROP,
    "closed within the head": Raw(b"HTTP/1.1 200 OK\r\nconte"),
    "closed within the body": Raw(CUT),
    "502": refusal(502),
    "503": refusal(503),
    "504": refusal(504),
}


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were decided on; they are not made."""
    decided: list[float] = []
    decide = Course._pause

    def pause(course: Course[Any], asked: float = 0.0) -> float | None:
        wait = decide(course, asked)
        if wait is None:
            return None
        decided.append(wait)
        return 0.0

    monkeypatch.setattr(Course, "_pause", pause)
    return decided


@pytest.mark.parametrize("trouble", BREAKS)
@pytest.mark.parametrize("call", READS)
def test_what_only_reads_or_has_a_key_is_tried_again(call: str, trouble: str, face: Face, server: Server) -> None:
    run, data = READS[call]
    server.script += [BREAKS[trouble], BREAKS[trouble], BREAKS[trouble], Answer(data=data)]
    with face.open(server.url) as opened:
        assert run(opened.functions)
    assert len(server.received) == 4
    assert len({(one.line, one.body, tuple(one.headers.items())) for one in server.received}) == 1, "the same each time"


@pytest.mark.parametrize("trouble", BREAKS)
@pytest.mark.parametrize("call", CHANGES)
def test_what_changes_something_is_never_sent_twice(call: str, trouble: str, face: Face, server: Server) -> None:
    server.script.append(BREAKS[trouble])
    with face.open(server.url) as opened:
        if call.startswith("invoke") and trouble.isdigit():
            assert CHANGES[call][0](opened.functions).status_code == int(trouble), "the function's own"
        else:
            with pytest.raises((Unreachable, ApiError)) as raised:
                CHANGES[call][0](opened.functions)
            assert raised.value.sent
            if isinstance(raised.value, Unreachable):
                assert str(raised.value).endswith("; it may have been carried out all the same")
    assert (len(server.received), server.begun) == (1, 1)


def test_not_even_on_a_kept_connection_that_the_server_closes_under_it(face: Face, server: Server) -> None:
    server.script += [Answer(201, NEW_JOB), DROP]
    with face.open(server.url) as opened:
        opened.functions.enqueue_job("x", 1)
        with pytest.raises(Unreachable):
            opened.functions.enqueue_job("x", 2)
    assert [(one.body, one.connection) for one in server.received] == [
        (b'{"payload":1,"delay_secs":0}', 1),
        (b'{"payload":2,"delay_secs":0}', 1),
    ]


def test_a_kept_connection_that_was_closed_before_is_not_used(face: Face, server: Server) -> None:
    server.script += [Raw(Answer(201, NEW_JOB).encoded()), Answer(201, NEW_JOB)]
    with face.open(server.url) as opened:
        opened.functions.enqueue_job("x", 1)
        server.wait_until_left()
        opened.functions.enqueue_job("x", 2)
    assert [one.connection for one in server.received] == [1, 2]


@pytest.fixture
def awakening(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that refuses connections until a call pauses before it tries again."""
    pause = Course._pause
    with serving(listens=False) as server:

        def listen(course: Course[Any], asked: float = 0.0) -> float | None:
            if not hasattr(server, "_server"):
                server.listen()
            return pause(course, asked)

        monkeypatch.setattr(Course, "_pause", listen)
        yield server


@pytest.mark.parametrize("call", [*READS, *CHANGES])
def test_everything_is_tried_again_where_no_connection_was_made(call: str, face: Face, awakening: Server) -> None:
    run, data = (READS | CHANGES)[call]
    awakening.script.append(Answer(data=data))
    with face.open(awakening.url) as opened:
        run(opened.functions)
    assert len(awakening.received) == 1


@pytest.mark.parametrize("call", [*READS, *CHANGES])
def test_a_service_that_is_not_there_is_said_not_to_be(call: str, face: Face, pauses: list[float]) -> None:
    with serving(listens=False) as server, face.open(server.url) as opened, pytest.raises(Unreachable) as raised:
        (READS | CHANGES)[call][0](opened.functions)
    assert str(raised.value).startswith(f"no functions service can be reached at {server.url}: ")
    assert str(raised.value).endswith(" (tried 4 times); does `treadle serve` run there?")
    assert not raised.value.sent
    assert len(pauses) == 3


def test_a_place_that_lets_nobody_connect_is_tried_again_until_the_time_is_over(face: Face, pauses: list[float]) -> None:
    with black_hole() as url, face.open(url, timeout=30, connect_timeout=0.1) as opened:
        with pytest.raises(TimedOut, match=r"no connection within 0.1 s \(tried 4 times\)") as raised:
            opened.functions.enqueue_job("x")
    assert not raised.value.sent
    assert len(pauses) == 3


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_the_number_of_retries_is_set(retries: int, face: Face, server: Server, pauses: list[float]) -> None:
    server.script += [DROP] * 10
    with face.open(server.url, retries=retries) as opened, pytest.raises(Unreachable):
        opened.functions.get_job(JOB_ID)
    assert len(server.received) == retries + 1
    assert len(pauses) == retries


def test_pauses_grow_and_are_spread(face: Face, server: Server, pauses: list[float]) -> None:
    server.script += [DROP] * 100
    with face.open(server.url, retries=8, timeout=100) as opened, pytest.raises(Unreachable):
        opened.functions.get_job(JOB_ID)
    longest = [0.25, 0.5, 1, 2, 4, 4, 4, 4]
    assert all(most / 2 <= pause <= most for pause, most in zip(pauses, longest, strict=True))
    assert len({pause / most for pause, most in zip(pauses, longest, strict=True)}) == 8


def test_a_service_that_asks_to_wait_is_not_asked_sooner(face: Face, server: Server, pauses: list[float]) -> None:
    server.script += [refusal(503, retry_after="3"), refusal(503, retry_after="0"), Answer(data=JOB)]
    with face.open(server.url) as opened:
        opened.functions.get_job(JOB_ID)
    assert pauses[0] == 3
    assert 0.25 <= pauses[1] <= 0.5, "0 is less than the client's own"


def test_it_may_name_a_date_by_its_own_clock(face: Face, server: Server, pauses: list[float]) -> None:
    clock = dt.datetime(1999, 12, 31, 23, 59, 58, tzinfo=dt.UTC)
    then = email.utils.format_datetime(clock + dt.timedelta(seconds=4), usegmt=True)
    server.script.append(refusal(503, retry_after=then, date=email.utils.format_datetime(clock, usegmt=True)))
    server.script.append(Answer(data=JOB))
    with face.open(server.url) as opened:
        opened.functions.get_job(JOB_ID)
    assert pauses == [4]


@pytest.mark.parametrize("odd", ["", "soon", "-1", "1e3", "Fri, 31 Dec 1999 23:59:59 GMT", "9" * 400, "٣"])
def test_an_odd_wish_is_none(odd: str, face: Face, server: Server, pauses: list[float]) -> None:
    server.script += [refusal(503, retry_after=odd), Answer(data=JOB)]
    with face.open(server.url) as opened:
        opened.functions.get_job(JOB_ID)
    assert len(pauses) == 1
    assert pauses[0] <= 0.25


@pytest.mark.parametrize(("timeout", "asked"), [(300, 31), (5, 6)])
def test_a_service_that_asks_for_more_than_there_is_is_left_alone(
    timeout: float, asked: int, face: Face, server: Server, pauses: list[float]
) -> None:
    server.script.append(refusal(503, "store_unavailable", "later", retry_after=str(asked)))
    with face.open(server.url, timeout=timeout) as opened, pytest.raises(ApiError, match="later") as raised:
        opened.functions.get_job(JOB_ID)
    assert (raised.value.status, raised.value.retry_after) == (503, asked)
    assert (len(server.received), pauses) == (1, [])


@pytest.mark.parametrize("trouble", [DROP, refusal(503)], ids=["closed", "503"])
def test_no_pause_is_begun_that_the_call_would_not_outlast(
    trouble: Action, face: Face, server: Server, pauses: list[float]
) -> None:
    server.script += [trouble] * 3
    with face.open(server.url, timeout=0.12) as opened, pytest.raises((Unreachable, ApiError, TimedOut)):
        opened.functions.get_job(JOB_ID)
    assert pauses == []


@pytest.mark.parametrize("status", [400, 401, 404, 409, 429, 500, 501])
def test_other_errors_stand(status: int, face: Face, server: Server) -> None:
    server.script.append(refusal(status))
    with face.open(server.url) as opened, pytest.raises(ApiError):
        opened.functions.get_job(JOB_ID)
    assert len(server.received) == 1
