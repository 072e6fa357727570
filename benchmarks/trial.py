"""One trial in the environment of its subject: `python -m benchmarks.trial run|worker SPEC`, SPEC being JSON."""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import json
import os
import platform
import sys
import traceback
from typing import Any

from benchmarks.measures import MEASURES
from benchmarks.processes import end_with_parent
from benchmarks.subject import Subject, Void


def made(spec: dict[str, Any]) -> Subject:
    """The subject that the spec names."""
    os.environ["BENCH_BOARD"] = os.path.join(spec["place"], "board")
    os.environ["BENCH_URL"] = spec["url"]  # for libraries whose application is made when its module is imported
    subject: Subject = importlib.import_module(f"benchmarks.{spec['module']}").SUBJECT(
        spec["place"], spec["url"], spec["variant"]
    )
    return subject


def run(spec: dict[str, Any]) -> dict[str, Any]:
    """The measured figures, or why they do not count, and what is told of the subject."""
    told: dict[str, Any] = {}
    try:
        subject = made(spec)
        told = described(subject)
        return {**asyncio.run(MEASURES[spec["what"]](subject, spec)), **told}
    except Void as reason:
        return {"void": str(reason), **told}
    except Exception as error:
        traceback.print_exc()
        return {"void": f"{type(error).__name__}: {str(error)[:200]}", **told}


def described(subject: Subject) -> dict[str, Any]:
    """What is told of the subject beside its figures."""
    return {
        "note": subject.note,
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in subject.packages},
    }


def main() -> None:
    mode, text = sys.argv[1:]
    spec = json.loads(text)
    if mode == "worker":
        end_with_parent()
        made(spec).work(spec["concurrency"])
        return
    result = json.dumps(run(spec))
    with open(os.path.join(spec["place"], "result.json"), "w") as file:
        file.write(result)


if __name__ == "__main__":
    main()
