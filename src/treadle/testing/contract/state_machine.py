"""The state machine: random histories, done to a store and to the model, and compared after each step (S3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import Key, State
from treadle.core.outcome import Dead, Done, Released, RetryAfter
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.store import Demand
from treadle.testing.contract import steps
from treadle.testing.contract.shortening import shortened, told
from treadle.testing.contract.twins import Twins
from treadle.testing.opening import StoreFactory

STEPS = 50

_names = st.sampled_from(("a", "b"))
_queues = st.sampled_from(("default", "default", *steps.QUEUES))
_back = st.sampled_from((0, 0, 0, 1, 1, 2, 3, 5, 8))
_leases = st.sampled_from((10.0, 60.0))
_limits = st.sampled_from((None, None, 1, 2))
_everything = st.just(EVERYTHING)
_which = st.builds(
    JobFilter,
    states=st.none() | st.frozensets(st.sampled_from(State), max_size=3),
    names=st.none() | st.frozensets(_names),
    queues=st.none() | st.frozensets(st.sampled_from(steps.QUEUES), max_size=2),
    older_than=st.sampled_from((None, None, 0.0, 1.0, 60.0)),
    keyed=st.sampled_from((None, None, True, False)),
    of_faces=st.sampled_from((None, None, True, False)),
)
_filters = _everything | _which
_outcomes = st.one_of(
    st.builds(Done, st.sampled_from((None, "note"))),
    st.builds(RetryAfter, st.sampled_from((0.0, 0.0, 10.0)), st.sampled_from(("E: one", "E: two"))),
    st.builds(Dead, st.sampled_from(("E: one", "E: two"))),
    st.builds(Dead, st.just("E: three")),
    st.builds(Released, st.sampled_from((0.0, 0.0, 10.0)), st.booleans()),
)
_enqueue = st.builds(
    steps.Enqueue,
    name=_names,
    copies=st.integers(1, 3),
    queue=_queues,
    key=st.sampled_from((None, None, Key("idempotency", "k"), Key("dedupe", "k"), Key("dedupe", "k"))),
    priority=st.integers(-1, 1),
    delay=st.sampled_from((0.0, 0.0, 0.0, 10.0)),
    max_attempts=st.sampled_from((None, None, 1, 2)),
)
_claim = st.builds(
    steps.ClaimJobs,
    st.builds(
        Demand,
        limit=st.integers(1, 4),
        queues=st.sampled_from((None, steps.QUEUES, steps.QUEUES, ("default", "q"), ("functions", "default"))),
        names=st.sampled_from((None, None, {"a": 3}, {"b": 1, "a": 2})),
        max_attempts=st.sampled_from((1, 5)),
    ),
    lease=_leases,
    worker=st.sampled_from(("w1", "w2")),
)
_ensure = st.builds(steps.Ensure, _names, st.sampled_from((5.0, 60.0)))
# One rule for all steps, since hypothesis leaves out some of the rules in each run, and these live on each other.
# What moves jobs weighs more, so that histories get somewhere.
_weighted: tuple[tuple[int, st.SearchStrategy[steps.Step]], ...] = (
    (3, _enqueue),
    (1, st.builds(steps.EnqueueAgain, st.integers(1, 2))),
    (5, _claim),
    (5, st.builds(steps.Finish, _back, _outcomes)),
    (1, st.builds(steps.FinishOrRenewAsAnother, _back, _back, _outcomes)),
    (1, st.builds(steps.Renew, _back, _leases)),
    (2, st.builds(steps.Advance, st.sampled_from((0.5, 1.0, 10.0, 61.0)))),
    (2, st.builds(steps.LookForExpired, st.sampled_from((0.0, 10.0, 61.0)), st.integers(1, 3))),
    (2, st.builds(steps.ReclaimSeen, _back)),
    (2, st.builds(steps.Redrive, _everything, st.sampled_from(RedrivePolicy))),
    (1, st.builds(steps.Redrive, _filters, st.sampled_from(RedrivePolicy), _limits)),
    (1, st.builds(steps.RunNow, _filters)),
    (1, st.builds(steps.Delete, _which, st.sampled_from((1, 1, 2, None)))),
    (1, _ensure),
    (1, st.builds(steps.Look, _filters, st.integers(1, 5))),
)
_table = [strategy for weight, strategy in _weighted for _ in range(weight)]


def _numbered(number: int) -> st.SearchStrategy[steps.Step]:
    return _table[number]


# `one_of` would drop what comes twice.
_steps: st.SearchStrategy[steps.Step] = st.integers(0, len(_table) - 1).flatmap(_numbered)


class StoreMachine(RuleBasedStateMachine):
    """Drives one store beside a model; a subclass names the `factory`, and keeps the history that failed."""

    factory: StoreFactory
    failed: Sequence[steps.Step] | None = None

    def __init__(self) -> None:
        super().__init__()
        self.twins = Twins(type(self).factory)
        self.history: list[steps.Step] = []

    @initialize(
        jobs=st.lists(_enqueue, min_size=2, max_size=2),
        interval=_ensure,
        claims=st.lists(_claim, min_size=1, max_size=2),
    )
    def begin(self, jobs: list[steps.Enqueue], interval: steps.Ensure, claims: list[steps.ClaimJobs]) -> None:
        """Begin with some jobs, an interval, and claims."""
        beginning: list[steps.Step] = [*jobs, interval, *claims]
        for step in beginning:
            self.do(step)

    @rule(step=_steps)
    def go_on(self, step: steps.Step) -> None:
        """Do one step more."""
        self.do(step)

    def do(self, step: steps.Step) -> None:
        """Do one step to both, and compare all jobs after it."""
        self.history.append(step)
        try:
            step.do(self.twins)
            self.twins.compare()
        except Exception:
            type(self).failed = self.history
            raise

    def teardown(self) -> None:
        """Close the store."""
        self.twins.close()


def drive(factory: StoreFactory, max_examples: int, *, shorten: bool = True) -> None:
    """Try so many histories, the same ones at each call, each on a store of its own.

    Hypothesis finds a history that fails. Shortening it is done here, since its steps are values: that takes a bounded
    number of stores, where hypothesis would go on for minutes on a store behind a network.
    """
    machine: Any = type("StoreMachine", (StoreMachine,), {"factory": staticmethod(factory)})
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=max_examples,
                stateful_step_count=STEPS,
                deadline=None,
                derandomize=True,
                database=None,
                print_blob=False,
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.generate,),
            ),
        )
    except Exception:
        if machine.failed is None or not shorten:
            raise
        history, error = shortened(factory, machine.failed)
        if error is None:
            raise  # it failed once and not again: hypothesis shows the whole history
        error.add_note(told(history))
        raise error from None
