"""The kit itself: factories of every kind, skips with reasons, names, and failures that can be read."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from treadle.core.errors import InvalidArgument
from treadle.stores.memory import MemoryStore
from treadle.testing import store_contract, tasks_contract
from treadle.testing.contract import GROUPS
from treadle.testing.library import GROUPS as LIBRARY
from treadle.testing.opening import opened
from treadle.testing.suite import Group

TEST = "test_enqueue__defaults_are_due_at_once"


class Told(MemoryStore):
    """A store that notes what is done to it."""

    def __init__(self, notes):
        super().__init__()
        self.notes = notes

    async def close(self):
        self.notes.append("closed")
        await super().close()


def methods(made):
    return {name: getattr(made, name) for name in dir(made) if name.startswith("test_")}


# -- factories


def factories(notes):
    async def awaited():
        return Told(notes)

    @asynccontextmanager
    async def managed():
        yield Told(notes)
        notes.append("left")

    async def awaited_manager():
        return managed()

    async def generator():
        yield Told(notes)
        notes.append("left")

    return {
        "plain": (lambda: Told(notes), ["closed"]),
        "async": (awaited, ["closed"]),
        "context manager": (managed, ["closed", "left"]),
        "async, giving a context manager": (awaited_manager, ["closed", "left"]),
        "async generator": (generator, ["closed", "left"]),
    }


@pytest.mark.parametrize("kind", list(factories([])))
def test_a_factory_may_be_of_any_kind_and_its_store_is_closed(kind):
    notes = []
    factory, expected = factories(notes)[kind]
    getattr(store_contract("told", factory)(), TEST)()
    assert notes == expected


def test_a_store_is_closed_when_its_test_fails():
    notes = []

    class Broken(Told):
        async def enqueue(self, jobs, **options):
            return []

    with pytest.raises(AssertionError):
        getattr(store_contract("broken", lambda: Broken(notes))(), TEST)()
    assert notes == ["closed"]


def test_a_factory_that_gives_no_store_is_told_what_is_missing():
    async def main():
        async with opened(object):
            pass

    with pytest.raises(InvalidArgument, match="gave object, which has no claim, close, count"):
        asyncio.run(main())


# -- skips


def test_everything_is_skipped_with_the_reason_given():
    for method in methods(store_contract("none", MemoryStore, skip="the server is not there")).values():
        with pytest.raises(pytest.skip.Exception, match="the server is not there"):
            method(None)


def test_true_skips_everything_and_none_nothing():
    with pytest.raises(pytest.skip.Exception, match="as a whole"):
        methods(store_contract("none", MemoryStore, skip=True))[TEST](None)
    for skip in (None, False, {}):
        methods(store_contract("all", MemoryStore, skip=skip))[TEST](None)


def test_a_group_and_a_single_test_are_skipped_apart():
    skip = {"documents": "no documents here", "enqueue.defaults_are_due_at_once": "a clock of its own"}
    skipped = {}
    for name, method in methods(store_contract("some", MemoryStore, skip=skip)).items():
        if name.startswith(("test_documents__", "test_enqueue__")):
            try:
                method(None)
            except pytest.skip.Exception as reason:
                skipped[name] = str(reason)
    assert skipped.pop(TEST) == "a clock of its own"
    assert set(skipped.values()) == {"no documents here"}
    assert all(name.startswith("test_documents__") for name in skipped)


@pytest.mark.parametrize("contract", [store_contract, tasks_contract])
@pytest.mark.parametrize("name", ["document", "enqueue.test_defaults_are_due_at_once", "nobody.nothing", ""])
def test_an_unknown_name_in_skip_is_refused(contract, name):
    with pytest.raises(InvalidArgument, match="which is no part of the contract; its groups are "):
        contract("some", MemoryStore, skip={name: "reason"})


@pytest.mark.parametrize("reason", ["", " ", None, True])
def test_a_skip_needs_a_reason(reason):
    with pytest.raises(InvalidArgument, match="needs a reason in words"):
        store_contract("some", MemoryStore, skip={"documents": reason})


# -- names and words


def test_every_test_has_a_sentence_and_every_group_its_tests():
    for made, groups in ((store_contract("a", MemoryStore), GROUPS), (tasks_contract("b", MemoryStore), LIBRARY)):
        assert len(methods(made)) == sum(len(group.checks) for group in groups)
        assert all(group.checks for group in groups)
        for name, method in methods(made).items():
            assert method.__doc__, name
            assert method.__doc__.strip().endswith("."), name


def test_a_contract_function_without_a_sentence_or_of_a_taken_name_is_refused():
    group = Group("g")

    async def silent(t):
        pass

    with pytest.raises(InvalidArgument, match=r"g\.silent needs a docstring"):
        group(silent)
    silent.__doc__ = "Says something."
    group(silent)
    with pytest.raises(InvalidArgument, match=r"two functions g\.silent"):
        group(silent)


def test_a_failure_says_in_words_what_was_expected():
    class Broken(MemoryStore):
        async def stats(self, **options):
            return None

    with pytest.raises(AssertionError) as failure:
        store_contract("broken", Broken)().test_stats__an_empty_store_counts_nothing()
    assert str(failure.value).startswith("the contract asks: an empty store counts nothing; expected Stats(pending=0")


def test_a_history_that_fails_is_shortened_and_shown_step_by_step():
    class Broken(MemoryStore):
        async def run_now(self, which, **options):
            return 0

    with pytest.raises(AssertionError, match="run_now answers how many pending jobs matched") as failure:
        store_contract("broken", Broken)().test_model__random_operations_agree()
    [told] = failure.value.__notes__
    assert told.startswith("It takes 2 steps, with all jobs compared after each; the last one shows it:")
    assert "\n    RunNow(which=JobFilter(" in told


# -- as a third party runs it

THIRD_PARTY = """
from treadle.stores.memory import MemoryStore
from treadle.testing import store_contract

class MyStore(MemoryStore):
    async def due(self, queues, *, now=None):
        return set()

TestMyStore = store_contract("my-store", MyStore, skip={"documents": "kept elsewhere"}, model_examples=1)
"""


def test_a_third_party_runs_it_with_a_few_lines_of_pytest(tmp_path):
    (tmp_path / "test_my_store.py").write_text(THIRD_PARTY)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rfs",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
        "-k",
        "stats or documents",
    ]
    ran = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "kept elsewhere" in ran.stdout
    failed = [line for line in ran.stdout.splitlines() if line.startswith("FAILED")]
    assert len(failed) == 1, ran.stdout
    assert "TestMyStore::test_stats__due_answers_the_queues_with_claimable_jobs" in failed[0]
    assert "the contract asks: only a queue with a due pending job is due; expected {'now'}; got set()" in ran.stdout
    assert "asyncio" not in ran.stdout


def test_the_clock_needs_neither_pytest_nor_hypothesis():
    code = (
        "import sys; from treadle.testing import ManualClock, FaultyStore, JobFactory; "
        "sys.exit('pytest' in sys.modules or 'hypothesis' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
