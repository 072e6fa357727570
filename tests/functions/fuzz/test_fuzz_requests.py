"""F14: odd paths, queries, headers and methods are refused in one line, or mean what they say; nothing is stored by mistake."""

from __future__ import annotations

import re
import uuid
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.functions.function_stores import KINDS, Place
from tests.functions.fuzz.firing_range import FiringRange
from tests.functions.fuzz.raw import request
from tests.functions.fuzz.target import CRON, ENQUEUE, JSON_TYPE, MANY, REQUEUE, Target, encoded, on, target

from treadle.core.filter import JobFilter

ID = str(uuid.UUID(int=7))
NAMES = [
    *(f"%{byte:02X}" for byte in range(256) if not chr(byte).isalnum()),
    *(f"a%{byte:02X}b" for byte in (0x00, 0x0A, 0x0D, 0x20, 0x25, 0x2F, 0x5C, 0x7F, 0x80, 0xC3, 0xED, 0xFF)), "..", ".",
    "%2e%2e", "%2E%2E%2F", "%252e", "%252F", "..%2f..%2fetc%2fpasswd", "..;", ";a=b", "a;b", "a,b", "a=b", "a&b", "a+b",
    "a:b", "%ED%A0%80", "%F0%9F%98%80", "%C3%A9", "%E2%80%AE", "%EF%BB%BF", "%00%00", "a%00", "%u0041", "%", "%4", "%zz",
    "%%%", "a" * 65, "a" * 10_000, "%61" * 3_000, "-", "a-", "-a", "a--b", "A", "a_b", "a.b", "jobs%00", "cron%0a", "JOBS",
    "cron%20", "~", "$", "!", "'", "(", ")", "*", "@", "[", "]", "{name}", "<", ">", '"', "^", "`", "|", "\\", "NUL",
    "Null", "__proto__", "%7B%7D", "%27%20OR%201=1", "%24%7Bx%7D", "%3Cscript%3E", "a%0d%0aX-Y:%20z", ID + "%00",
    ID.replace("0", "%30", 1) + "X", "%00" * 36, "%FF" * 36, "%E2%82%AC" * 36, "%ED%A0%80" * 12, "X" * 36, "%0A" * 36,
    ID[:-1] + "%0A", "x%00" * 18,
]  # fmt: skip
ROUTES = [
    ("POST", "/v1/functions/{}/jobs"),
    ("GET", "/v1/functions/jobs/{}"),
    ("POST", "/v1/functions/jobs/{}/retry"),
    ("DELETE", "/v1/functions/cron/{}"),
    ("GET", "/v1/functions/{}/invoke"),
    ("POST", "/v1/functions/{}/invoke/some/path"),
    ("GET", "/v1/functions/nowhere/invoke/{}"),
    ("GET", "/v1/{}"),
    ("GET", "/{}"),
]
PATHS = [
    "/", "//", "///", "/v1", "/v1/", "/v1/functions", "/v1/functions/", "/v1//functions/jobs", "//v1/functions/jobs",
    "/v1/functions/jobs/", "/v1/functions/jobs//", "/v1/functions//jobs", "/V1/FUNCTIONS/JOBS", "/v1/functions/jobs/dlq/",
    "/v1/functions/jobs/dlq/requeue/", "/v1/functions/cron/", "/healthz/", "/healthz%00", "/healthz%0A", "/docs/..",
    "/docs/../healthz", "/./healthz", "/%2e/healthz", "/openapi.json/", "/openapi.json%00", "/docs%2f", "/.env",
    "/favicon.ico", "/metrics/", "/" + "a/" * 5_000, "/" + "../" * 3_000, "/v1/functions/jobs;x=y",
    "/v1/functions/jobs%3Flimit=1", "/v1/functions/jobs%23", "/v1%2Ffunctions%2Fjobs", "/v1/functions/%6Aobs%0A",
]  # fmt: skip
TARGETS = [
    b"", b"healthz", b"*", b"http://", b"http://here", b"http://here/healthz", b"https://other/healthz",
    b"ftp://here/healthz", b"//here/healthz", b"/healthz#x", b"/healthz?#", b"/\xff", b"/\xc3\xa9", b"/health z",
    b"/healthz\t", b"/\x00", b"/\x7f", b"/?\xff=1", b"/healthz?\x00", b"here:80", b"?limit=1", b"/" * 20_000,
    b"/" + b"a" * 40_000, b"/?" + b"a=b&" * 20_000, b"[::1]", b"http://[::1/healthz", b"\\healthz",
]  # fmt: skip
QUERIES = [
    "limit=0", "limit=501", "limit=-1", "limit=+5", "limit=1.0", "limit=1e2", "limit=", "limit", "limit=%31%30x", "limit=٣",
    "limit=%D9%A3", "limit=0x10", "limit=1_0", "limit=%201", "limit=1%20", "limit=1%00", "limit=" + "9" * 5_000,
    "limit=1&limit=2", "limit=1&limit=1", "limit[]=1", "limit%00=1", "LIMIT=1", "lim%69t=x", "status=", "status=Dead",
    "status=done", "status=dead%00", "status=%ED%A0%80", "status=%FF", "status=dead&status=dead", "status[]=dead",
    "status=dead%2Cpending", "status=%27", "x=1", "=", "=1", "%00=1", "%FF=%FE", "offset=1", "before=" + ID, "a" * 10_000,
    "&".join(f"a{number}=1" for number in range(1_500)), "__proto__=1", "%ED%A0%80=1", "limit=5&x=%0d%0a",
]  # fmt: skip
GOOD_QUERIES = ["", "limit=1", "limit=500", "%6cimit=5", "limit=%35", "&", "&&limit=5&&", "limit=005"]
METHODS = [
    "TRACE", "CONNECT", "JOB", "FOO", "get", "Post", "GETS", "G", "PROPFIND", "MKCOL", "SUBSCRIBE", "M-SEARCH", "PURGE",
    "LINK", "QUERY", "X" * 60, "A" * 5_000, "BR/EW", "GET\x00", "G ET", "\xe9", "", "PRI", "*", "GET,POST", "__init__",
]  # fmt: skip


@on(*KINDS)
async def test_odd_names_in_the_path(place: Place) -> None:
    async with target(place) as shot_at:
        before = await shot_at.contents()
        for method, route in ROUTES:
            for name in NAMES:
                body = b"{}" if method == "POST" else None
                path = route.replace("{}", name)
                (answer,) = await shot_at.send(request(method, path, body, shot_at.keyed, JSON_TYPE), [method])
                assert 400 <= answer.status < 500, (method, path, answer)
                shot_at.documented(method, path, answer)
        assert await shot_at.contents() == before


@on("memory", "sqlite")
async def test_odd_paths_and_targets(place: Place) -> None:
    async with target(place) as shot_at:
        before = await shot_at.contents()
        for method in ("GET", "POST", "DELETE", "OPTIONS"):
            for path in PATHS:
                answer = await shot_at.ask(method, path)
                assert 400 <= answer.status < 500, (method, path, answer)
            for odd in TARGETS:
                found = await shot_at.send(request(method, odd, b"", shot_at.keyed, JSON_TYPE), [method])
                assert len(found) == 1, (method, odd, found)
        assert await shot_at.contents() == before


@on(*KINDS)
async def test_odd_queries(place: Place) -> None:
    async with target(place) as shot_at:
        assert (await shot_at.ask("POST", ENQUEUE)).status == 201
        before = await shot_at.contents()
        for query in QUERIES:
            raw = query.encode()
            for method, path in (("GET", "/v1/functions/jobs"), ("GET", "/v1/functions/jobs/dlq")):
                (answer,) = await shot_at.send(request(method, path.encode() + b"?" + raw, None, shot_at.keyed), [method])
                assert answer.status == 400 or (query == "=" and answer.status == 200), (query, answer)
        for query in GOOD_QUERIES:
            answer = await shot_at.ask("GET", f"/v1/functions/jobs?{query}")
            assert answer.status == 200 and len(answer.data) == 1, (query, answer)
        id = before["jobs"][0].id
        for method, path in (
            ("POST", ENQUEUE),
            ("POST", CRON),
            ("GET", CRON),
            ("DELETE", f"{CRON}/none"),
            ("POST", REQUEUE),
            ("GET", f"/v1/functions/jobs/{id}"),
            ("POST", f"/v1/functions/jobs/{id}/retry"),
        ):
            for query in ("delay_secs=5", "limit=1", "%00", "x=1&x=2"):
                answer = await shot_at.refused(method, f"{path}?{query}", None if method != "POST" else b"{}", status=(400,))
                assert "query" in answer.message
        for path in ("/healthz", "/readyz", "/openapi.json", "/docs", "/metrics"):
            for query in ("x=1", "%00", "%FF&" * 1_000):  # what watches a service may add what it likes
                (answer,) = await shot_at.send(request("GET", f"{path}?{query}"), ["GET"])
                assert answer.status == 200, (path, query, answer)
        assert await shot_at.contents() == before


@on("memory", "sqlite")
async def test_odd_methods(place: Place) -> None:
    async with target(place) as shot_at:
        before = await shot_at.contents()
        for path in ("/healthz", ENQUEUE, "/v1/functions/jobs", f"{CRON}/x", "/nowhere", "/v1/functions/x/invoke", "*"):
            for method in METHODS:
                for body in (None, b"{}"):
                    found = await shot_at.send(request(method, path, body, shot_at.keyed, JSON_TYPE), ["GET"])
                    assert [answer.status for answer in found] in ([400], [404], [405], [431]), (method, path, found)
                    if found[0].status == 405:
                        assert found[0].headers["allow"] and found[0].code == "method_not_allowed"
                    if re.fullmatch("[A-Z]{2,60}", method) and path.startswith("/") and method != "PRI":  # which begins HTTP/2
                        assert found[0].status in (404, 405), (method, path, found)
        assert await shot_at.contents() == before


def odd_credentials(key: str) -> list[tuple[list[tuple[str, str | bytes]], set[int]]]:
    """Headers, and with what they may be answered where the key for servers is wanted."""
    return [
        ([], {401}),
        ([("apikey", "")], {401}),
        ([("apikey", " ")], {401}),
        ([("apikey", key[:-1])], {401}),
        ([("apikey", key + "x")], {401}),
        ([("apikey", key.upper())], {401}),
        ([("apikey", key.swapcase())], {401}),
        ([("apikey", f'"{key}"')], {401}),
        ([("apikey", f"{key},{key}")], {401}),
        ([("apikey", key + "\xa0")], {401}),
        ([("apikey", f"Bearer {key}")], {401}),
        ([("apikey", "\xff\xfe\xe9")], {401}),
        ([("apikey", "ключ".encode())], {401}),
        ([("apikey", "\U0001f511".encode())], {401}),
        ([("apikey", b"\xed\xa0\x80")], {401}),
        ([("apikey", key.encode() + b"\x80")], {401}),
        ([("apikey", b"a\x00b")], {400}),
        ([("apikey", b"a\x01b")], {400, 401}),
        ([("apikey", "k" * 20_000)], {401}),
        ([("apikey", "k" * 60_000)], {431}),
        ([("apikey", key), ("apikey", key)], {400}),
        ([("apikey", key), ("ApiKey", "other")], {400}),
        ([("apikey", "other"), ("APIKEY", key)], {400}),
        ([("api-key", key)], {401}),
        ([("api_key", key)], {401}),
        ([("apikey ", key)], {400}),
        ([("x-apikey", key)], {401}),
        ([("cookie", f"apikey={key}")], {401}),
        ([("authorization", "")], {401}),
        ([("authorization", "Bearer")], {401}),
        ([("authorization", "Bearer ")], {401}),
        ([("authorization", "Bearer  ")], {401}),
        ([("authorization", f"Bearer\t{key}")], {401}),
        ([("authorization", key)], {401}),
        ([("authorization", f"Basic {key}")], {401}),
        ([("authorization", f"Token {key}")], {401}),
        ([("authorization", "Bearer a.b.c")], {401}),
        ([("authorization", "Bearer ..")], {401}),
        ([("authorization", "Bearer " + "." * 20_000)], {401}),
        ([("authorization", "Bearer \xff.\xff.\xff")], {401}),
        ([("authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4Iiwicm9sZSI6ImFkbWluIn0.")], {401}),
        ([("authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4Iiwicm9sZSI6InNlcnZpY2Vfcm9sZSJ9.AAAA")], {401}),
        ([("authorization", "Bearer W10.W10.W10")], {401}),
        ([("authorization", f"Bearer {'W1tb' * 3_000}.e30.e30")], {401}),
        ([("authorization", f"Bearer {key}"), ("authorization", f"Bearer {key}")], {400}),
        ([("apikey", key), ("authorization", "Bearer wrong")], {401}),
        ([("apikey", "wrong"), ("authorization", f"Bearer {key}")], {401}),
        ([("x-treadle-role", "service_role")], {401}),
        ([("x-forwarded-user", "admin"), ("x-treadle-user-id", "1")], {401}),
    ]


@on("memory", "sqlite")
async def test_odd_keys(place: Place) -> None:
    async with target(place) as shot_at:
        before = await shot_at.contents()
        routes = [(method, path) for method, path in ROUTES if path.startswith("/v1/functions")]
        for headers, statuses in odd_credentials(shot_at.key):
            for method, path in [*routes, ("POST", CRON), ("POST", REQUEUE), ("GET", "/v1/functions/jobs")]:
                data = request(method, path.replace("{}", "some-name"), b"" if method == "GET" else b"{}", JSON_TYPE, *headers)
                (answer,) = await shot_at.send(data, [method])
                assert answer.status in statuses, (method, path, [(name, value[:60]) for name, value in headers], answer)
                assert shot_at.key not in answer.message
        for name, value in (
            ("APIKEY", shot_at.key),
            ("apikey", f"  {shot_at.key}\t"),
            ("authorization", f"bEARER   {shot_at.key} "),
        ):
            (answer,) = await shot_at.send(request("GET", "/v1/functions/jobs", None, (name, value)), ["GET"])
            assert answer.status == 200, (name, answer)
        assert await shot_at.contents() == before


def odd_headers() -> list[tuple[list[tuple[str, str | bytes]], set[int]]]:
    """Headers beside the key and a body of two bytes, and with what an enqueue may be answered."""
    return [
        ([("content-length", "-1")], {400}),
        ([("content-length", "+2")], {400}),
        ([("content-length", "2 2")], {400}),
        ([("content-length", "0x2")], {400}),
        ([("content-length", "2.0")], {400}),
        ([("content-length", "\xb2")], {400}),
        ([("content-length", "")], {400}),
        ([("content-length", "2, 2")], {400}),
        ([("content-length", "2"), ("content-length", "3")], {400}),
        ([("content-length", "3"), ("content-length", "2")], {400}),
        ([("content-length", "9" * 30)], {400, 413}),
        ([("content-length", "2"), ("transfer-encoding", "chunked")], {400}),
        ([("transfer-encoding", "gzip, chunked")], {400, 501}),
        ([("transfer-encoding", "chunked, gzip")], {400, 501}),
        ([("transfer-encoding", "identity")], {400, 501}),
        ([("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")], {400, 501}),
        ([("transfer-encoding", "xchunked")], {400, 501}),
        ([("transfer-encoding", "chunked\x0b")], {400, 501}),
        ([("transfer-encoding", "\xff")], {400, 501}),
        ([("expect", "nonsense")], {201, 417}),
        ([("expect", "100-continue")], {201}),
        ([("host", "other")], {400}),
        ([("no colon", "x")], {400}),
        ([("", "x")], {400}),
        ([("na\x00me", "x")], {400}),
        ([("name\xff", "x")], {400}),
        ([("name", b"va\x00lue")], {400}),
        ([("name", b"va\rlue")], {400}),
        ([("name", b"va\nlue")], {400}),
        ([("name", b"one\r\n two")], {201, 400}),
        ([("name", b"x" * 60_000)], {431}),
        ([("n" * 60_000, "x")], {431}),
        ([(f"name-{number}", "x") for number in range(5_000)], {431}),
        ([(f"n{number}", "x") for number in range(1_500)], {201}),
        ([("name", b"\xff\xfe\x80")], {201}),
        ([("upgrade", "websocket"), ("connection", "upgrade")], {201}),
        ([("upgrade", "h2c"), ("connection", "upgrade, http2-settings"), ("http2-settings", "AAMAAABk")], {201}),
        ([("x-http-method-override", "DELETE"), ("x-method-override", "GET")], {201}),
        ([("te", "trailers"), ("trailer", "apikey")], {201}),
        ([("range", "bytes=0-1"), ("if-none-match", "*"), ("if-match", '"x"')], {201}),
        ([("accept", "text/html"), ("accept-encoding", "x;q=nonsense"), ("accept-charset", "\xff")], {201}),
        ([("x-forwarded-for", "\xff"), ("forwarded", "for=nonsense;;;"), ("x-forwarded-prefix", "//x")], {201}),
        ([("idempotency-key", "")], {400}),
        ([("idempotency-key", "a"), ("idempotency-key", "a")], {400}),
        ([("idempotency-key", "é".encode())], {400}),
        ([("idempotency-key", b"\xff")], {400}),
        ([("idempotency-key", b"\xed\xa0\x80")], {400}),
        ([("idempotency-key", "a\tb")], {400}),
        ([("idempotency-key", "a" * 256)], {400}),
        ([("idempotency-key", "a" * 20_000)], {400}),
    ]


@on(*KINDS)
async def test_odd_headers(place: Place) -> None:
    async with target(place) as shot_at:
        expected = len((await shot_at.contents())["jobs"])
        for headers, statuses in odd_headers():
            if not shot_at.near and not any("idempotency" in name for name, _ in headers):
                continue
            found = await shot_at.send(request("POST", ENQUEUE, b"{}", shot_at.keyed, JSON_TYPE, *headers), ["POST"])
            shown = [(name[:60], value[:60]) for name, value in headers[:3]]
            assert found and found[0].status in statuses, (shown, found)
            for answer in found[1:]:
                assert 400 <= answer.status < 500, (shown, found)
            expected += found[0].status == 201
            assert len((await shot_at.contents())["jobs"]) == expected, shown
        # a key that a store might read in its own way is kept as it is
        for key in ("a'b", 'a"b', "a\\b", "a%00b", "a{b}c", "$1", "a:b:c", "~" * 255, "a  b", "null"):
            first = await shot_at.ask("POST", ENQUEUE, b"{}", ("idempotency-key", key))
            again = await shot_at.ask("POST", ENQUEUE, b'{"payload":1}', ("idempotency-key", key))
            assert (first.status, again.status, again.data["id"]) == (201, 200, first.data["id"]), key


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_generated_paths_are_refused_or_lead_where_they_say(kind: str) -> None:
    """Any bytes, percent-encoded in any way, as the name: only a good name is stored, and that very name."""
    names = st.one_of(st.binary(max_size=40), st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")))
    with FiringRange(kind) as range_:

        async def shoot(shot_at: Target, name: bytes, all: bool) -> None:
            before = await shot_at.contents()
            path = "".join(f"%{byte:02x}" for byte in name) if all else quote(name, safe="")
            answer = await shot_at.ask("POST", f"/v1/functions/{path}/jobs", b"{}")
            good = re.fullmatch(rb"[a-z0-9]+(-[a-z0-9]+)*", name) and len(name) <= 64 and name not in (b"jobs", b"cron")
            assert (answer.status == 201) is bool(good), (name, answer)
            if good:
                assert answer.data["function"].encode() == name
                await shot_at.store.delete(JobFilter(ids=[answer.data["id"]]))
            entry = await shot_at.ask("DELETE", f"{CRON}/{path}")
            job = await shot_at.ask("GET", f"/v1/functions/jobs/{path}")
            call = await shot_at.ask("GET", f"/v1/functions/{path}/invoke")
            assert entry.status in (404, 405) and call.status in (404, 405), (name, entry, call)
            assert job.status in (404, 405) or name == b"dlq", (name, job)
            assert await shot_at.contents() == before, name

        @settings(
            max_examples=120 if kind == "memory" else 60,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(name=names, all=st.booleans())
        def check(name: bytes, all: bool) -> None:
            range_.run(shoot(range_.shot_at, name, all))

        check()


@on("memory")
async def test_a_good_request_still_works_after_all_that(place: Place) -> None:
    """The checks above would see a service that refuses everything as well; here is one that does not."""
    async with target(place) as shot_at:
        job = await shot_at.ask("POST", ENQUEUE, encoded({"payload": {"a": 1}, "delay_secs": 1, "max_attempts": 2}))
        assert job.status == 201
        assert [one.id for one in await shot_at.store.find(JobFilter(), limit=MANY)] == [job.data["id"]]
        entry = {"name": "nightly", "schedule": "0 3 * * *", "function": "clean-up"}
        assert (await shot_at.ask("POST", CRON, encoded(entry))).data["schedule"] == "0 0 3 * * *"
        assert (await shot_at.ask("POST", CRON, encoded(entry))).status == 409
        assert (await shot_at.ask("POST", REQUEUE, b"")).data == {"requeued": 0}
        assert (await shot_at.ask("POST", f"/v1/functions/jobs/{job.data['id']}/retry")).status == 409
        assert (await shot_at.ask("DELETE", f"{CRON}/nightly")).data is None
        for name in ("jobs", "invoke", "dlq", "cron", "requeue"):  # words that are parts of other paths
            assert (await shot_at.ask("POST", CRON, encoded({**entry, "name": name}))).status == 201
            assert (await shot_at.ask("DELETE", f"{CRON}/{name}")).status == 200, name
            answer = await shot_at.ask("GET", f"/v1/functions/jobs/{name}")
            assert answer.status == (200 if name == "dlq" else 404), answer
            assert name == "dlq" or answer.message == f"there is no job '{name}'"
        for name in ("jobs", "cron"):
            assert "reserved" in (await shot_at.refused("POST", f"/v1/functions/{name}/jobs", b"{}", status=(400,))).message
