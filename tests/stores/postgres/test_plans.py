"""Every statement goes through an index, at a million rows and at a claim of a thousand, however its plan was made (S8)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from tests.servers.postgres import own_server, shared_server

from treadle.core.filter import JobFilter
from treadle.core.job import State
from treadle.stores.postgres.migrating import migrate
from treadle.stores.postgres.selection import parameters
from treadle.stores.postgres.session import OWN_SERVER
from treadle.stores.postgres.settings import settings
from treadle.stores.postgres.statements import statements

SQL = statements("treadle")
INDEXES = ("jobs_pending", "jobs_lease", "jobs_key", "jobs_listed", "jobs_finished")
KNOWN = [f"known-{number}" for number in range(5)]

# In this order: due jobs of unknown names, future jobs of higher priority of known names, due jobs of known names, done jobs
# (a fifth of them with a key, all of them older), dead ones, and running ones.
FILL = """
insert into treadle.jobs (id, queue, name, payload, state, priority, run_at, created_at, started_at, finished_at, lease_until,
    attempts, key_kind, key, token, worker)
select
    lpad(to_hex(i), 36, '0'), 'default',
    case when i <= 0.25 * n then 'unknown-' || mod(i, 500) else 'known-' || mod(i, 5) end,
    '{"i":' || i || '}', s,
    case when s = 'pending' and i > 0.25 * n and i <= 0.45 * n then 5 else 0 end,
    timestamptz '2026-01-01' + (i || ' ms')::interval
        + case when s = 'pending' and i > 0.25 * n and i <= 0.45 * n then interval '1 year' else interval '0' end,
    timestamptz '2026-01-01', case when s = 'pending' then null else timestamptz '2026-01-02' end,
    case when s in ('done', 'dead') then timestamptz '2026-01-02' + (i || ' ms')::interval end,
    case when s = 'running' then timestamptz '2026-01-02' + (i || ' ms')::interval end,
    1, case when s = 'done' and mod(i, 5) = 0 then 'idempotency' end, case when s = 'done' and mod(i, 5) = 0 then i::text end,
    't' || mod(i, 10), 'w'
from (
    select i, n, case
        when i <= 0.5 * n then 'pending' when i <= 0.95 * n then 'done' when i <= 0.998 * n then 'dead' else 'running'
    end as s
    from (select generate_series(1, %(n)s) as i, %(n)s as n) g
) g
"""
NOW = "2026-02-01 00:00:00+00"


class Plans:
    """Runs the store's statements as it does, prepared and planned once, and looks at their plans."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute(OWN_SERVER, prepare=False)
        for name in SQL:
            if name not in ("columns", "far_future", "heads", "matches", "picked", "places", "schedule_columns", "taking"):
                self.connection.execute(f"prepare s_{name} as {SQL[name]}".encode(), prepare=False)

    def close(self) -> None:
        self.connection.close()

    def run(self, name: str, *values: object) -> list[dict[str, Any]]:
        """The plan of one execution, node by node; what it changed is undone."""
        call = sql.SQL("explain (analyze, buffers, format json) execute {}({})").format(
            sql.Identifier(f"s_{name}"), sql.SQL(", ").join(sql.Literal(value) for value in values)
        )
        with self.connection.transaction(force_rollback=True):
            row = self.connection.execute(
                call
                if values
                else sql.SQL("explain (analyze, buffers, format json) execute {}").format(sql.Identifier(f"s_{name}"))
            ).fetchone()
        assert row is not None
        plan = row[0] if isinstance(row[0], list) else json.loads(row[0])
        return list(_nodes(plan[0]["Plan"]))

    def blocks(self, name: str, *values: object) -> int:
        """How many pages the statement looked at; fails if it scanned a table."""
        nodes = self.run(name, *values)
        scans = [node for node in nodes if node["Node Type"] == "Seq Scan"]
        assert not scans, f"{name} scans {scans[0]['Relation Name']}"
        return int(nodes[0]["Shared Hit Blocks"]) + int(nodes[0]["Shared Read Blocks"])


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", []):
        yield from _nodes(below)


def _filter(**options: Any) -> list[object]:
    return parameters(JobFilter(**options), None)


def _claim(limit: int, names: list[str] | None = KNOWN, queues: list[str] | None = None) -> list[object]:
    most = None if names is None else [5] * len(names)
    return [NOW, queues, names, "token", "worker", 60.0, limit, most, 5]


def _check(plans: Plans, n: int) -> None:
    """Pages bounded by what is asked for, never by what there is; a job costs 30 at most, and a look-up a few."""
    report = {}

    def bounded(most: int, name: str, *values: object, label: str = "") -> None:
        report[label or name] = used = plans.blocks(name, *values)
        assert used <= most, f"{label or name} looked at {used} pages, more than {most}"

    ids = [
        f"{number:036x}"
        for number in range(round(0.9985 * n), round(0.9985 * n) + 1000 if n >= 1_000_000 else round(0.9985 * n) + 100)
    ]
    tokens = [f"t{int(one, 16) % 10}" for one in ids]
    old, done = 3600.0 * 24 * 29, frozenset({State.DONE})
    bounded(400, "claim", *_claim(1), label="claim 1")
    bounded(40_000, "claim", *_claim(1000), label="claim 1000")
    bounded(40_000, "claim", *_claim(1000, KNOWN, ["default"]), label="claim 1000 of a queue")
    bounded(400, "claim", *_claim(10, ["nobody"]), label="claim where nothing waits")
    bounded(400, "next_in", NOW, None, KNOWN)
    floors = [["default"] * 5, KNOWN, [0] * 5, ["2026-01-01 00:00:00+00"] * 5]
    bounded(40_000, "claim_on", *_claim(1000), *floors, label="claim 1000 from floors")
    bounded(20_000, "claim", *_claim(10, None), label="claim 10 of any name")  # a skip scan over 505 names
    bounded(30 * len(ids), "finish_done", NOW, ids, tokens)
    outcome = ["pending", 5.0, "E: no", 0, 0, None]
    texts = json.dumps({f"{one} {token}": outcome for one, token in zip(ids, tokens, strict=True)})
    bounded(50 * len(ids), "finish", NOW, ids, texts)
    bounded(30 * len(ids), "renew", NOW, ids, tokens, 60.0)
    bounded(2000, "expired", NOW, 100)
    bounded(20_000, "held", ["t1"])
    bounded(2000, "get", ids[:100])
    bounded(2000, "ended", ids[:100], tokens[:100])
    bounded(2000, "reclaimed", ids[:100], tokens[:100])
    for state in State:
        label = f"find {state}"
        bounded(
            60_000 if state is State.PENDING else 30_000, "find", *_filter(states=frozenset({state})), 50, None, label=label
        )
        named = _filter(states=frozenset({state}), names=frozenset(KNOWN[:1]))
        bounded(20_000 if state is State.RUNNING else 2500, "find", *named, 50, None, label=f"{label} of a name")
    bounded(20_000, "find", *_filter(names=frozenset(KNOWN[:1])), 50, None, label="find of a name")
    bounded(2500, "find", *_filter(states=done, names=frozenset(KNOWN[:1])), 50, "0" * 30 + "090000", label="a later page")
    bounded(1000, "find", *_filter(ids=ids[:10]), 50, None, label="find by ids")
    bounded(90_000, "delete", *_filter(states=done, older_than=old), 1000, None, label="prune 1000")
    bounded(90_000, "delete", *_filter(states=done, older_than=old, keyed=False), 1000, None, label="prune 1000 without keys")
    named = _filter(states=done, older_than=old, names=frozenset(KNOWN[:1]))
    bounded(90_000, "delete", *named, 1000, None, label="prune 1000 of a name")
    bounded(200, "delete", *_filter(states=done, older_than=old * 100), 1000, None, label="prune where nothing is old")
    bounded(100_000, "redrive", *_filter(states=frozenset({State.DEAD})), 1000, None, True, label="redrive 1000")
    bounded(200_000, "run_now", *_filter(states=frozenset({State.PENDING}), names=frozenset(KNOWN)), 1000, None)
    bounded(20_000, "pending_names", None)
    bounded(200, "due", NOW, ["default", "nothing"])
    report["tally"] = plans.blocks("tally")
    print(report)


@pytest.mark.slow
def test_plans_hold_when_a_table_that_was_empty_fills_up() -> None:
    """The plans are made on empty tables, and kept as a connection keeps them; no statistics are gathered in between."""
    with own_server(fsync="off", autovacuum="off") as server:
        migrate(settings(server.url, {}))
        plans = Plans(server.url)
        for name, values in _once():
            plans.run(name, *values)
        n = 100_000
        with server.connect() as connection:
            connection.execute(FILL, {"n": n})
        _check(plans, n)
        plans.close()


@pytest.mark.slow
def test_plans_hold_at_a_million_rows() -> None:
    with own_server(fsync="off", autovacuum="off", max_wal_size="4GB", maintenance_work_mem="512MB") as server:
        migrate(settings(server.url, {}))
        with server.connect() as connection:
            made = dict(
                connection.execute("select indexname, indexdef from pg_indexes where schemaname = 'treadle'").fetchall()
            )
            for name in INDEXES:
                connection.execute(f"drop index treadle.{name}".encode())
            connection.execute(FILL, {"n": 1_000_000})
            for name in INDEXES:
                connection.execute(made[name].encode())
            connection.execute("vacuum analyze treadle.jobs")
        plans = Plans(server.url)
        _check(plans, 1_000_000)
        plans.close()


def test_a_prune_by_name_reads_few_of_many_old_jobs_of_others() -> None:
    server = shared_server()
    name = server.fresh_database()
    migrate(settings(server.url_of(name), {}))
    with server.connect(name) as connection:
        connection.execute(FILL, {"n": 120_000})  # 54,000 done ones of five names
        connection.execute("update treadle.jobs set name = 'rare' where id > lpad(to_hex(113990), 36, '0') and state = 'done'")
    plans = Plans(server.url_of(name))
    rare = _filter(states=frozenset({State.DONE}), older_than=1.0, names=frozenset({"rare"}))
    scans = [node for node in plans.run("delete", *rare, 500, None) if node.get("Relation Name") == "jobs"]
    plans.close()
    server.drop_database(name)
    looked = sum((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"] for node in scans)
    assert looked < 30_000, f"a prune of 10 jobs looked at {looked}"


def test_a_tally_reads_two_indexes_once_and_of_the_table_only_running_jobs() -> None:
    """No payload, and nothing twice (F15)."""
    server = shared_server()
    name = server.fresh_database()
    migrate(settings(server.url_of(name), {}))
    with server.connect(name) as connection:
        connection.execute(FILL, {"n": 5000})
        connection.execute("vacuum analyze treadle.jobs")
    plans = Plans(server.url_of(name))
    scans = [node for node in plans.run("tally") if "Scan" in node["Node Type"]]
    plans.close()
    server.drop_database(name)
    found = {node["Index Name"]: node for node in scans}
    assert len(scans) == len(found) == 3
    for index in ("jobs_pending", "jobs_listed"):
        assert found[index]["Node Type"] == "Index Only Scan"
        assert (found[index]["Heap Fetches"], found[index]["Actual Loops"]) == (0, 1)
    assert (found["jobs_lease"]["Actual Rows"], found["jobs_lease"]["Actual Loops"]) == (10, 1)


def _once() -> Iterator[tuple[str, list[object]]]:
    """Each statement once, so that its plan is made."""
    yield "claim", _claim(1)
    yield "next_in", [NOW, None, KNOWN]
    yield "claim_on", [*_claim(1), ["default"], KNOWN[:1], [0], [NOW]]
    yield "finish_done", [NOW, ["a"], ["b"]]
    yield "finish", [NOW, ["a"], "{}"]
    yield "renew", [NOW, ["a"], ["b"], 60.0]
    yield "expired", [NOW, 1]
    yield "held", [["a"]]
    yield "get", [["a"]]
    yield "ended", [["a"], ["b"]]
    yield "reclaimed", [["a"], ["b"]]
    for name in ("find", "delete", "run_now"):
        yield name, [*_filter(), 1, None]
    yield "redrive", [*_filter(), 1, None, True]
    yield "count", _filter()
    yield "pending_names", [None]
    yield "tally", []
    yield "due", [NOW, ["default"]]
