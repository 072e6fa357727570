"""Stores broken as ends of a move, each caught by the contract test that speaks of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from broken_stores import caught, run

from treadle.core.errors import Conflict, StoreMoved
from treadle.core.filter import EVERYTHING
from treadle.core.job import State
from treadle.core.transfer import Cargo, KeptDocument, KeptInterval, Side, Stage
from treadle.stores.memory.adapter import MemoryStore

OPERATIONS = [
    "enqueue",
    "claim",
    "redrive",
    "run_now",
    "delete",
    "ensure",
    "put_schedule",
    "delete_schedule",
    "fire",
    "put_document",
    "delete_document",
]


class Leaky(MemoryStore):
    """A store whose fence one operation does not see."""

    leak = ""

    async def through(self, *args, **options):
        mark, self._mark = self._mark, None
        try:
            return await getattr(MemoryStore, self.leak)(self, *args, **options)
        finally:
            self._mark = mark


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_store_that_lets_one_change_through_the_fence_is_caught(operation):
    broken = type("Broken", (Leaky,), {"leak": operation, operation: Leaky.through})
    caught(
        broken,
        "fence.a_source_refuses_every_change_and_names_the_other",
        "fence.a_target_refuses_every_change_until_the_move_is_over",
    )


class Restoring(MemoryStore):
    """A store that changes what is restored."""

    def cargo_in(self, cargo: Cargo) -> Cargo:
        return cargo

    async def restore(self, cargo, **options):
        await super().restore(self.cargo_in(cargo), **options)


def test_a_store_that_tells_only_who_has_something_to_claim_is_caught():
    class Broken(MemoryStore):
        async def claim(self, token, demands, **options):
            mark, self._mark = self._mark, None
            try:
                due = await super().due(["default"], now=options.get("now"))
            finally:
                self._mark = mark
            if due:
                return await super().claim(token, demands, **options)
            self._mark, mark = None, self._mark
            try:
                return await super().claim(token, demands, **options)
            finally:
                self._mark = mark

    caught(Broken, "fence.a_claim_is_refused_also_where_nothing_is_due")


def test_a_store_that_refuses_the_ends_of_running_jobs_is_caught():
    class Broken(MemoryStore):
        async def finish(self, endings, **options):
            if self._mark is not None:
                raise StoreMoved("the store is being moved to the 'second' — ü")
            return await super().finish(endings, **options)

    with pytest.raises(StoreMoved):
        run(Broken, "fence.while_a_store_drains_running_jobs_end")


def test_a_store_that_is_sealed_while_jobs_run_is_caught():
    class Broken(MemoryStore):
        async def put_mark(self, mark, *, expect):
            if mark is not None and self._mark == expect:
                self._mark = mark
                return True
            return await super().put_mark(mark, expect=expect)

    caught(Broken, "fence.a_store_is_not_sealed_while_a_job_runs")


def test_a_store_that_puts_any_mark_is_caught():
    class Broken(MemoryStore):
        async def put_mark(self, mark, *, expect):
            return await super().put_mark(mark, expect=self._mark)

    caught(Broken, "fence.a_mark_is_put_only_over_the_one_expected")


def test_a_store_that_forgets_a_part_of_the_mark_is_caught():
    class Broken(MemoryStore):
        async def get_mark(self):
            mark = await super().get_mark()
            return None if mark is None else replace(mark, base=None)

    caught(Broken, "fence.a_mark_is_put_only_over_the_one_expected")


def test_a_store_whose_mark_comes_late_is_caught():
    class Broken(MemoryStore):
        """Answers that the mark is there before the calls under way meet it."""

        late = None

        async def put_mark(self, mark, *, expect):
            if mark is not None and mark.stage is Stage.SEALED and mark.side is Side.SOURCE:
                self.late = mark
                return True
            return await super().put_mark(mark, expect=expect)

        async def find(self, *args, **options):
            found = await super().find(*args, **options)
            self._mark = self.late
            return found

        async def enqueue(self, jobs, **options):
            if self._mark is not None:
                self._mark, mark = None, self._mark
                await super().enqueue(jobs, **options)
                self._mark = mark
                raise StoreMoved("moved")
            return await super().enqueue(jobs, **options)

    caught(Broken, "fence.nothing_slips_past_the_mark")


@pytest.mark.parametrize(
    "change",
    [
        {"attempts": 0},
        {"interruptions": 0},
        {"failures": ()},
        {"last_error": None},
        {"started_at": None},
        {"note": None},
        {"schedule": None},
        {"max_attempts": None},
        {"queue": "default"},
        {"priority": 0},
        {"payload_json": "null"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_store_that_restores_a_job_without_a_field_is_caught(change):
    class Broken(Restoring):
        def cargo_in(self, cargo):
            return replace(cargo, jobs=[replace(job, **change) for job in cargo.jobs])

    caught(Broken, "transfer.what_is_restored_is_as_it_was")


@pytest.mark.parametrize("field", ["run_at", "created_at", "finished_at"])
def test_a_store_that_restores_moments_to_the_second_is_caught(field):
    class Broken(Restoring):
        def cargo_in(self, cargo):
            return replace(cargo, jobs=[self.cut(job) for job in cargo.jobs])

        def cut(self, job):
            moment = getattr(job, field)
            if moment is None:
                return job
            return replace(job, **{field: moment.replace(year=2000)})

    caught(Broken, "transfer.what_is_restored_is_as_it_was")


def test_a_store_that_forgets_keys_of_restored_jobs_is_caught():
    class Broken(MemoryStore):
        async def restore(self, cargo, **options):
            await super().restore(cargo, **options)
            self._ledger.keys.clear()

    caught(Broken, "transfer.what_was_restored_goes_on")


def test_a_store_that_counts_ages_from_the_restoring_is_caught():
    class Broken(MemoryStore):
        async def find(self, which, **options):
            return await super().find(replace(which, older_than=None if which.older_than is None else 1e9), **options)

    with pytest.raises(ValueError, match="not enough values"):
        run(Broken, "transfer.what_was_restored_goes_on")


def test_a_store_that_begins_revisions_anew_is_caught():
    class Broken(Restoring):
        def cargo_in(self, cargo):
            schedules = [replace(one, revision=1) for one in cargo.schedules]
            return replace(cargo, schedules=schedules)

    caught(Broken, "transfer.what_is_restored_is_as_it_was")

    class BrokenToo(Restoring):
        def cargo_in(self, cargo):
            documents = [KeptDocument(one.namespace, replace(one.document, revision=1)) for one in cargo.documents]
            return replace(cargo, documents=documents)

    caught(BrokenToo, "transfer.what_is_restored_is_as_it_was", "transfer.what_was_restored_goes_on")


def test_a_store_that_forgets_when_an_interval_was_due_is_caught():
    class Broken(Restoring):
        def cargo_in(self, cargo):
            return replace(cargo, intervals=[KeptInterval(one.interval, None) for one in cargo.intervals])

    caught(Broken, "transfer.what_is_restored_is_as_it_was")


def test_a_store_that_restores_over_what_is_there_is_caught():
    class Broken(MemoryStore):
        async def restore(self, cargo, **options):
            await super().remove(cargo, expect=options["expect"])
            await super().restore(cargo, **options)

    caught(Broken, "transfer.restoring_again_changes_nothing")


def test_a_store_that_leaves_a_job_with_a_held_key_out_is_caught():
    class Broken(MemoryStore):
        async def restore(self, cargo, **options):
            for job in cargo.jobs:
                try:
                    await super().restore(Cargo([job]), **options)
                except Conflict:
                    continue
            await super().restore(replace(cargo, jobs=()), **options)

    class Asleep(MemoryStore):
        async def restore(self, cargo, *, expect, now=None):
            if self._mark == expect:
                self._ledger.keys.clear()
            await super().restore(cargo, expect=expect, now=now)

    with pytest.raises(AssertionError, match="the contract asks: "):
        run(Asleep, "transfer.a_held_key_is_no_silent_loss")
    with pytest.raises(AssertionError, match="the contract asks: "):
        run(Broken, "transfer.a_held_key_is_no_silent_loss")


def test_a_store_that_lets_anybody_restore_and_remove_is_caught():
    class Broken(MemoryStore):
        async def restore(self, cargo, *, expect, now=None):
            await super().restore(cargo, expect=self._mark, now=now)

    caught(Broken, "transfer.only_the_move_itself_puts_in_and_takes_out")

    class BrokenToo(MemoryStore):
        async def remove(self, cargo, *, expect):
            await super().remove(cargo, expect=self._mark)

    caught(BrokenToo, "transfer.only_the_move_itself_puts_in_and_takes_out")


def test_a_store_that_removes_too_much_or_too_little_is_caught():
    class Broken(MemoryStore):
        async def remove(self, cargo, *, expect):
            everything = await super().find(EVERYTHING, limit=99)
            await super().remove(replace(cargo, jobs=everything), expect=expect)

    caught(Broken, "transfer.what_is_removed_is_gone_with_its_keys")

    class BrokenToo(MemoryStore):
        async def remove(self, cargo, *, expect):
            await super().remove(replace(cargo, intervals=()), expect=expect)

    caught(BrokenToo, "transfer.what_is_removed_is_gone_with_its_keys")


def test_a_store_that_hides_expired_documents_is_caught():
    class Broken(MemoryStore):
        async def kept_documents(self, **options):
            return [one for one in await super().kept_documents(**options) if one.document.expires_at is None]

    caught(Broken, "transfer.what_is_kept_beside_jobs_is_counted_and_listed")


def test_a_store_that_begins_each_page_of_kept_things_anew_is_caught():
    class Broken(MemoryStore):
        async def kept_documents(self, *, after=None, limit=1000):
            return await super().kept_documents(limit=limit)

    caught(Broken, "transfer.what_is_kept_beside_jobs_is_counted_and_listed")


def test_a_store_that_takes_the_key_of_a_finished_job_for_held_is_caught():
    class Broken(MemoryStore):
        async def taken(self, jobs):
            return await super().taken([replace(job, state=State.PENDING) for job in jobs])

    caught(Broken, "transfer.what_is_in_the_way_of_a_job_is_told")

    class BrokenToo(MemoryStore):
        async def taken(self, jobs):
            found = await super().taken(jobs)
            return {job_id: holder for job_id, holder in found.items() if job_id != holder}

    caught(BrokenToo, "transfer.what_is_in_the_way_of_a_job_is_told")


def test_a_store_that_is_no_end_of_a_move_skips_both_groups():
    class NoEnd:
        """All of a store but `Transfer`."""

        def __init__(self):
            self._inner = MemoryStore()
            for name in dir(self._inner):
                if not name.startswith("_") and name not in ("get_mark", "put_mark", "restore", "remove"):
                    setattr(self, name, getattr(self._inner, name))

    for test in ("fence.a_store_that_took_part_in_no_move_has_no_mark", "transfer.restoring_again_changes_nothing"):
        with pytest.raises(pytest.skip.Exception, match="has not what `Transfer` asks for"):
            run(NoEnd, test)
