"""The contract that every store passes: one pytest class from a factory, in a few lines (S2, S3)."""

from __future__ import annotations

import asyncio

from treadle.testing.contract.attempts import attempts
from treadle.testing.contract.claim import claim
from treadle.testing.contract.delete import delete
from treadle.testing.contract.enqueue import enqueue
from treadle.testing.contract.finish import finish
from treadle.testing.contract.keys import keys
from treadle.testing.contract.leases import leases
from treadle.testing.contract.redrive import redrive
from treadle.testing.contract.release import release
from treadle.testing.contract.run_now import run_now
from treadle.testing.contract.tokens import tokens
from treadle.testing.contract.trial import Trial
from treadle.testing.opening import StoreFactory, opened
from treadle.testing.suite import Check, Group, Skip, test_class

GROUPS: tuple[Group[Trial], ...] = (
    enqueue,
    keys,
    claim,
    finish,
    tokens,
    attempts,
    leases,
    release,
    redrive,
    run_now,
    delete,
)


def store_contract(name: str, factory: StoreFactory, *, skip: Skip = None) -> type:
    """The store contract as a pytest class; assign it to a name that begins with `Test` in a test module (S2).

        TestMyStore = store_contract("my-store", MyStore)

    `factory` gives an independent store at each call: a store, an awaitable of one, or an async context manager around
    one. `skip` is True or a reason for everything, or a mapping of 'group' or 'group.test' to the reason; each skip is
    printed with its reason. Raises `InvalidArgument` where `skip` names what the contract does not have.
    """

    def run(check: Check[Trial]) -> None:
        __tracebackhide__ = True
        asyncio.run(tried(check, factory))

    return test_class(name, GROUPS, run, skip)


async def tried(check: Check[Trial], factory: StoreFactory) -> None:
    """Run one contract function on a store of its own, and close it."""
    __tracebackhide__ = True
    async with opened(factory) as store:
        await check(Trial(store))
