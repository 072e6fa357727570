"""L4, L5, S4 and scenario 122: retry, prune and migrate."""

from __future__ import annotations

import asyncio

import pytest
from runs import Run, Shop

from treadle import Job, Tasks
from treadle.testing.clock import ManualClock


def states(shop: Shop) -> dict[str, str]:
    async def work(tasks: Tasks) -> list[Job]:
        return await tasks.list()

    return {job.id: job.state.value for job in shop.run(work)}


def test_l4_retry_sends_one_dead_job_round_again(treadle: Run, stocked: Shop) -> None:
    dead = stocked.ids["dead"]
    result = treadle("retry", dead, "--store", stocked.url)
    assert (result.code, result.out, result.err) == (0, "Sent 1 job round again\n", "")
    job = treadle("show", dead, "--json", "--store", stocked.url).json
    assert (job["state"], job["attempts"]) == ("pending", 0)
    assert "only dead jobs can be retried" in treadle("retry", dead, "--store", stocked.url).failed_in_one_line()


def test_l4_unknown_or_not_dead_ids_fail_and_the_others_are_done(treadle: Run, stocked: Shop) -> None:
    result = treadle("retry", "unknown", stocked.ids["dead"], stocked.ids["done"], "--store", stocked.url)
    assert result.code == 1
    assert result.out == "Sent 1 job round again\n"
    first, second = result.err.splitlines()
    assert first == "treadle: there is no job 'unknown'"
    assert second == f"treadle: job {stocked.ids['done']} is done; only dead jobs can be retried"
    assert states(stocked)[stocked.ids["dead"]] == "pending"


def test_l4_retry_as_json(treadle: Run, stocked: Shop) -> None:
    dead = stocked.ids["dead"]
    assert treadle("retry", dead, "--json", "--store", stocked.url).json == {"revived": [dead], "dropped": [], "failed": []}
    result = treadle("retry", "unknown", "--json", "--store", stocked.url)
    assert result.json == {"revived": [], "dropped": [], "failed": [{"id": "unknown", "error": "there is no job 'unknown'"}]}
    assert result.failed_in_one_line()


def test_l4_a_dropped_twin_is_told(treadle: Run, stocked: Shop) -> None:
    (twin,) = stocked.enqueue({"name": "bad", "dedupe_key": "bad:1"})
    result = treadle("retry", stocked.ids["dead"], "--store", stocked.url)
    assert (result.code, result.err) == (0, "")
    assert result.out == (f"Dropped 1 job, since an unfinished job holds the same dedupe key:\n  {stocked.ids['dead']}\n")
    left = states(stocked)
    assert stocked.ids["dead"] not in left and left[twin] == "pending"


def test_l4_retry_all_dead_by_name(treadle: Run, shop: Shop) -> None:
    shop.enqueue(*[{"name": "bad"}] * 1200, drain=True)
    assert treadle("retry", "--all-dead", "--name", "other", "--store", shop.url).out == "Sent 0 jobs round again\n"
    assert treadle("retry", "--all-dead", "--name", "bad", "--store", shop.url).out == "Sent 1,200 jobs round again\n"
    assert treadle("retry", "--all-dead", "--store", shop.url).out == "Sent 0 jobs round again\n"
    assert set(states(shop).values()) == {"pending"}


def test_e17_a_functions_job_gets_exactly_one_more_try(treadle: Run, shop: Shop) -> None:
    from treadle import open_store
    from treadle.core.job import NewJob
    from treadle.core.outcome import Dead
    from treadle.core.store import Claim, Demand, Ending

    async def kill() -> None:
        store = open_store(shop.url)
        await store.enqueue([NewJob("f1", "call", queue="functions", max_attempts=1)])
        await store.claim("token", [Demand(1, queues=("functions",))], worker="w", lease=60.0)
        await store.finish([Ending(Claim("f1", "token"), Dead("no"))])
        await store.close()

    asyncio.run(kill())
    assert treadle("retry", "--all-dead", "--store", shop.url).out == "Sent 1 job round again\n"
    job = treadle("show", "f1", "--json", "--store", shop.url).json
    assert (job["state"], job["attempts"]) == ("pending", 1)


def aged(shop: Shop, days: float) -> list[str]:
    """A done, a dead and a pending job of that age."""

    async def work() -> list[str]:
        clock = ManualClock()
        from datetime import UTC, datetime, timedelta

        clock.advance((datetime.now(UTC) - timedelta(days=days) - clock.now()).total_seconds())
        tasks = Tasks(shop.url, clock=clock, max_attempts=1)
        tasks.handle("good", _good)
        tasks.handle("bad", _bad)
        async with tasks:
            done = await tasks.enqueue_many([{"name": "good"}, {"name": "bad"}])
            await tasks.drain()
            return [one.id for one in [*done, await tasks.enqueue("later", delay=60)]]

    return asyncio.run(work())


async def _good(payload: object) -> None:
    pass


async def _bad(payload: object) -> None:
    raise ValueError("bad")


def test_l5_prune_takes_done_and_dead_jobs_older_than_7_days(treadle: Run, shop: Shop) -> None:
    old, young = aged(shop, 7.01), aged(shop, 6.99)
    preview = treadle("prune", "--dry-run", "--store", shop.url)
    assert (preview.code, preview.out) == (0, "Would delete 2 jobs (dry run, nothing deleted)\n")
    assert len(states(shop)) == 6
    assert treadle("prune", "--store", shop.url).out == "Deleted 2 jobs\n"
    assert set(states(shop)) == {old[2], *young}


def test_l5_prune_as_json(treadle: Run, shop: Shop) -> None:
    aged(shop, 8)
    assert (
        treadle("prune", "--dry-run", "--json", "--store", shop.url).stdout
        == b'{"dry_run": true, "matched": 2, "deleted": 0}\n'
    )
    assert treadle("prune", "--json", "--store", shop.url).json == {"dry_run": False, "matched": 2, "deleted": 2}


@pytest.mark.parametrize(
    ("arguments", "matched"),
    [
        (["--older-than", "0s"], 4),
        (["--older-than", "0s", "--status", "pending"], 2),
        (["--older-than", "0s", "--status", "done"], 2),
        (["--older-than", "0s", "--status", "done", "--status", "pending"], 4),
        (["--older-than", "0s", "--status", "dead", "--name", "bad"], 2),
        (["--older-than", "0s", "--name", "good"], 2),
        (["--older-than", "0s", "--name", "unknown"], 0),
        (["--older-than", "0d", "--status", "pending", "--name", "later"], 2),
        (["--older-than", "12h"], 4),
        (["--older-than", "2160m", "--status", "pending"], 1),
        (["--older-than", "3d", "--status", "done"], 0),
        (["--older-than", "100000d"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_l5_ages_states_and_names(treadle: Run, shop: Shop, arguments: list[str], matched: int) -> None:
    aged(shop, 1), aged(shop, 2)
    preview = treadle("prune", "--dry-run", "--json", *arguments, "--store", shop.url)
    assert preview.json == {"dry_run": True, "matched": matched, "deleted": 0}
    assert treadle("prune", "--json", *arguments, "--store", shop.url).json == {
        "dry_run": False, "matched": matched, "deleted": matched,
    }  # fmt: skip


def test_l5_0s_matches_what_was_stored_this_very_moment(treadle: Run, stocked: Shop) -> None:
    assert treadle("prune", "--older-than", "0s", "--json", "--store", stocked.url).json["deleted"] == 2
    assert treadle("prune", "--older-than", "0s", "--status", "pending", "--json", "--store", stocked.url).json["deleted"] == 1


def test_scenario_122_deleting_the_next_copy_does_not_end_the_series(treadle: Run, shop: Shop) -> None:
    def tick(tasks: Tasks) -> None:
        tasks.handle("hourly-report", _good)
        tasks.every("hourly-report", 60)

    async def work() -> None:
        async with Tasks(shop.url) as tasks:
            tick(tasks)
            await tasks.run_once()

    def pending() -> int:
        arguments = ("list", "--name", "hourly-report", "--status", "pending", "--json", "--store", shop.url)
        return len(treadle(*arguments).json)

    asyncio.run(work())
    assert pending() == 1
    prune = ("prune", "--status", "pending", "--older-than", "0s", "--json", "--store", shop.url)
    assert treadle(*prune, "--dry-run").json == {"dry_run": True, "matched": 1, "deleted": 0}
    assert pending() == 1
    assert treadle(*prune).json == {"dry_run": False, "matched": 1, "deleted": 1}
    assert pending() == 0
    asyncio.run(work())
    assert pending() == 1


def test_s4_migrate_can_be_repeated_and_says_what_it_did(treadle: Run, shop: Shop) -> None:
    first = treadle("migrate", "--store", shop.url)
    again = treadle("migrate", "--store", shop.url)
    assert first.code == again.code == 0
    assert first.out.strip() and again.out.strip() and first.out != again.out
    assert shop.path.exists()
    assert treadle("migrate", "--json", "--store", shop.url).json == {"result": again.out.strip()}
