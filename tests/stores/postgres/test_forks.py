"""Forks: parent and child each have connections, a listening thread and locks of their own (docs/reference/stores.md)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FORKING = Path(__file__).with_name("forking.py")


def _said(scenario: str, url: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(FORKING), scenario, url], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_child_that_exits_takes_nothing_of_its_parents_along(url: str) -> None:
    assert _said("child_exits", url) == [
        "child exits 0",
        "connections alive True",
        "idle True",
        "woken True",
        "pending 3",
    ]


def test_a_child_has_connections_and_a_listener_of_its_own(url: str) -> None:
    assert _said("child_works", url) == [
        "child woken True",
        "child renews True",
        "child exits 0",
        "parent woken True",
        "parent renews True",
    ]


def test_a_call_that_is_under_way_at_a_fork_is_answered(url: str) -> None:
    assert _said("call_under_way", url) == ["child exits 0", "the call ended well"]


def test_a_child_waits_for_no_lock_of_its_parents_threads(url: str) -> None:
    assert _said("locks_held", url) == ["child exits 0"]
