"""Jobs over HTTP: what is enqueued, called, answered, retried and shown (F4 to F11)."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import uuid

import pytest
from tests.functions.function_stores import Place, in_memory, on_every_store
from tests.functions.live import PATIENCE, answer, compact, live

from treadle.testing import FaultyStore

FIELDS = {
    "id",
    "function",
    "status",
    "attempts",
    "max_attempts",
    "error",
    "payload",
    "scheduled_at",
    "started_at",
    "completed_at",
    "response_status",
}


@on_every_store
async def test_a_job_is_a_call_with_the_method_job_and_the_payload_as_compact_json(place: Place) -> None:
    async with live(place) as service:
        function = await service.function("send-report")
        stored = await service.enqueue("send-report", {"items": ["a", "b"], "order": 42, "ü": "😀"})
        assert set(stored) == FIELDS
        done = await service.until(stored["id"], "completed")
        call = function.calls[0]
        assert (call.method, call.path) == ("JOB", f"/jobs/{stored['id']}")
        assert call.body == '{"items":["a","b"],"order":42,"ü":"😀"}'.encode()
        assert call.header("content-type") == "application/json"
        assert call.header("x-treadle-role") is None and call.header("x-treadle-user-id") is None
        secret = (await service.directory.get("send-report")).secret
        message = stored["id"].encode() + b"." + call.body
        assert call.header("x-treadle-signature") == "sha256=" + hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
        assert uuid.UUID(stored["id"])
        assert (done["attempts"], done["max_attempts"], done["error"], done["response_status"]) == (1, 3, None, 200)
        assert done["payload"] == {"items": ["a", "b"], "order": 42, "ü": "😀"}


@in_memory
async def test_a_function_registered_with_post_is_called_with_it(place: Place) -> None:
    async with live(place) as service:
        function = await service.function("node", method="POST")
        await service.enqueue("node", {"a": 1})
        call = (await function.called())[0]
        assert call.method == "POST" and call.path.startswith("/jobs/") and call.body == b'{"a":1}'


@on_every_store
async def test_any_answer_completes_the_job_whatever_its_status(place: Place) -> None:
    async with live(place) as service:
        function = await service.function("moody")
        statuses = [200, 204, 304, 404, 429, 500, 503]
        said = {}

        def answering(call: object) -> bytes:
            status = said[json.loads(call.body)]  # type: ignore[attr-defined]  # the live module's Call
            if status in (204, 304):
                return f"HTTP/1.1 {status} Whatever\r\n\r\n".encode()
            return answer(status, "retry-after: 1\r\n" if status == 429 else "")

        function.answering = answering
        for number, status in enumerate(statuses):
            said[number] = status
        jobs = [await service.enqueue("moody", number) for number in range(len(statuses))]
        for job, status in zip(jobs, statuses, strict=True):
            done = await service.until(job["id"], "completed")
            assert (done["attempts"], done["error"], done["response_status"]) == (1, None, status)
        await service.pass_time(60)
        assert len(function.calls) == len(statuses)


@in_memory
async def test_a_redirect_is_an_answer_and_is_not_followed(place: Place) -> None:
    async with live(place) as service:
        function, other = await service.function("moved"), await service.function("other")
        function.answering = lambda call: answer(302, f"location: {other.url}/login\r\n")
        job = await service.enqueue("moved", {"a": 1})
        done = await service.until(job["id"], "completed")
        assert (done["attempts"], done["response_status"]) == (1, 302)
        assert [(call.method, call.path, call.body) for call in function.calls] == [("JOB", f"/jobs/{job['id']}", b'{"a":1}')]
        assert other.calls == []


@on_every_store
async def test_a_function_that_does_not_exist_is_tried_again_after_five_seconds_until_the_job_is_dead(place: Place) -> None:
    async with live(place) as service:
        job = await service.enqueue("ghost", max_attempts=2)
        assert job["status"] == "pending" and job["attempts"] == 0
        failed = await service.until(job["id"], "pending", attempts=1)
        assert failed["error"] == "Function 'ghost' not found"
        await service.pass_time(4.9)
        assert (await service.job(job["id"]))["status"] == "pending"
        await service.pass_time(0.2)
        dead = await service.until(job["id"], "dead")
        assert (dead["attempts"], dead["max_attempts"], dead["error"]) == (2, 2, "Function 'ghost' not found")
        assert dead["completed_at"] is None and dead["response_status"] is None


@in_memory
async def test_an_inactive_function_fails_the_call_and_runs_again_once_it_is_active(place: Place) -> None:
    async with live(place) as service:
        function = await service.function("paused")
        await service.directory.deactivate("paused")
        job = await service.enqueue("paused")
        failed = await service.until(job["id"], "pending", attempts=1)
        assert failed["error"] == "Function 'paused' is inactive" and function.calls == []
        await service.directory.activate("paused")
        await service.pass_time(5)
        assert (await service.until(job["id"], "completed"))["attempts"] == 2


@in_memory
async def test_a_function_deployed_after_the_enqueue_is_called(place: Place) -> None:
    async with live(place) as service:
        job = await service.enqueue("late")
        await service.until(job["id"], "pending", attempts=1)
        await service.function("late")
        await service.pass_time(5)
        done = await service.until(job["id"], "completed")
        assert done["attempts"] == 2 and done["error"] is None


@in_memory
async def test_a_runtime_that_cannot_be_reached_fails_the_call_and_says_so(place: Place) -> None:
    async with live(place) as service:
        await service.directory.add("gone", "http://127.0.0.1:9")
        job = await service.enqueue("gone")
        failed = await service.until(job["id"], "pending", attempts=1)
        assert failed["error"].startswith("Function 'gone' cannot be reached: ")


@in_memory
async def test_a_call_that_times_out_fails_and_says_so(place: Place) -> None:
    async with live(place, environment={"JOB_TIMEOUT_SECS": "0.2", "JOB_LEASE_SECS": "30"}) as service:
        function = await service.function("slow")
        never: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        function.answering = lambda call: never
        job = await service.enqueue("slow")
        failed = await service.until(job["id"], "pending", attempts=1)
        assert failed["error"].startswith("Function 'slow' timed out after 0.2 s")


@in_memory
async def test_an_answer_whose_body_never_ends_completes_the_job_within_the_timeout(place: Place) -> None:
    async with live(place, environment={"JOB_TIMEOUT_SECS": "0.5", "JOB_LEASE_SECS": "30"}) as service:
        function = await service.function("stalling")
        function.answering = lambda call: b"HTTP/1.1 503 Busy\r\ncontent-length: 100\r\n\r\nhalf"
        job = await service.enqueue("stalling")
        done = await service.until(job["id"], "completed")
        assert (done["attempts"], done["response_status"]) == (1, 503)


@in_memory
async def test_a_function_can_ask_that_some_answers_fail(place: Place) -> None:
    async with live(place) as service:
        function = await service.function("strict", fail_on=">=500")
        function.answering = lambda call: answer(503)
        job = await service.enqueue("strict")
        failed = await service.until(job["id"], "pending", attempts=1)
        assert failed["error"] == "Function 'strict' answered 503, a failure by its fail_on '>=500'"
        function.answering = lambda call: answer(404)
        await service.pass_time(5)
        done = await service.until(job["id"], "completed")
        assert (done["attempts"], done["response_status"]) == (2, 404)


@in_memory
async def test_the_job_id_is_the_same_on_every_attempt(place: Place) -> None:
    async with live(place) as service:
        function = await service.function("flaky")
        function.answering = lambda call: b"nonsense\r\n\r\n" if len(function.calls) < 3 else answer()
        job = await service.enqueue("flaky", [1])
        for attempts in (1, 2):
            await service.until(job["id"], "pending", attempts=attempts)
            await service.pass_time(5)
        await service.until(job["id"], "completed")
        assert [(call.path, call.body) for call in function.calls] == [(f"/jobs/{job['id']}", b"[1]")] * 3


@on_every_store
async def test_a_backlog_is_no_timeout(place: Place) -> None:
    """Waiting for a slot is no part of the call: the limit is on the call alone."""
    environment = {"JOB_TIMEOUT_SECS": "0.6", "JOB_LEASE_SECS": "30"}
    async with live(place, concurrency=5, environment=environment) as service:
        function = await service.function("brisk")
        loop = asyncio.get_running_loop()

        def later(call: object) -> asyncio.Future[bytes]:
            over: asyncio.Future[bytes] = loop.create_future()
            loop.call_later(0.05, over.set_result, answer())
            return over

        function.answering = later
        jobs = [await service.enqueue("brisk", number) for number in range(60)]
        for job in jobs:
            assert (await service.until(job["id"], "completed"))["attempts"] == 1
        assert len(function.calls) == 60 and function.most_at_once <= 5


@in_memory
async def test_a_function_runs_no_more_jobs_at_once_than_its_limit_and_holds_up_no_other(place: Place) -> None:
    async with live(place, concurrency=10) as service:
        narrow, wide = await service.function("narrow", concurrency=2), await service.function("wide")
        await service.pass_time(1.1)
        held: list[asyncio.Future[bytes]] = []

        def hold(call: object) -> asyncio.Future[bytes]:
            held.append(asyncio.get_running_loop().create_future())
            return held[-1]

        narrow.answering = hold
        jobs = [await service.enqueue("narrow", number) for number in range(20)]
        others = [await service.enqueue("wide", number) for number in range(20)]
        for job in others:
            await service.until(job["id"], "completed")
        assert len(held) == 2 and len(wide.calls) == 20
        for number in range(20):
            await narrow.called(number + 1)
            held[number].set_result(answer())
        for job in jobs:
            assert (await service.until(job["id"], "completed"))["attempts"] == 1
        assert narrow.most_at_once == 2


@in_memory
async def test_a_claim_whose_answer_was_lost_is_made_good_where_functions_have_limits_too(place: Place) -> None:
    store = FaultyStore(place.store())
    async with live(place, store=store) as service:
        await service.function("narrow", concurrency=1)
        await service.pass_time(1.1)
        store.fail_after("claim", times=1)  # it takes the only job, and nothing is left to ask for
        job = await service.enqueue("narrow")
        async with asyncio.timeout(PATIENCE):
            while (await service.job(job["id"]))["status"] != "completed":
                await service.pass_time(0.1)
        assert (await service.job(job["id"]))["attempts"] == 1


@in_memory
async def test_a_place_that_becomes_free_during_a_claim_is_used_at_once(place: Place) -> None:
    store = FaultyStore(place.store())
    async with live(place, store=store, concurrency=3, poll_interval=60.0) as service:
        narrow = await service.function("narrow", concurrency=1)
        await service.pass_time(1.1)
        held: list[asyncio.Future[bytes]] = []

        def hold(call: object) -> asyncio.Future[bytes]:
            held.append(asyncio.get_running_loop().create_future())
            return held[-1]

        narrow.answering = hold
        first = await service.enqueue("narrow", 1)
        await narrow.called(1)
        claims = store.calls["claim"]
        await service.enqueue("wide", delay_secs=3600)  # so that there is something to ask for
        async with asyncio.timeout(PATIENCE):
            while store.calls["claim"] == claims:
                await asyncio.sleep(0)
        gate, claims = store.hold("claim"), store.calls["claim"]
        await service.enqueue("narrow", 2)
        async with asyncio.timeout(PATIENCE):
            while store.calls["claim"] == claims:
                await asyncio.sleep(0)
        held[0].set_result(answer())
        await service.until(first["id"], "completed")
        store.heal()
        gate.set()
        await narrow.called(2)
        held[1].set_result(answer())


@on_every_store
async def test_the_defaults_of_an_enqueue_and_its_bounds(place: Place) -> None:
    async with live(place, role="api") as service:
        job = await service.ask("POST", "/v1/functions/any/jobs", 201)
        assert (job["payload"], job["max_attempts"], job["status"], job["attempts"]) == (None, 3, "pending", 0)
        assert job["function"] == "any"
        for fields in (
            {"delay_secs": 2592000},
            {"max_attempts": 100},
            {"max_attempts": 1},
            {"delay_secs": 0.5},
            {"payload": None},
        ):
            await service.ask("POST", "/v1/functions/any/jobs", 201, json=fields)
        for fields, named in (
            ({"delay_secs": -1}, "delay_secs"),
            ({"delay_secs": 2592001}, "delay_secs"),
            ({"delay_secs": "1"}, "delay_secs"),
            ({"delay_secs": True}, "delay_secs"),
            ({"max_attempts": 0}, "max_attempts"),
            ({"max_attempts": 101}, "max_attempts"),
            ({"max_attempts": 1.5}, "max_attempts"),
            ({"max_attempts": None}, "max_attempts"),
            ({"delay": 1}, "delay"),
        ):
            error = await service.ask("POST", "/v1/functions/any/jobs", 400, json=fields)
            assert error["code"] == "invalid_request" and named in error["message"], error
        for name in ("Any", "a--b", "-a", "a_b", "a" * 65, "cron"):
            assert "name" in (await service.ask("POST", f"/v1/functions/{name}/jobs", 400, json={}))["message"]
        assert len(await service.ask("GET", "/v1/functions/jobs")) == 6


@on_every_store
async def test_a_delayed_job_stays_pending_until_its_time(place: Place) -> None:
    async with live(place) as service:
        function = await service.function("later")
        job = await service.enqueue("later", delay_secs=60)
        await service.pass_time(59)
        await service.until((await service.enqueue("later"))["id"], "completed")
        assert (await service.job(job["id"]))["status"] == "pending" and len(function.calls) == 1
        await service.pass_time(1)
        assert (await service.until(job["id"], "completed"))["attempts"] == 1


@on_every_store
async def test_payloads_come_back_as_json_means_them(place: Place) -> None:
    payload = '{"z":1,"a":[1e0,123456789012345678901234567890,-0.5,"\\u0000","😀",null,true,{}],"ü":{"b":[],"a":""}}'
    async with live(place) as service:
        function = await service.function("echo")
        body = b'{"payload": %b }' % payload.encode()
        job = await service.ask(
            "POST", "/v1/functions/echo/jobs", 201, content=body, headers={"content-type": "application/json"}
        )
        await service.until(job["id"], "completed")
        assert function.calls[0].body == compact(json.loads(payload))
        assert json.dumps((await service.job(job["id"]))["payload"]) == json.dumps(json.loads(payload))


@on_every_store
async def test_an_idempotency_key_answers_the_stored_job(place: Place) -> None:
    async with live(place, role="api") as service:
        headers = {"idempotency-key": "report:2026-10"}
        first = await service.ask("POST", "/v1/functions/report/jobs", 201, json={"payload": 1}, headers=headers)
        again = await service.ask("POST", "/v1/functions/report/jobs", 200, json={"payload": 2}, headers=headers)
        assert again == first
        other = await service.ask("POST", "/v1/functions/bill/jobs", 201, json={"payload": 2}, headers=headers)
        assert other["id"] != first["id"]
        await service.ask("POST", "/v1/functions/report/jobs", 400, json={}, headers={"idempotency-key": "k" * 256})


@on_every_store
async def test_lists_are_newest_first_and_bounded(place: Place) -> None:
    async with live(place, role="api") as service:
        made = [(await service.enqueue("any", number))["id"] for number in range(53)]
        listed = await service.ask("GET", "/v1/functions/jobs")
        assert [job["id"] for job in listed] == made[:2:-1]
        assert len(await service.ask("GET", "/v1/functions/jobs?limit=1")) == 1
        assert len(await service.ask("GET", "/v1/functions/jobs?limit=500")) == 53
        assert len(await service.ask("GET", "/v1/functions/jobs?status=pending&limit=5")) == 5
        for status in ("running", "completed", "dead"):
            assert await service.ask("GET", f"/v1/functions/jobs?status={status}") == []
        for query in ("limit=0", "limit=501", "limit=abc", "limit=-1", "limit=1.0", "limit=", "limit=%D9%A1", "status=done"):
            await service.ask("GET", f"/v1/functions/jobs?{query}", 400)
        for query in ("limit=0", "limit=501", "limit=abc"):
            await service.ask("GET", f"/v1/functions/jobs/dlq?{query}", 400)
        error = await service.ask("GET", "/v1/functions/jobs?state=dead", 400)
        assert "state" in error["message"] and "status" in error["message"]


@on_every_store
async def test_jobs_of_the_library_in_the_same_store_are_not_seen(place: Place) -> None:
    from treadle import Tasks

    async with live(place) as service:
        tasks = Tasks(place.store(), clock=place.time)
        own = await tasks.enqueue("any")
        await service.ask("GET", f"/v1/functions/jobs/{own.id}", 404)
        await service.ask("POST", f"/v1/functions/jobs/{own.id}/retry", 404)
        assert await service.ask("GET", "/v1/functions/jobs") == []
        await tasks.stop()


async def _dead(service: object, count: int) -> list[str]:
    """So many dead jobs of a function that does not exist, oldest first."""
    ids = [(await service.enqueue("ghost", number, max_attempts=1))["id"] for number in range(count)]  # type: ignore[attr-defined]  # a Live
    for id in ids:
        await service.until(id, "dead")  # type: ignore[attr-defined]  # a Live
    return ids


@on_every_store
async def test_a_retry_gives_exactly_one_more_attempt(place: Place) -> None:
    async with live(place) as service:
        job = await service.enqueue("ghost", max_attempts=3)
        for attempts in (1, 2):
            await service.until(job["id"], "pending", attempts=attempts)
            await service.ask("POST", f"/v1/functions/jobs/{job['id']}/retry", 409)
            await service.pass_time(5)
        await service.until(job["id"], "dead")
        for attempts in (4, 5):
            back = await service.ask("POST", f"/v1/functions/jobs/{job['id']}/retry")
            assert back["id"] == job["id"] and back["attempts"] >= attempts - 1
            dead = await service.until(job["id"], "dead", attempts=attempts)
            assert (dead["attempts"], dead["max_attempts"]) == (attempts, 3)
        await service.function("ghost")
        await service.pass_time(2)
        await service.ask("POST", f"/v1/functions/jobs/{job['id']}/retry")
        assert (await service.until(job["id"], "completed"))["attempts"] == 6
        await service.ask("POST", f"/v1/functions/jobs/{job['id']}/retry", 409)
        await service.ask("POST", f"/v1/functions/jobs/{uuid.uuid4()}/retry", 404)
        await service.ask("POST", "/v1/functions/jobs/nonsense/retry", 404)


@on_every_store
async def test_dead_letters_are_listed_and_requeued(place: Place) -> None:
    async with live(place) as service:
        ids = await _dead(service, 3)
        listed = await service.ask("GET", "/v1/functions/jobs/dlq")
        assert [job["id"] for job in listed] == ids[::-1] and {job["status"] for job in listed} == {"dead"}
        assert [job["id"] for job in await service.ask("GET", "/v1/functions/jobs/dlq?limit=1")] == ids[-1:]
        response = await service.http.post("/v1/functions/jobs/dlq/requeue", headers={"apikey": service.keys["service_role"]})
        assert response.text == '{"data":{"requeued":3},"meta":null}'
        for id in ids:
            await service.until(id, "dead", attempts=2)


@pytest.mark.slow
@on_every_store
async def test_at_most_a_thousand_are_requeued_at_once_the_oldest_first(place: Place) -> None:
    from treadle.core.job import NewJob
    from treadle.core.outcome import Dead
    from treadle.core.policies.limits import FUNCTIONS_QUEUE
    from treadle.core.store import Claim, Demand, Ending
    from treadle.engine.ids import new_ids

    async with live(place, role="api") as service:
        store, now = place.store(), place.time.now()
        ids = new_ids(place.clock.unix_ms(), 1500)
        await store.enqueue([NewJob(id, "function:ghost", queue=FUNCTIONS_QUEUE, max_attempts=1) for id in ids], now=now)
        claimed = await store.claim("t", [Demand(1500, (FUNCTIONS_QUEUE,))], worker="w", lease=60, now=now)
        await store.finish([Ending(Claim(job.id, "t"), Dead("broken")) for job in claimed.jobs], now=now)
        assert await service.ask("POST", "/v1/functions/jobs/dlq/requeue") == {"requeued": 1000}
        left = await service.ask("GET", "/v1/functions/jobs/dlq?limit=500")
        assert [job["id"] for job in left] == ids[:999:-1]
        assert await service.ask("POST", "/v1/functions/jobs/dlq/requeue") == {"requeued": 500}
        assert await service.ask("POST", "/v1/functions/jobs/dlq/requeue") == {"requeued": 0}
        assert len(await service.ask("GET", "/v1/functions/jobs?limit=500&status=pending")) == 500
