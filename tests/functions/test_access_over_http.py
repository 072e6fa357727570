"""Who may call what, directly and through the API (F3, F8, F13)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from tests.functions.function_stores import Place, in_memory, on_every_store
from tests.functions.live import answer, live

from treadle.core.errors import StoreUnavailable
from treadle.functions.keys import Keys
from treadle.functions.overrides import Overrides
from treadle.functions.tokens import user_token
from treadle.testing import FaultyStore

ROUTES = [
    ("POST", "/v1/functions/any/jobs"),
    ("GET", "/v1/functions/jobs"),
    ("GET", "/v1/functions/jobs/01a22892-71d4-73c8-845d-6dbc599e801c"),
    ("GET", "/v1/functions/jobs/dlq"),
    ("POST", "/v1/functions/jobs/dlq/requeue"),
    ("POST", "/v1/functions/jobs/01a22892-71d4-73c8-845d-6dbc599e801c/retry"),
    ("GET", "/v1/functions/cron"),
    ("POST", "/v1/functions/cron"),
    ("DELETE", "/v1/functions/cron/nightly"),
]


async def token(place: Place, sub: str = "ada", role: str = "user") -> str:
    keys = Keys(place.store(), Overrides(), place.clock)
    return user_token(await keys.signing_secret(), sub, role, clock=place.clock)


@on_every_store
async def test_jobs_cron_and_dead_letters_want_the_service_role_key(place: Place) -> None:
    async with live(place, role="api") as service:
        user = {"authorization": f"Bearer {await token(place, role='admin')}"}
        for method, path in ROUTES:
            for key in ("anon", "admin"):
                assert (await service.ask(method, path, 403, key))["code"] == "forbidden"
            await service.ask(method, path, 403, None, headers=user)
            await service.ask(method, path, 403, "anon", headers=user)
            for headers in (
                {},
                {"apikey": "wrong"},
                {"apikey": service.keys["service_role"] + "x"},
                {"apikey": service.keys["service_role"][:-1]},
                {"authorization": "Bearer wrong"},
                {"authorization": f"Basic {service.keys['service_role']}"},
                {"apikey": "é".encode()},
            ):
                assert (await service.ask(method, path, 401, None, headers=headers))["code"] == "unauthorized"
        bearer = {"authorization": f"Bearer {service.keys['service_role']}"}
        assert await service.ask("GET", "/v1/functions/jobs", 200, None, headers=bearer) == []


@in_memory
async def test_health_and_the_description_want_no_key(place: Place) -> None:
    async with live(place, role="api") as service:
        for path in ("/healthz", "/readyz", "/openapi.json", "/docs", "/metrics"):
            assert (await service.http.get(path)).status_code == 200, path


@in_memory
async def test_readiness_tells_nobody_where_the_store_is(place: Place) -> None:
    store = FaultyStore(place.store())
    async with live(place, role="api", store=store) as service:
        store.fail_before("get_document", error=lambda: StoreUnavailable("the store at db.internal:5432 is gone"))
        error = await service.ask("GET", "/readyz", 503, None)
        assert error == {"code": "store_unavailable", "message": "the store does not answer; the service's log says why"}
        store.heal()
        assert await service.ask("GET", "/readyz", 200, None) == {"status": "ok"}


@in_memory
async def test_what_a_process_said_before_it_failed_is_for_operators_alone(place: Place) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "broken").mkdir()
        (Path(folder) / "broken/main.py").write_text("raise RuntimeError('no route to app:hunter2@db.internal')")
        async with live(place, role="api", folder=Path(folder)) as service:
            for key, tells in (("anon", False), ("service_role", True), ("admin", True)):
                error = await service.ask("GET", "/v1/functions/broken/invoke", 502, key)
                assert error["code"] == "bad_gateway"
                assert error["message"].startswith("Function 'broken' cannot be reached")
                assert ("hunter2" in error["message"]) is tells


@in_memory
async def test_a_worker_answers_health_and_metrics_alone(place: Place) -> None:
    async with live(place, role="worker") as service:
        for path in ("/healthz", "/readyz", "/metrics"):
            assert (await service.http.get(path)).status_code == 200, path
        for method, path in [*ROUTES, ("GET", "/openapi.json"), ("GET", "/v1/functions/any/invoke")]:
            await service.ask(method, path, 404)
        assert "TREADLE_URL" not in service.service._given_to_functions()


@in_memory
async def test_metrics_are_keyed_by_setting(place: Place) -> None:
    async with live(place, role="api", environment={"METRICS": "keyed"}) as service:
        await service.ask("GET", "/metrics", 401, None)
        await service.ask("GET", "/metrics", 403, "anon")
        for key in ("service_role", "admin"):
            assert (await service.http.get("/metrics", headers={"apikey": service.keys[key]})).status_code == 200


@on_every_store
async def test_a_rotated_key_holds_and_the_old_one_is_refused_within_a_second(place: Place) -> None:
    async with live(place, role="api") as service:
        await service.ask("GET", "/v1/functions/jobs")
        new = await Keys(place.store(), Overrides(), place.clock).rotate("service_role")
        await service.pass_time(1.1)
        await service.ask("GET", "/v1/functions/jobs", 200, None, headers={"apikey": new})
        await service.ask("GET", "/v1/functions/jobs", 401)


@in_memory
async def test_keys_of_the_environment_hold_and_are_not_made(place: Place) -> None:
    given = {
        "TREADLE_SERVICE_ROLE_KEY": "a-service-key-from-outside",
        "TREADLE_ANON_KEY": "an-anon-key-from-outside",
        "TREADLE_ADMIN_KEY": "an-admin-key-from-outside",
        "TREADLE_SIGNING_SECRET": "a-signing-secret-from-outside-of-32",
    }
    async with live(place, role="api", environment=given) as service:
        assert service.keys == {}
        await service.ask("GET", "/v1/functions/jobs", 200, None, headers={"apikey": given["TREADLE_SERVICE_ROLE_KEY"]})
        await service.ask("GET", "/v1/functions/jobs", 403, None, headers={"apikey": given["TREADLE_ANON_KEY"]})


@on_every_store
async def test_the_keys_are_made_once_and_kept_as_hashes(place: Place) -> None:
    async with live(place, role="api") as service, live(place, role="api") as again:
        assert set(service.keys) == {"service_role", "anon", "admin"} and again.keys == {}
        await again.ask("GET", "/v1/functions/jobs", 200, None, headers={"apikey": service.keys["service_role"]})
        kept = str([document.value for document in await place.store().list_documents("functions/keys", now=place.time.now())])
        assert not any(key in kept for key in service.keys.values())


@in_memory
async def test_a_direct_call_reaches_the_function_with_who_is_calling(place: Place) -> None:
    async with live(place) as service:
        function = await service.function("hello")
        function.answering = lambda call: answer(418, "x-own: 1\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n", b"teapot")
        ada = await token(place)
        forged = {
            "x-treadle-role": "service_role",
            "X-Treadle-User-Id": "eve",
            "x_treadle_role": "admin",
            "x-treadle-signature": "sha256=00",
            "x-mine": "kept",
        }
        for headers, role, user in (
            ({"apikey": service.keys["anon"]}, "anon", None),
            ({"apikey": service.keys["service_role"]}, "service_role", None),
            ({"authorization": f"Bearer {ada}"}, "user", "ada"),
            ({"apikey": service.keys["anon"], "authorization": f"Bearer {ada}"}, "user", "ada"),
            ({"authorization": f"Bearer {await token(place, 'root', 'admin')}"}, "admin", "root"),
        ):
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                response = await service.http.request(
                    method, "/v1/functions/hello/invoke/a%2Fb/c?d=1&d=%20", headers={**forged, **headers}, content=b"body"
                )
                assert (response.status_code, response.content, response.headers["x-own"]) == (418, b"teapot", "1")
                assert response.headers.get_list("set-cookie") == ["a=1", "b=2"]
                call = function.calls[-1]
                assert (call.method, call.path, call.body) == (method, "/a%2Fb/c?d=1&d=%20", b"body")
                assert call.header("x-treadle-role") == role and call.header("x-treadle-user-id") == user
                names = [name for name, _ in call.headers]
                assert call.header("x-mine") == "kept" and "x_treadle_role" not in names
                assert not {"apikey", "authorization", "x-treadle-signature"} & set(names)
        assert await service.ask("GET", "/v1/functions/jobs") == []
        await service.ask("GET", "/v1/functions/hello/invoke", 401, None)


@in_memory
async def test_a_direct_call_cannot_pass_for_a_job(place: Place) -> None:
    async with live(place) as service:
        function = await service.function("hello")
        id = "01a22892-71d4-73c8-845d-6dbc599e801c"
        for path in (f"/jobs/{id}", f"//jobs/{id}", f"/%6aobs/{id}", f"/jobs%2F{id}", f"/a/%2e%2e/jobs/{id}", f"/JOBS/{id}"):
            error = await service.ask("POST", f"/v1/functions/hello/invoke{path}", 403, json={})
            assert error["code"] == "forbidden", error
        response = await service.http.request(
            "JOB", "/v1/functions/hello/invoke/x", headers={"apikey": service.keys["service_role"]}
        )
        assert response.status_code == 405 and response.json()["error"]["code"] == "method_not_allowed"
        assert function.calls == []


@in_memory
async def test_direct_calls_that_cannot_be_made_say_why(place: Place) -> None:
    async with live(place) as service:
        assert (await service.ask("GET", "/v1/functions/ghost/invoke", 404, "anon"))["message"] == "Function 'ghost' not found"
        await service.directory.add("gone", "http://127.0.0.1:9")
        assert (await service.ask("GET", "/v1/functions/gone/invoke/", 502, "anon"))["code"] == "bad_gateway"
        await service.directory.deactivate("gone")
        await service.pass_time(1.1)
        error = await service.ask("GET", "/v1/functions/gone/invoke/x", 503, "anon")
        assert error["message"] == "Function 'gone' is inactive"


@pytest.mark.parametrize("lease", ["400", "399", "1"])
def test_a_timeout_as_long_as_the_lease_is_refused_at_the_start(lease: str) -> None:
    from tests.functions.function_stores import run

    from treadle.core.errors import InvalidArgument

    async def refused(place: Place) -> None:
        with pytest.raises(InvalidArgument, match=r"JOB_TIMEOUT_SECS.*JOB_LEASE_SECS"):
            async with live(place, environment={"JOB_LEASE_SECS": lease}):
                raise AssertionError("it started")

    run("memory", refused)
