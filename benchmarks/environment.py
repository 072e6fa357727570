"""The environments of the peers: one each under `benchmarks/.peers`, made when first needed, from pinned requirements."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.entries import Entry

HERE = Path(__file__).parent
HOME = HERE / ".peers"


class NoEnvironment(Exception):
    """The peer cannot be installed here; the message says why."""


def interpreter(entry: Entry) -> str:
    """The Python to run the entry with: this one, or an environment of the peer's own. Raises `NoEnvironment`."""
    if not entry.requirements:
        return sys.executable
    requirements = HERE / "requirements" / f"{entry.requirements}.txt"
    python = _python(entry.python)
    stamp = hashlib.sha256(requirements.read_bytes() + python.encode()).hexdigest()
    folder = HOME / entry.requirements
    made, program = folder / "made", folder / "bin" / "python"
    if made.exists() and made.read_text() == stamp:
        return str(program)
    shutil.rmtree(folder, ignore_errors=True)
    _run(python, "-m", "venv", str(folder))
    _run(
        str(program),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "-r",
        str(requirements),
    )
    made.write_text(stamp)
    return str(program)


def _python(wanted: tuple[int, int]) -> str:
    """This Python, or a newer one that the peer's newest version needs, from the path or installed beside this one."""
    if sys.version_info >= wanted:
        return sys.executable
    beside = Path(sys.base_prefix).parent
    for minor in range(wanted[1], wanted[1] + 4):
        name = f"python{wanted[0]}.{minor}"
        for found in (shutil.which(name), *map(str, beside.glob(f"*/bin/{name}"))):
            if found and subprocess.run([found, "-c", "import venv"], capture_output=True).returncode == 0:
                return found
    return sys.executable


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise NoEnvironment(lines[-1][:200])
