"""Forks: parent and child go on, each over connections of its own, and the end of the one is no concern of the other (S7)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.servers import valkey

PROGRAM = [sys.executable, "-W", "ignore::DeprecationWarning", str(Path(__file__).with_name("forking.py"))]
SAID_BY_CHILD = {"exit": [], "uses": ["child ok"], "loops": ["child ok"], "killed": [], "outlives": []}


@pytest.mark.parametrize("how", SAID_BY_CHILD)
def test_a_fork_disturbs_neither_calls_nor_wakeups(server: valkey.ValkeyServer, prefix: str, how: str) -> None:
    url = f"{server.url}?prefix={prefix}&timeout=3"
    ran = subprocess.run([*PROGRAM, url, how], input="", capture_output=True, text=True, timeout=60)
    pending = 3 if how == "uses" else 2
    said = [*SAID_BY_CHILD[how], "parent ok", "again ok", "woken", f"pending {pending}", "closed"]
    assert ran.stdout.splitlines() == said, ran.stderr
    assert ran.stderr == ""
    assert ran.returncode == 0


def test_what_the_parent_closes_is_closed_while_a_child_lives() -> None:
    """The server would go on sending wake-ups to nobody, and counting a client."""
    with valkey.serving() as server:
        words = [*PROGRAM, f"{server.url}?timeout=3", "outlives"]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdin is not None and program.stdout is not None
            assert "closed" in map(str.strip, iter(program.stdout.readline, ""))
            only_ours = "the end of the connections that the parent has closed"
            valkey.eventually(lambda: server.client.info("clients")["connected_clients"] == 1, only_ours)
            program.stdin.close()
        assert program.returncode == 0
