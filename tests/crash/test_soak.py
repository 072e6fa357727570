"""The long version, for `make soak`: two hundred random kills under load, and the books balance (S10)."""

import random

import pytest

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]
KILLS = 200


def test_two_hundred_random_kills_under_load_lose_nothing(fleet):
    chance = random.Random(7)
    ids: list[str] = []
    workers = [fleet.worker() for _ in range(3)]
    for _ in range(KILLS):
        names = ["quick", "plain", "fails"]
        ids += [
            one.id
            for one in fleet.tasks.sync.enqueue_many(
                [{"name": chance.choice(names), "payload": chance.randint(0, 20)} for _ in range(30)]
            )
        ]
        seen = len(fleet.lines())
        fleet.until(
            lambda seen=seen: len(fleet.lines()) > seen + chance.randint(0, 20) or not fleet.tasks.sync.stats().pending,
            "some starts",
        )
        victim = chance.randrange(len(workers))
        workers[victim].kill9()
        workers[victim] = fleet.worker()
    fleet.all_finished(600)
    fleet.account(ids)
