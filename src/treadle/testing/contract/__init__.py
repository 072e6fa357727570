"""The contract that every store passes: one pytest class from a factory, in a few lines (S2, S3)."""

from __future__ import annotations

from treadle.testing.contract.agreement import model
from treadle.testing.contract.attempts import attempts
from treadle.testing.contract.claim import claim
from treadle.testing.contract.concurrency import concurrency
from treadle.testing.contract.delete import delete
from treadle.testing.contract.documents import documents
from treadle.testing.contract.enqueue import enqueue
from treadle.testing.contract.fence import fence
from treadle.testing.contract.find import find
from treadle.testing.contract.finish import finish
from treadle.testing.contract.firings import firings
from treadle.testing.contract.intervals import intervals
from treadle.testing.contract.keys import keys
from treadle.testing.contract.leases import leases
from treadle.testing.contract.payloads import payloads
from treadle.testing.contract.redrive import redrive
from treadle.testing.contract.release import release
from treadle.testing.contract.run_now import run_now
from treadle.testing.contract.schedules import schedules
from treadle.testing.contract.schema import schema
from treadle.testing.contract.stats import stats
from treadle.testing.contract.tally import tally
from treadle.testing.contract.times import times
from treadle.testing.contract.tokens import tokens
from treadle.testing.contract.transfer import transfer
from treadle.testing.contract.transitions import transitions
from treadle.testing.contract.trial import Trial
from treadle.testing.opening import StoreFactory, opened
from treadle.testing.suite import Check, Group, Skip, run_on_a_fresh_loop, test_class

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
    transitions,
    find,
    stats,
    tally,
    payloads,
    times,
    intervals,
    schedules,
    firings,
    documents,
    fence,
    transfer,
    schema,
    concurrency,
    model,
)


MODEL_EXAMPLES = 20


def store_contract(name: str, factory: StoreFactory, *, skip: Skip = None, model_examples: int = MODEL_EXAMPLES) -> type:
    """The store contract as a pytest class; assign it to a name that begins with `Test` in a test module (S2).

        TestMyStore = store_contract("my-store", MyStore)

    `factory` gives an independent store at each call: a store, an awaitable of one, or an async context manager around
    one. `skip` is True or a reason for everything, or a mapping of 'group' or 'group.test' to the reason; each skip is
    printed with its reason. `model_examples` is how many random histories are compared with the model, each on a store
    of its own. Raises `InvalidArgument` where `skip` names what the contract does not have.
    """

    def run(check: Check[Trial]) -> None:
        __tracebackhide__ = True
        run_on_a_fresh_loop(check, tried(check, factory, model_examples))

    return test_class(name, GROUPS, run, skip)


async def tried(check: Check[Trial], factory: StoreFactory, model_examples: int = MODEL_EXAMPLES) -> None:
    """Run one contract function on a store of its own, and close it."""
    async with opened(factory) as store:
        await check(Trial(store, factory, model_examples))
