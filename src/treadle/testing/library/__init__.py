"""The library's behaviour on top of a store: retries, leases, intervals and stopping, on a clock moved by hand (S2)."""

from __future__ import annotations

import asyncio

from treadle.testing.contract import expect
from treadle.testing.library.bench import Bench
from treadle.testing.library.intervals import intervals
from treadle.testing.library.keys import keys
from treadle.testing.library.leases import leases
from treadle.testing.library.names import names
from treadle.testing.library.retention import retention
from treadle.testing.library.retrying import retrying
from treadle.testing.library.running import running
from treadle.testing.library.stopping import stopping
from treadle.testing.library.values import values
from treadle.testing.opening import StoreFactory, opened
from treadle.testing.suite import Check, Group, Skip, run_on_a_fresh_loop, test_class

ENOUGH = 60.0
GROUPS: tuple[Group[Bench], ...] = (running, names, retrying, leases, keys, values, intervals, stopping, retention)


def tasks_contract(name: str, factory: StoreFactory, *, skip: Skip = None) -> type:
    """The contract of `Tasks` over a store as a pytest class, by the same rules as `store_contract` (S2).

        TestTasksOnMyStore = tasks_contract("tasks on my-store", MyStore)

    Raises `InvalidArgument` where `skip` names what the contract does not have.
    """

    def run(check: Check[Bench]) -> None:
        __tracebackhide__ = True
        run_on_a_fresh_loop(check, _tried(check, factory))

    return test_class(name, GROUPS, run, skip)


async def _tried(check: Check[Bench], factory: StoreFactory) -> None:
    async with opened(factory) as store:
        bench, enough = Bench(store), asyncio.timeout(ENOUGH)
        try:
            async with enough:
                await check(bench)
        except TimeoutError:
            if not enough.expired():
                raise
            expect.that(False, f"the work of this test comes to an end within {ENOUGH:g} s; a drain may be going on for ever")
        finally:
            await bench.stop()
