"""L12: `treadle move` looks, moves, goes on, goes back, and refuses in one line."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pytest
from runs import Run, Shop
from tests.servers import postgres, valkey

from treadle import Tasks, open_store
from treadle.core.store import Demand

KINDS = ["pending", "dead", "done", "intervals", "schedules", "documents"]


def counts(found: object, *, target: bool) -> dict[str, dict[str, int]]:
    of = dict(zip(KINDS, (1, 1, 1, 0, 0, 0), strict=True))
    return {kind: {"source": number, "target": number if target else 0} for kind, number in of.items()}


def ends(shop: Shop) -> list[str]:
    return ["move", "--from", shop.url, "--to", f"sqlite:{shop.folder}/there.db"]


def test_it_moves_and_says_so(treadle: Run, stocked: Shop) -> None:
    looked = treadle(*ends(stocked), "--dry-run", "--json")
    assert looked.json["counts"] == counts(looked.json, target=False)
    assert (looked.json["dry_run"], looked.json["conflicts"], looked.json["running"]) == (True, 0, 0)
    assert not (stocked.folder / "there.db").exists()
    moved = treadle(*ends(stocked), "--json")
    assert (moved.code, moved.stderr) == (0, b"")
    assert moved.json["counts"] == counts(moved.json, target=True)
    again = treadle(*ends(stocked), "--json")
    assert (again.code, again.json["already_moved"]) == (0, True)
    assert "nothing was changed" in treadle(*ends(stocked)).out
    assert len(treadle("list", "--json", "--store", stocked.url).json) == 3, "reading goes on"
    reason = treadle("retry", "--all-dead", "--store", stocked.url).failed_in_one_line()
    assert reason.startswith("treadle: the store was moved to sqlite:") and "there.db: use that one" in reason
    assert treadle("cron", "pause", "x", "--store", stocked.url).code == 1
    elsewhere = treadle("move", "--from", stocked.url, "--to", f"sqlite:{stocked.folder}/third.db").failed_in_one_line()
    assert "was moved to sqlite:" in elsewhere and "move from there" in elsewhere


def test_bad_usage_is_told(treadle: Run, stocked: Shop) -> None:
    there = f"sqlite:{stocked.folder}/there.db"
    for arguments, told in (
        (["--from", stocked.url], "Missing option '--to'"),
        (["--from", "memory:", "--to", there], "lives and ends within one process"),
        (["--from", stocked.url, "--to", "sqlite::memory:"], "lives and ends within one process"),
        (["--from", stocked.url, "--to", "mongo:x"], "is no store that treadle knows"),
        (
            ["--from", stocked.url, "--to", f"sqlite:{stocked.folder}/../{stocked.folder.name}/jobs.db"],
            "are the same store",
        ),
        (["--from", stocked.url, "--to", there, "--wait", "soon"], "is not a duration"),
        (["--from", stocked.url, "--to", there, "--undo", "--dry-run"], "--undo goes with no other option"),
        (["--from", stocked.url, "--to", there, "--store", there], "No such option"),
    ):
        assert told in treadle("move", *arguments).refused_as_usage(), arguments
    assert "--store does not go with move" in treadle("--store", there, *ends(stocked)).refused_as_usage()
    assert not (stocked.folder / "there.db").exists()


def test_a_source_that_is_not_there_makes_no_file(treadle: Run, shop: Shop) -> None:
    missing = treadle("move", "--from", f"sqlite:{shop.folder}/no.db", "--to", f"sqlite:{shop.folder}/there.db")
    assert "there is no store at" in missing.failed_in_one_line()
    (shop.folder / "app.db").write_bytes(b"")
    empty = treadle("move", "--from", f"sqlite:{shop.folder}/app.db", "--to", f"sqlite:{shop.folder}/there.db")
    assert "holds no treadle tables, so there is nothing to move" in empty.failed_in_one_line()
    assert not (shop.folder / "no.db").exists() and not (shop.folder / "there.db").exists()
    assert (shop.folder / "app.db").stat().st_size == 0


def test_a_dry_run_makes_no_tables_anywhere(treadle: Run, stocked: Shop) -> None:
    server, other = valkey.shared(), stocked.folder / "of-another.db"
    prefix = server.fresh_prefix()
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("create table mine (x)")
    size = other.stat().st_size
    database = postgres.shared_server().fresh_database()
    for target in (f"sqlite:{other}", f"{server.url}?prefix={prefix}", postgres.shared_server().url_of(database)):
        looked = treadle("move", "--from", stocked.url, "--to", target, "--dry-run")
        assert (looked.code, looked.err) == (0, ""), target
    assert other.stat().st_size == size
    assert list(server.client.scan_iter(f"*{prefix}*")) == []
    with postgres.shared_server().connect(database) as connection:
        assert connection.execute("select to_regnamespace('treadle')").fetchone() == (None,)
    postgres.shared_server().drop_database(database)


def test_conflicts_are_listed_and_nothing_is_moved(treadle: Run, stocked: Shop) -> None:
    with closing(Tasks(f"sqlite:{stocked.folder}/there.db").sync) as tasks:
        holder = tasks.enqueue("good", 9, idempotency_key="good:1").id
    looked = treadle(*ends(stocked), "--dry-run")
    assert looked.code == 1
    assert (
        f"in the way: the idempotency key 'good:1' of job {stocked.ids['done']} (good) is held there by job {holder}"
        in looked.out
    )
    assert treadle(*ends(stocked), "--dry-run", "--json").json["conflicts"] == 1
    told = treadle(*ends(stocked)).failed_in_one_line()
    assert "holds what is in the way, and nothing was moved" in told
    assert stocked.enqueue({"name": "good", "payload": 1}), "the source is at work"


def test_running_jobs_are_named(treadle: Run, stocked: Shop) -> None:
    [busy] = stocked.enqueue({"name": "busy"})

    async def claim() -> None:
        store = open_store(stocked.url)
        await store.claim("token", [Demand(1, names={"busy": 5})], worker="web-1", lease=600.0)
        await store.close()

    asyncio.run(claim())
    assert "1 jobs run there now" in treadle(*ends(stocked), "--dry-run").out
    told = treadle(*ends(stocked), "--wait", "0").failed_in_one_line()
    assert f"busy {busy} on web-1" in told and "--wait" in told
    assert f"busy {busy} on web-1" in treadle(*ends(stocked), "--wait", "1s").failed_in_one_line()
    assert stocked.enqueue({"name": "good", "payload": 1}), "the source is at work again"


def test_a_target_that_fails_half_way_is_gone_on_with_or_given_up(
    treadle: Run, stocked: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from treadle.core.errors import StoreFull
    from treadle.stores.sqlite import SQLiteStore

    restore = SQLiteStore.restore

    async def full(self, cargo, **options):
        if cargo.jobs and cargo.jobs[0].state == "done":
            raise StoreFull("there is no room left")
        await restore(self, cargo, **options)

    monkeypatch.setattr(SQLiteStore, "restore", full)
    told = treadle(*ends(stocked)).failed_in_one_line()
    assert "there is no room left; the move is not over" in told and "--undo" in told
    with pytest.raises(AssertionError, match="moved to"):
        shop_refuses(stocked)
    undone = treadle(*ends(stocked), "--undo")
    assert undone.out.startswith("Gave the move up: sqlite:")
    assert stocked.enqueue({"name": "good", "payload": 1}), "the source is at work again"
    assert treadle("list", "--json", "--store", f"sqlite:{stocked.folder}/there.db").json == []
    assert "there is nothing to give up" in treadle(*ends(stocked), "--undo").failed_in_one_line()
    treadle(*ends(stocked))
    monkeypatch.undo()
    monkeypatch.chdir(stocked.folder)
    assert treadle(*ends(stocked), "--json").json["counts"]["pending"] == {"source": 2, "target": 2}


def shop_refuses(shop: Shop) -> None:
    from treadle import StoreMoved

    try:
        shop.enqueue({"name": "good"})
    except StoreMoved as error:
        raise AssertionError(str(error)) from None


@pytest.mark.parametrize("url", ["postgres://app:secret@127.0.0.1:1/x", "redis://:secret@127.0.0.1:1/0"])
def test_no_password_is_shown(treadle: Run, stocked: Shop, url: str) -> None:
    told = treadle("move", "--from", stocked.url, "--to", url)
    assert told.code == 1 and "secret" not in told.err + told.out
    assert stocked.enqueue({"name": "good", "payload": 1}), "a target that is not there leaves the source at work"
