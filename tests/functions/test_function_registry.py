"""What a functions worker asks the store for, where functions have limits (F1)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given, settings, strategies as st

from treadle.core.store import Demand
from treadle.functions.registry import FunctionRegistry


class _Running:
    def __init__(self, name: str) -> None:
        self.name = name


def registry(limits: Mapping[str, int], waiting: Sequence[str], running: Sequence[str] = ()) -> FunctionRegistry:
    async def the_limits() -> Mapping[str, int]:
        return limits

    async def the_waiting() -> Sequence[str]:
        return waiting

    jobs: list[Any] = [_Running(name) for name in running]
    return FunctionRegistry(the_limits, the_limits, the_waiting, lambda: jobs, lambda: 1.0)


def asked(of: FunctionRegistry, free: int) -> tuple[list[Demand], bool]:
    return asyncio.run(of.demands(free, None, 3))


NAMES = [f"function:f{number}" for number in range(30)]


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 4)), st.sets(st.sampled_from(NAMES)), st.data())
def test_every_claim_asks_for_all_that_may_run_within_the_limits_and_the_slots(
    limits: dict[str, int], waiting: set[str], data: st.DataObject
) -> None:
    free = data.draw(st.integers(1, 12))
    running = [name for name, most in limits.items() for _ in range(data.draw(st.integers(0, most)))]
    room = {name: most - running.count(name) for name, most in limits.items()}
    of = registry(limits, sorted(waiting), running)
    for _ in range(3):
        demands, complete = asked(of, free)
        if not limits:
            assert [(demand.limit, demand.names) for demand in demands] == [(free, None)] and complete
            continue
        names = [name for demand in demands for name in demand.names or ()]
        assert sorted(names) == sorted(name for name in waiting if room.get(name, 1) > 0)
        assert complete == all(room.get(name, 1) > 0 for name in waiting)
        assert sum(demand.limit for demand in demands) <= free
        for demand in demands:
            assert 1 <= demand.limit <= min((room[name] for name in demand.names or () if name in room), default=free)


def test_a_limited_function_gets_what_it_may_and_the_others_the_rest_in_turn() -> None:
    of = registry({"function:a": 2}, ["function:a", "function:b", "function:c"])
    wide = ["function:b", "function:c"]
    assert [(list(demand.names or ()), demand.limit) for demand in asked(of, 10)[0]] == [(wide, 5), (["function:a"], 2)]
    assert [(list(demand.names or ()), demand.limit) for demand in asked(of, 10)[0]] == [(["function:a"], 2), (wide, 8)]
