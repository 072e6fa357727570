"""The machine that figures hold for, without its name."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
from pathlib import Path
from typing import Any

import treadle


def machine(place: Path) -> dict[str, Any]:
    """What the report says of the machine; `place` is where files are written."""
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(int((_field("/proc/meminfo", "MemTotal") or "0").split()[0]) / 1048576, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "sqlite": sqlite3.sqlite_version,
        "file_system": _file_system(place),
        "treadle": treadle.__version__,
        "load_before": round(os.getloadavg()[0], 2),
    }


def short_name(described: dict[str, Any]) -> str:
    """The machine's part of a file name."""
    words = f"{described['cpu']} {described['cores']} cores"
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def _field(path: str, name: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "")


def _file_system(place: Path) -> str:
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return ""
    inside = [(len(point), kind) for point, kind in mounts if place.resolve().is_relative_to(point)]
    return max(inside, default=(0, ""))[1]
