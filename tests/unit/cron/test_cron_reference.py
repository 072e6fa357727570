"""The reference page of cron: its examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import treadle
from treadle.core.cron import Cron

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cron.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_there_are_examples():
    assert len(BLOCKS) == 3


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_examples_hold(block, monkeypatch):
    monkeypatch.setattr(treadle, "Cron", Cron, raising=False)
    exec(compile(block, str(PAGE), "exec"), {"__name__": "example"})
