"""`python -m benchmarks`: measure, print a summary with the targets, and write the results down."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import report, targets
from benchmarks.entries import ENTRIES, MEASURES, taking_part
from benchmarks.machine import machine, short_name
from benchmarks.processes import ROOT
from benchmarks.runner import Runner, progress, shown

STORES = ("memory", "sqlite", "postgres", "redis")
DEFAULT = ("memory", "sqlite")


def main() -> int:
    options = _options()
    places = ROOT / "data"  # not the system's temporary folder, which may be in memory, where a commit costs nothing
    places.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=places))
    described = machine(folder)
    options.out.mkdir(parents=True, exist_ok=True)
    stem = options.out / f"{time.strftime('%Y-%m-%d')}-{short_name(described)}{options.name and '-' + options.name}"
    records: list[dict[str, Any]] = [{"machine": described, "runs": options.runs, "scale": options.scale}]
    with Path(f"{stem}.jsonl").open("w") as lines:

        def write(record: dict[str, Any]) -> None:
            records.append(record)
            lines.write(json.dumps(record) + "\n")
            lines.flush()
            if "measure" in record:
                progress(shown(record))

        lines.write(json.dumps(records[0]) + "\n")
        runner = Runner(folder, runs=options.runs, scale=options.scale, what=options.what, write=write)
        try:
            for store in options.stores:
                runner.store(store, taking_part(store, options.peers, options.subjects))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    Path(f"{stem}.md").write_text(report.document(records))
    from benchmarks import plot  # here, since it takes a second to import

    plot.draw(records, Path(f"{stem}.svg"))
    print(targets.summary(records))
    print(f"\nwritten: {_relative(stem)}.jsonl, .md and .svg")
    return 0


def _relative(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def _options() -> argparse.Namespace:
    names = tuple(dict.fromkeys(entry.name for entry in ENTRIES))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--stores", type=_list(STORES), default=list(DEFAULT), help=f"of {', '.join(STORES)}; default: both")
    parser.add_argument("--peers", type=_peers, default=None, help="names, none, or all (the default)")
    parser.add_argument("--subjects", type=_list(names), default=None, help="names of who takes part, such as 'treadle FULL'")
    parser.add_argument("--what", type=_list(MEASURES), default=list(MEASURES), help=f"of {', '.join(MEASURES)}; default: all")
    parser.add_argument("--runs", type=int, default=3, help="times that each trial is repeated (default: 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual number of jobs (default: 1.0)")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results", help="folder for the results")
    parser.add_argument("--name", default="", help="a word to add to the names of the results")
    return parser.parse_args()


def _list(known: tuple[str, ...]) -> Any:
    def read(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return read


def _peers(text: str) -> list[str] | None:
    if text in {"all", "none"}:
        return None if text == "all" else []
    return list(_list(tuple({entry.name for entry in ENTRIES if entry.role == "peer"}))(text))


if __name__ == "__main__":
    sys.exit(main())
