"""An audit of a store's keys: whatever happened, every index says the same as the jobs themselves."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.servers.valkey import ValkeyServer

from treadle.core.job import Job, State
from treadle.core.policies.limits import owned_by_a_face
from treadle.stores.redis import record
from treadle.stores.redis.moment import moment


def keys_of(server: ValkeyServer, prefix: str) -> dict[str, str]:
    """All keys of the store, without the tag, and what they are."""
    tag = f"{{{prefix}}}:"
    return {key.removeprefix(tag): server.command("TYPE", key) for key in server.client.scan_iter(f"{tag}*", count=1000)}


class Audit:
    """Reads one store whole; nothing may change it meanwhile."""

    def __init__(self, server: ValkeyServer, prefix: str) -> None:
        self.server, self.prefix = server, prefix
        self.keys = keys_of(server, prefix)
        records = self.read("job") or {}
        payloads = self.read("payload") or {}
        assert records.keys() == payloads.keys(), "each job has a record and a payload"
        ids = list(records)
        self.jobs = {job.id: job for job in record.jobs((ids, [records[id] for id in ids], [payloads[id] for id in ids]))}

    def read(self, key: str):
        client, name = self.server.client, f"{{{self.prefix}}}:{key}"
        match self.keys.get(key):
            case "hash":
                return client.hgetall(name)
            case "set":
                return client.smembers(name)
            case "zset":
                return dict(client.zrange(name, 0, -1, withscores=True))
            case "list":
                return client.lrange(name, 0, -1)
            case "string":
                return client.get(name)
        return None

    def check(self) -> None:
        expected: dict[str, object] = defaultdict(set)
        pending_names: Counter[str] = Counter()
        holders: dict[str, str] = {}
        lines: dict[str, set[str]] = defaultdict(set)
        for job in self.jobs.values():
            expected[f"ids:{job.state}:{job.queue}"].add(job.id)
            expected[f"named:{job.name}"].add(job.id)
            expected["known"].add(job.queue)
            if job.state is State.RUNNING:
                expected["running"].add(job.id)
            if job.state in (State.DONE, State.DEAD):
                keyed = "keyed" if job.idempotency_key is not None else "free"
                expected[f"finished:{job.state}:{keyed}:{job.queue}"].add(job.id)
            if job.state is State.PENDING:
                pending_names[job.name] += 1
                lines[f"{len(job.queue)}:{job.queue}:{job.name}"].add(self.place(job))
                expected[f"agenda:{job.queue}"].add(job.name)
                if not owned_by_a_face(job.queue):
                    expected["queues"].add(job.queue)
            if job.key is not None and (job.key.kind == "idempotency" or job.state in (State.PENDING, State.RUNNING)):
                holders[f"{job.key.kind}:{len(job.name)}:{job.name}:{job.key.text}"] = job.id
        for key, members in expected.items():
            assert set(self.read(key) or ()) == members, f"{key} is about the jobs there are"
        assert (self.read("keys") or {}) == holders, "keys are held by whom they should be"
        assert (self.read("pending") or {}) == {name: -number for name, number in pending_names.items()}
        for kind, places in lines.items():
            ready, waiting = self.read(f"ready:{kind}") or {}, self.read(f"waiting:{kind}") or {}
            assert ready.keys() | waiting.keys() == places, f"each pending job of {kind} has its place"
            assert not ready.keys() & waiting.keys(), f"no job of {kind} is in two places"
            self.check_agenda(kind, ready, waiting)
        self.check_no_others(expected, lines)

    def place(self, job: Job) -> str:
        return f"{1000 - job.priority:04d}{moment(job.run_at)}{job.id}"

    def check_agenda(self, kind: str, ready: dict[str, float], waiting: dict[str, float]) -> None:
        length, _, rest = kind.partition(":")
        queue, name = rest[: int(length)], rest[int(length) + 1 :]
        if ready:
            best = min(ready)
            score = (int(best[:4]) - 2001) * 1e12 + int(best[4:16])
        else:
            score = min(waiting.values())
        assert (self.read(f"agenda:{queue}") or {})[name] == score, f"the agenda knows when {name} of {queue} is due"

    def check_no_others(self, expected: dict[str, object], lines: dict[str, set[str]]) -> None:
        for key in self.keys:
            group = key.partition(":")[0]
            if group in {"ids", "named", "finished", "agenda"}:
                assert key in expected, f"{key} is empty of jobs and should be gone"
            elif group in {"ready", "waiting"}:
                assert key.partition(":")[2] in lines, f"{key} is of no pending job"
            elif group == "failures":
                assert key.partition(":")[2] in self.jobs, f"{key} is of no job"
