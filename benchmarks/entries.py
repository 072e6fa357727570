"""Who takes part: treadle, the bare loops and the peers, over which store, at which durability, with which settings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Role = Literal["treadle", "bare", "peer"]


@dataclass(frozen=True)
class Entry:
    """One subject of the run.

    `settings` are the concurrencies at which it drains; the best is used for all else. `grade` groups those whose
    commits are worth the same, and only they are compared. `requirements` names a peer's environment, `python` the
    version that its newest release needs, `drain` how many jobs it drains, and `at_least_once` says whether the crash
    of a worker loses none.
    """

    name: str
    store: str
    role: Role
    module: str
    variant: str = ""
    grade: str = ""
    settings: tuple[int, ...] = (100, 500)
    requirements: str = ""
    python: tuple[int, int] = (3, 11)
    drain: int = 50_000
    one: int = 2_000
    callers: int = 20_000
    bulk: int = 100_000
    without: frozenset[str] = frozenset()
    at_least_once: bool = True

    def jobs(self, measure: str, scale: float) -> int:
        """How many jobs a trial of that measure has."""
        match measure:
            case "one" | "callers" | "bulk":
                base = getattr(self, measure)
            case "pickup" | "pickup_here":
                base = 150
            case "punctual":
                return max(2, int(20 * scale))  # one a second
            case "firing" | "firing2":
                base = 10_000
            case _:
                base = self.drain
        return max(20, int(base * scale))


def _peer(name: str, store: str, module: str, **more: object) -> Entry:
    sizes = {"drain": 3_000, "one": 1_000, "callers": 1_984, "bulk": 20_000, "requirements": module}
    return Entry(name, store, "peer", f"peers.{module}", **{**sizes, **more})  # type: ignore[arg-type]  # a table's cells


_MANY = (100, 500, 1000)
_STORED = frozenset({"callers"})  # a bare loop has no way to share a write among callers

ENTRIES: tuple[Entry, ...] = (
    Entry("treadle", "memory", "treadle", "treadle_subject", "memory"),
    Entry("loop", "memory", "bare", "bare.memory", drain=100_000, without=_STORED),
    Entry("treadle FULL", "sqlite", "treadle", "treadle_subject", "", "FULL", settings=_MANY),
    Entry("bare FULL", "sqlite", "bare", "bare.sqlite", "FULL", "FULL", settings=_MANY, without=_STORED),
    _peer("huey", "sqlite", "huey", variant="sqlite", grade="FULL", settings=(1, 10), at_least_once=False),
    _peer(
        "persist-queue", "sqlite", "persist_queue", grade="FULL", settings=(1,), drain=1_000, one=500, callers=960,
        without=frozenset({"drain2"}),  # what one process has taken another one takes as well
    ),
    Entry("treadle NORMAL", "sqlite", "treadle", "treadle_subject", "?synchronous=NORMAL", "NORMAL", settings=_MANY),
    Entry("bare NORMAL", "sqlite", "bare", "bare.sqlite", "NORMAL", "NORMAL", settings=_MANY, without=_STORED),
    _peer("litequeue", "sqlite", "litequeue", grade="NORMAL", settings=(1,), drain=5_000, python=(3, 12)),
    Entry("treadle", "postgres", "treadle", "treadle_subject", settings=_MANY, drain=30_000, bulk=50_000),
    Entry("bare", "postgres", "bare", "bare.postgres", settings=_MANY, drain=30_000, bulk=50_000, without=_STORED),
    _peer("pgqueuer", "postgres", "pgqueuer", settings=(100, 1000), drain=10_000),
    _peer("oban", "postgres", "oban", settings=(100, 300), python=(3, 12)),
    _peer("procrastinate", "postgres", "procrastinate", settings=(10,), drain=1_000, one=500),
    _peer("chancy", "postgres", "chancy", settings=(100, 500), drain=5_000),
    _peer("absurd", "postgres", "absurd", settings=(100,), drain=1_500),
    _peer("dbos", "postgres", "dbos", settings=(100,), drain=1_000, one=300, callers=640),
    _peer("saq", "postgres", "saq", variant="postgres", settings=(10, 100), drain=1_000),
    Entry("treadle", "redis", "treadle", "treadle_subject", settings=_MANY, drain=30_000, bulk=50_000),
    Entry("bare", "redis", "bare", "bare.redis", settings=_MANY, drain=30_000, bulk=50_000, without=_STORED),
    _peer("dramatiq", "redis", "dramatiq", settings=(8, 32), drain=5_000),
    _peer("taskiq", "redis", "taskiq", settings=(10, 100), drain=5_000),
    _peer("huey", "redis", "huey", variant="redis", settings=(1, 10), drain=5_000, at_least_once=False),
    _peer("saq", "redis", "saq", variant="redis", settings=(10, 100), drain=3_000),
    _peer("bullmq", "redis", "bullmq", settings=(10, 100), drain=3_000),
    _peer("arq", "redis", "arq", settings=(10, 100), drain=2_000),
    _peer("streaq", "redis", "streaq", settings=(16, 100), drain=2_000),
    _peer("celery", "redis", "celery", settings=(2, 10), drain=2_000),
    _peer("rq", "redis", "rq", settings=(1,), drain=500, one=500, bulk=5_000),
)  # fmt: skip

MEASURES = (
    "one", "callers", "bulk", "drain", "drain2", "kilobyte", "failing", "pickup", "pickup_here",
    "punctual", "firing", "firing2", "idle", "piles",
)  # fmt: skip
_ONE_PROCESS = frozenset({"drain2", "pickup", "firing2", "idle", "piles"})


def taking_part(store: str, peers: Collection[str] | None, subjects: Collection[str] | None) -> list[Entry]:
    """The entries of a store; `peers` and `subjects` are the names wanted, None for all."""
    return [
        entry
        for entry in ENTRIES
        if entry.store == store
        and (peers is None or entry.role != "peer" or entry.name in peers)
        and (subjects is None or entry.name in subjects)
    ]


def takes(entry: Entry, measure: str) -> bool:
    """Whether the entry is measured so."""
    if measure in entry.without or (entry.store == "memory" and measure in _ONE_PROCESS):
        return False
    match measure:
        case "pickup_here":
            return entry.role != "peer"
        case "punctual" | "firing" | "firing2":
            return entry.role == "treadle"
        case "piles":
            return entry.role == "treadle" and entry.grade in {"", "FULL"}
        case _:
            return True
