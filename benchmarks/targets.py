"""The targets, as ratios within one run, and whether they are met. They are told, and no test asserts them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.figures import Figures, Record


@dataclass(frozen=True)
class Verdict:
    """One target: what was found, what is wanted; an `aim` is what is hoped for beyond the target."""

    store: str
    text: str
    found: float | None
    wanted: float
    at_most: bool = False
    aim: bool = False
    unit: str = "x"

    @property
    def word(self) -> str:
        if self.found is None:
            return "not measured"
        met = self.found <= self.wanted if self.at_most else self.found >= self.wanted
        return ("reached" if met else "not reached") if self.aim else ("met" if met else "MISSED")

    @property
    def line(self) -> str:
        sign = "at most" if self.at_most else "at least"
        unit = f" {self.unit}"
        goal = f"{'aim' if self.aim else 'wanted'} {sign} {_number(self.wanted)}"
        return f"{self.word:12} {self.store:8} {self.text}: {_number(self.found)}{unit}, {goal}"


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """All targets of the stores that were measured."""
    stores = list(dict.fromkeys(record["store"] for record in records if "measure" in record))
    found: list[Verdict] = []
    for store in stores:
        found += _OF[store](Figures(records, store))
    return found


def summary(records: Sequence[Record]) -> str:
    """The verdicts as lines."""
    found = verdicts(records)
    lines = [verdict.line for verdict in found if verdict.found is not None]
    left = len(found) - len(lines)
    return "\n".join(lines + [f"{left} target(s) were not measured in this run"] * (left > 0))


def _memory(figures: Figures) -> Iterator[Verdict]:
    drain = figures.ratio("treadle", "loop", "drain")
    yield Verdict("memory", "drain, to a loop that starts a task a job", drain, 0.5)
    yield Verdict(
        "memory", "pickup in one process, p50", figures.median("treadle", "pickup_here", "p50_ms"), 1.0, True, unit="ms"
    )
    yield from _schedules(figures, "treadle")


def _sqlite(figures: Figures) -> Iterator[Verdict]:
    for grade in ("FULL", "NORMAL"):
        treadle, bare = f"treadle {grade}", f"bare {grade}"
        peer = figures.best_of(figures.named(role="peer", grade=grade), "drain")
        ratio = figures.ratio(treadle, peer, "drain") if peer else None
        yield Verdict("sqlite", f"drain at {grade}, to the fastest peer ({peer})", ratio, 5.0)
        yield Verdict(
            "sqlite", f"drain at {grade}, to a bare batched loop", figures.ratio(treadle, bare, "drain"), 0.5, aim=True
        )
    yield Verdict("sqlite", "bulk enqueue at FULL", figures.median("treadle FULL", "bulk"), 100_000, unit="jobs/s")
    here, other = (figures.median("treadle FULL", measure, "p50_ms") for measure in ("pickup_here", "pickup"))
    yield Verdict("sqlite", "pickup in one process at FULL, p50", here, 1.0, True, unit="ms")
    yield Verdict("sqlite", "pickup from another process at FULL, p50", other, 5.0, True, unit="ms")
    yield from _schedules(figures, "treadle FULL")
    yield from _piles(figures, "treadle FULL")


def _schedules(figures: Figures, treadle: str) -> Iterator[Verdict]:
    enqueued, started = (figures.median(treadle, "punctual", field) for field in ("p99_ms", "start_p99_ms"))
    yield Verdict(figures.store, "lateness of a schedule's job when it is enqueued, p99", enqueued, 50.0, True, unit="ms")
    yield Verdict(figures.store, "lateness of a schedule's job when it starts, p99", started, 50.0, True, aim=True, unit="ms")
    jobs = figures.median(treadle, "firing", "jobs")
    text = f"{jobs or 0:,.0f} schedules due at one second, until all have fired"
    yield Verdict(figures.store, text, figures.median(treadle, "firing", "enqueued_s"), 1.0, True, unit="s")


def _piles(figures: Figures, treadle: str) -> Iterator[Verdict]:
    for pile, text in (("finished", "finished jobs"), ("unknown", "due jobs of an unknown name"), ("future", "future jobs")):
        ratio = figures.ratio(treadle, treadle, f"drain {pile}", of="drain empty")
        yield Verdict(figures.store, f"drain with a million {text}, to without", ratio, 0.8)
    for pile in ("empty", "finished", "unknown", "future"):
        share = figures.median(treadle, f"idle {pile}", "core_percent")
        yield Verdict(figures.store, f"idle worker, {pile}", share, 1.0, True, unit="% of a core")


def _against(figures: Figures, measure: str, wanted: float, text: str) -> Verdict:
    peer = figures.best_of(figures.named(role="peer"), measure)
    ratio = figures.ratio("treadle", peer, measure) if peer else None
    return Verdict(figures.store, f"{text}, to the fastest peer ({peer})", ratio, wanted)


def _pickup(figures: Figures, peers: Sequence[str]) -> Verdict:
    peer = figures.best_of(peers, "pickup", "p50_ms", min)
    ratio = figures.ratio("treadle", peer, "pickup", "p50_ms") if peer else None
    return Verdict(figures.store, f"pickup p50, to the quickest peer ({peer})", ratio, 1.0, True)


def _postgres(figures: Figures) -> Iterator[Verdict]:
    yield _against(figures, "drain", 2.0, "drain")
    yield Verdict("postgres", "drain, to a bare batched loop", figures.ratio("treadle", "bare", "drain"), 0.6, aim=True)
    yield _against(figures, "callers", 5.0, "64 callers one by one")
    yield _against(figures, "bulk", 1.0, "bulk enqueue")
    yield _pickup(figures, figures.named(role="peer"))
    yield Verdict("postgres", "pickup p99", figures.median("treadle", "pickup", "p99_ms"), 20.0, True, unit="ms")
    ours, bare = (figures.ratio(name, name, "drain2", of="drain") for name in ("treadle", "bare"))
    yield Verdict("postgres", "gain by a second worker, to the bare loop's", ours and bare and ours / bare, 0.9)
    yield from _schedules(figures, "treadle")
    yield from _piles(figures, "treadle")


def _redis(figures: Figures) -> Iterator[Verdict]:
    yield _against(figures, "drain", 6.0, "drain")
    yield Verdict("redis", "drain, to a bare batched loop", figures.ratio("treadle", "bare", "drain"), 0.6, aim=True)
    yield _against(figures, "callers", 3.0, "64 callers one by one")
    yield Verdict("redis", "bulk enqueue", figures.median("treadle", "bulk"), 40_000, unit="jobs/s")
    yield _pickup(figures, figures.named(role="peer", at_least_once=True))
    yield from _schedules(figures, "treadle")
    for field, text in (("list_ms", "list of one state"), ("stats_ms", "stats")):
        slowest = [figures.median("treadle", f"look {pile}", field) for pile in ("finished", "unknown", "future")]
        worst = max((value for value in slowest if value is not None), default=None)
        yield Verdict("redis", f"{text} at a million jobs", worst, 50.0, True, unit="ms")
    yield from _piles(figures, "treadle")


_OF = {"memory": _memory, "sqlite": _sqlite, "postgres": _postgres, "redis": _redis}


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
