"""Cron entries over HTTP: their form, their firings, their end (F12)."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.functions.function_stores import Place, in_memory, on_every_store
from tests.functions.live import Live, live

CRON = "/v1/functions/cron"


async def create(
    service: Live, name: str, schedule: str, function: str = "cleanup", status: int = 201, **fields: object
) -> dict:
    return await service.ask("POST", CRON, status, json={"name": name, "schedule": schedule, "function": function, **fields})


@on_every_store
async def test_five_fields_are_stored_with_a_nought_in_front_and_six_as_they_are(place: Place) -> None:
    async with live(place, role="api") as service:
        made = await create(service, "five", "*/1 * * * *", payload={"dry_run": False})
        assert made == {
            "name": "five",
            "schedule": "0 */1 * * * *",
            "function": "cleanup",
            "payload": {"dry_run": False},
            "last_run": None,
            "next_run": None,
        }
        assert (await create(service, "six", "*/10 * * * * *"))["schedule"] == "*/10 * * * * *"
        assert [entry["name"] for entry in await service.ask("GET", CRON)] == ["five", "six"]
        assert (await service.ask("GET", CRON))[1]["payload"] is None


@on_every_store
async def test_what_is_refused(place: Place) -> None:
    async with live(place, role="api") as service:
        error = await create(service, "alias", "@daily", status=400)
        assert "five fields" in error["message"] and "six" in error["message"]
        for schedule in ("* * * *", "60 * * * *", "0 0 30 2 *", "*/0 * * * *", "0 0 0 0 0 0 0", ""):
            await create(service, "bad", schedule, status=400)
        for name in ("", "a/b", " a", "a" * 101, "é"):
            await create(service, name, "* * * * *", status=400)
        await create(service, "bad", "* * * * *", function="Bad", status=400)
        await create(service, "bad", "* * * * *", status=400, tz="Europe/Berlin")
        assert await service.ask("GET", CRON) == []
        await create(service, "used", "* * * * *")
        assert (await create(service, "used", "0 0 * * *", status=409))["code"] == "conflict"
        assert (await service.ask("DELETE", f"{CRON}/unknown", 404))["code"] == "not_found"
        assert (await service.ask("GET", CRON))[0]["schedule"] == "0 * * * * *"


@on_every_store
async def test_a_firing_enqueues_a_job_and_then_the_runs_are_shown(place: Place) -> None:
    async with live(place) as service:
        function = await service.function("cleanup")
        start = place.time.now()
        due = (start + timedelta(minutes=1)).replace(second=0, microsecond=0)
        await create(service, "nightly", "*/1 * * * *", payload=[1])
        await service.pass_time((due - start).total_seconds() - 0.001)
        assert await service.ask("GET", "/v1/functions/jobs") == []
        await service.pass_time(0.001)
        [job] = await service.until_jobs(1)
        done = await service.until(job["id"], "completed")
        assert (done["function"], done["payload"], done["max_attempts"]) == ("cleanup", [1], 3)
        assert function.calls[0].method == "JOB" and function.calls[0].body == b"[1]"
        [entry] = await service.ask("GET", CRON)
        assert datetime.fromisoformat(entry["last_run"]) == due
        assert datetime.fromisoformat(entry["next_run"]) == due + timedelta(minutes=1)


@on_every_store
async def test_a_deleted_entry_fires_no_more_and_may_be_made_anew_with_other_times(place: Place) -> None:
    async with live(place) as service, live(place, role="api", environment=_keys(service)) as other:
        await service.function("n")
        await create(service, "n1", "*/10 * * * * *", "n")
        await service.pass_time(10)
        [job] = await service.until_jobs(1)
        await service.until(job["id"], "completed")  # one that is unfinished would keep the next firing away (T11)
        await other.ask("DELETE", f"{CRON}/n1", key=None, headers={"apikey": service.keys["service_role"]})
        await service.pass_time(30)
        await service.ask("DELETE", f"{CRON}/n1", 404)
        made = await create(service, "n1", "*/30 * * * * *", "n")
        assert made["last_run"] is None and made["next_run"] is None
        assert len(await service.ask("GET", "/v1/functions/jobs")) == 1
        await service.pass_time(30)
        assert len(await service.until_jobs(2)) == 2


@in_memory
async def test_schedules_of_the_library_in_the_same_store_are_not_seen(place: Place) -> None:
    from treadle import Tasks

    async with live(place, role="api") as service:
        tasks = Tasks(place.store(), clock=place.time)
        tasks.handle("report", lambda payload: None)
        tasks.cron("nightly", "0 3 * * *", "report")
        await tasks.run_once()
        assert await service.ask("GET", CRON) == []
        await service.ask("DELETE", f"{CRON}/nightly", 404)
        await create(service, "nightly", "0 3 * * *")
        assert len(await tasks.schedules.list()) == 2
        await tasks.stop()


def _keys(service: Live) -> dict[str, str]:
    return {f"TREADLE_{name.upper().removesuffix('_KEY')}_KEY": key for name, key in service.keys.items()}
