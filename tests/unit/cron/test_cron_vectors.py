"""The vectors that came with the rules: expressions, zones and right answers, found by brute force (T15)."""

from __future__ import annotations

import json
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from treadle.core.cron import Cron
from treadle.core.errors import InvalidArgument

VECTORS = [json.loads(line) for line in Path(__file__).with_name("vectors.jsonl").read_text(encoding="utf-8").splitlines()]
# T5 refuses a step larger than the number of values in the field: there the listed alternative is the right answer.
REFUSED_BY_T5 = {"c162", "c164"}


def made(vector) -> Cron:
    if vector["fields"] == 6:
        return Cron.with_seconds(vector["expr"], vector["tz"])
    return Cron(vector["expr"], vector["tz"])


def refused(vector) -> bool:
    return bool(vector.get("error")) or vector["id"] in REFUSED_BY_T5


@pytest.mark.parametrize("vector", [v for v in VECTORS if not refused(v)], ids=lambda v: v["id"])
def test_the_next_runs(vector):
    cron = made(vector)
    answers = cron.upcoming(datetime.fromisoformat(vector["after"]), len(vector["next"]))
    assert [answer.strftime("%Y-%m-%dT%H:%M:%SZ") for answer in answers] == vector["next"], vector["rule"]
    for earlier, later in pairwise(answers):
        assert cron.previous(later) == earlier


@pytest.mark.parametrize("vector", [v for v in VECTORS if refused(v)], ids=lambda v: v["id"])
def test_the_refused(vector):
    with pytest.raises(InvalidArgument) as raised:
        made(vector)
    assert "\n" not in str(raised.value)


def test_the_steps_refused_by_t5_are_listed_as_alternatives():
    doubtful = {v["id"]: v for v in VECTORS if v["id"] in REFUSED_BY_T5}
    assert doubtful.keys() == REFUSED_BY_T5
    assert all(any(a.get("error") for a in v["alternatives"]) for v in doubtful.values())
