"""The report of a run, as Markdown: the machine, the targets, and for each store the medians and the ratios."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from benchmarks.entries import MEASURES
from benchmarks.figures import Figures, Record
from benchmarks.targets import verdicts

TITLES = {
    "one": "one by one",
    "callers": "64 callers",
    "bulk": "in bulk",
    "drain": "drain",
    "drain2": "drain, 2 workers",
    "kilobyte": "drain, 1 KB",
    "failing": "drain, a tenth fail",
    "pickup": "pickup, other process",
    "pickup_here": "pickup, same process",
    "idle": "idle",
}
_RATES = ("one", "callers", "bulk", "drain", "drain2", "kilobyte", "failing")


def document(records: Sequence[Record]) -> str:
    """The whole report."""
    return "\n".join(_lines(records)) + "\n"


def _lines(records: Sequence[Record]) -> Iterator[str]:
    head = records[0]
    machine = head["machine"]
    scaled = "" if head["scale"] == 1 else f", with {head['scale']:g} times the usual number of jobs"
    yield "# Benchmark results"
    yield ""
    yield (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}, "
        f"{machine['file_system']}; "
        f"{machine['python']}, SQLite {machine['sqlite']}"
        + "".join(f", {record['server']}" for record in records if "server" in record)
        + f"; treadle {machine['treadle']}. Load average before the run: {machine['load_before']}."
    )
    yield ""
    yield (
        f"Medians of {head['runs']} runs{scaled}; "
        "within a run the subjects take turns. A ratio is the median of the ratios of each run. Every drain that is quoted ran "
        "each job exactly once, and ends when the store shows none left."
    )
    yield ""
    yield "## Targets"
    yield ""
    yield "| | store | target | found | wanted |"
    yield "|---|---|---|---|---|"
    for verdict in [verdict for verdict in verdicts(records) if verdict.found is not None]:
        sign = "at most" if verdict.at_most else "at least"
        unit = "" if verdict.unit == "x" else f" {verdict.unit}"
        aim = "aim: " if verdict.aim else ""
        yield (
            f"| {verdict.word} | {verdict.store} | {verdict.text} | {number(verdict.found)}{unit} "
            f"| {aim}{sign} {number(verdict.wanted)}{unit} |"
        )
    for store in dict.fromkeys(record["store"] for record in records if "measure" in record):
        yield from _store(Figures(records, store))


def _store(figures: Figures) -> Iterator[str]:
    measured = [measure for measure in MEASURES if any(record["measure"] == measure for record in figures.records)]
    rates = [measure for measure in _RATES if measure in measured]
    waits = [measure for measure in ("pickup_here", "pickup", "idle") if measure in measured]
    drains = [measure for measure in rates if measure.startswith(("drain", "kilo", "fail"))]

    def medians(field: str) -> Callable[[str, str], str]:
        return lambda subject, measure: number(figures.median(subject, measure, field))

    def multiples(treadle: str) -> Callable[[str, str], str]:
        return lambda subject, measure: number(figures.ratio(treadle, subject, measure))

    yield from ("", f"## {figures.store}")
    yield from _table("Jobs a second:", figures, rates, medians("rate"))
    title = "Pickup p50 / p99 in ms, from just before the enqueue call to the handler's start; an idle worker in % of a core:"
    yield from _table(title, figures, waits, lambda subject, measure: _wait(figures, subject, measure))
    yield from _schedules(figures)
    yield from _table("CPU time of the enqueuing or working processes, in µs a job:", figures, rates, medians("cpu_us"))
    yield from _table("Memory of a worker at its highest while it drains, in MiB:", figures, drains, medians("peak_mib"))
    if any("bytes_a_job" in record for record in figures.records):
        yield from _table("Memory of a stored job, in bytes:", figures, drains, medians("bytes_a_job"))
    for treadle in figures.named(role="treadle"):
        [grade] = {record["grade"] for record in figures.records if record["subject"] == treadle}
        others = [other for other in figures.named(grade=grade) if other != treadle]
        if others:
            yield from _table(f"{treadle} as a multiple of:", figures, rates, multiples(treadle), others)
    yield from _piles(figures)
    yield from _notes(figures)


def _table(
    title: str,
    figures: Figures,
    columns: Sequence[str],
    cell: Callable[[str, str], str],
    subjects: Sequence[str] | None = None,
) -> Iterator[str]:
    if not columns:
        return
    yield from ("", title, "")
    yield f"| | {' | '.join(TITLES[column] for column in columns)} |"
    yield "|---|" + "---|" * len(columns)
    for subject in figures.subjects if subjects is None else subjects:
        cells = [cell(subject, column) for column in columns]
        if any(text != "-" for text in cells):
            yield f"| {subject} | {' | '.join(cells)} |"


def _wait(figures: Figures, subject: str, measure: str) -> str:
    if measure == "idle":
        return number(figures.median(subject, measure, "core_percent"))
    p50, p99 = (figures.median(subject, measure, field) for field in ("p50_ms", "p99_ms"))
    return "-" if p50 is None else f"{number(p50)} / {number(p99)}"


def _schedules(figures: Figures) -> Iterator[str]:
    subjects = figures.named(role="treadle")
    if any(figures.of(subject, "punctual", "p50_ms") for subject in subjects):
        yield from (
            "",
            "One schedule due each second, nothing else to do: how late its job is stored and starts, p50 / p99 / most in ms:",
            "",
            "| | stored | started |",
            "|---|---|---|",
        )
        for subject in subjects:
            cells = (
                " / ".join(
                    number(figures.median(subject, "punctual", begin + field)) for field in ("p50_ms", "p99_ms", "max_ms")
                )
                for begin in ("", "start_")
            )
            yield f"| {subject} | {' | '.join(cells)} |"
    if any(figures.of(subject, measure) for subject in subjects for measure in ("firing", "firing2")):
        yield from (
            "",
            "Schedules due at one second, each fired once: from then until all jobs were stored, and until all had started:",
            "",
            "| | schedules | stored, s | firings/s | started, s | CPU of the workers, µs a job |",
            "|---|---|---|---|---|---|",
        )
        for subject in subjects:
            for measure, workers in (("firing", ""), ("firing2", ", 2 workers")):
                if figures.of(subject, measure):
                    cells = (
                        number(figures.median(subject, measure, field))
                        for field in ("jobs", "enqueued_s", "rate", "run_s", "cpu_us")
                    )
                    yield f"| {subject}{workers} | {' | '.join(cells)} |"


def _piles(figures: Figures) -> Iterator[str]:
    for treadle in figures.named(role="treadle"):
        if figures.of(treadle, "drain empty"):
            yield from (
                "",
                f"{treadle} over a store that holds besides:",
                "",
                "| | drain | of empty | CPU, µs a job | list 100 of a state, ms | stats, ms | idle, % of a core |",
                "|---|---|---|---|---|---|---|",
            )
            for pile in ("empty", "finished", "unknown", "future"):
                besides = "" if pile == "empty" else f"{number(figures.median(treadle, f'fill {pile}', 'jobs'))} "
                yield (
                    f"| {besides}{pile} | {number(figures.median(treadle, f'drain {pile}'))} "
                    f"| {number(figures.ratio(treadle, treadle, f'drain {pile}', of='drain empty'))} "
                    f"| {number(figures.median(treadle, f'drain {pile}', 'cpu_us'))} "
                    f"| {number(figures.median(treadle, f'look {pile}', 'list_ms'))} "
                    f"| {number(figures.median(treadle, f'look {pile}', 'stats_ms'))} "
                    f"| {number(figures.median(treadle, f'idle {pile}', 'core_percent'))} |"
                )


def _notes(figures: Figures) -> Iterator[str]:
    yield ""
    for subject in [name for name in figures.subjects if figures.info(name)]:
        info = figures.info(subject)
        durability = next((r["durability"] for r in figures.records if r["subject"] == subject and r.get("durability")), "")
        versions = ", ".join(f"{name} {version}" for name, version in info.get("versions", {}).items())
        settings = "; ".join(
            f"{setting}: {number(_at(figures, subject, setting))}"
            for setting in dict.fromkeys(
                record["setting"]
                for record in figures.records
                if record["subject"] == subject and record["measure"] == "drain" and "setting" in record
            )
        )
        yield (
            f"- **{subject}**: {versions + '; ' if versions else ''}Python {info.get('python', '-')}; "
            f"{f'synchronous={durability}; ' if durability else ''}{info.get('note', '')}; "
            f"drains by concurrency: {settings or '-'}"
        )
    void = dict.fromkeys(f"- void: {r['subject']}, {r['measure']}: {r['void']}" for r in figures.records if "void" in r)
    if void:
        yield ""
        yield from void


def _at(figures: Figures, subject: str, setting: object) -> float | None:
    rates = sorted(
        record["rate"]
        for record in figures.records
        if record["subject"] == subject
        and record["measure"] == "drain"
        and record.get("setting") == setting
        and "rate" in record
    )
    return rates[len(rates) // 2] if rates else None


def number(value: float | None) -> str:
    """A figure with as many digits as it deserves."""
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
