"""Stores that count wrongly by queue, name and state, each caught by the contract test that speaks of it."""

from __future__ import annotations

import unicodedata
from collections import Counter

from broken_stores import MODEL, caught, run

from treadle.core.filter import EVERYTHING
from treadle.core.job import State
from treadle.core.policies.limits import owned_by_a_face
from treadle.core.store import Tally
from treadle.stores.memory.adapter import MemoryStore

EACH = "tally.jobs_are_counted_by_queue_name_and_state"
APART = "tally.queues_and_names_are_told_apart_exactly"
OLDEST = "tally.oldest_is_the_earliest_run_at_of_each_queue"
MOVES = "tally.every_move_changes_the_tally"
LARGE = "tally.large_numbers_are_counted_whole"


class Counting(MemoryStore):
    """A store that counts the jobs that `meant` says, at the places that `place` says."""

    def meant(self, job):
        return True

    def place(self, job):
        return job.queue, job.name, job.state

    def waits(self, job):
        return job.state is State.PENDING

    async def jobs(self):
        return [job for job in await super().find(EVERYTHING, limit=10_000) if self.meant(job)]

    async def tally(self):
        jobs = await self.jobs()
        oldest = {}
        for job in jobs:
            if self.waits(job):
                oldest[job.queue] = min(job.run_at, oldest.get(job.queue, job.run_at))
        return Tally(dict(Counter(map(self.place, jobs))), oldest)


def caught_in_counting(broken, *tests):
    """As `caught`, and each test passes on `Counting` itself, so that it is the mutation that is caught."""
    for test in tests:
        if test != MODEL:
            run(Counting, test)
    caught(broken, *tests)


def test_a_store_that_answers_nothing_for_an_empty_store_is_caught():
    class Broken(MemoryStore):
        async def tally(self):
            right = await super().tally()
            return right if right.counts else None

    caught(Broken, "tally.an_empty_store_has_nothing_to_tally", MOVES)


def test_a_store_that_leaves_out_the_queues_of_faces_is_caught():
    class Broken(Counting):
        def meant(self, job):
            return not owned_by_a_face(job.queue)

    caught_in_counting(Broken, EACH, OLDEST, MODEL)


def test_a_store_that_takes_all_plugins_for_one_queue_is_caught():
    class Broken(Counting):
        def place(self, job):
            return job.queue.partition(":")[0], job.name, job.state

    caught_in_counting(Broken, EACH, APART)


def test_a_store_that_counts_no_running_jobs_is_caught():
    class Broken(Counting):
        def meant(self, job):
            return job.state is not State.RUNNING

    caught_in_counting(Broken, EACH, MOVES, MODEL)


def test_a_store_that_takes_dead_jobs_for_done_is_caught():
    class Broken(Counting):
        def place(self, job):
            return job.queue, job.name, State.DONE if job.state is State.DEAD else job.state

    caught_in_counting(Broken, EACH, MOVES, MODEL)


def test_a_store_that_answers_states_as_plain_text_is_caught():
    class Broken(Counting):
        def place(self, job):
            return job.queue, job.name, str(job.state.value)

    caught_in_counting(Broken, EACH)


def test_a_store_whose_queue_and_name_run_together_is_caught():
    class Broken(Counting):
        def place(self, job):
            queue, _, name = f"{job.queue}:{job.name}".partition(":")
            return queue, name, job.state

    caught_in_counting(Broken, APART)


def test_a_store_that_clips_names_is_caught():
    class Broken(Counting):
        def place(self, job):
            return job.queue, job.name[:127], job.state

    caught_in_counting(Broken, APART)


def test_a_store_that_counts_by_a_collation_is_caught():
    class Broken(Counting):
        def place(self, job):
            return job.queue, unicodedata.normalize("NFC", job.name), job.state

    caught_in_counting(Broken, APART)


def test_a_store_that_counts_names_without_their_case_is_caught():
    class Broken(Counting):
        def place(self, job):
            return job.queue.lower(), job.name, job.state

    caught_in_counting(Broken, APART)


def test_a_store_that_takes_delayed_jobs_for_no_pending_ones_is_caught():
    class Broken(Counting):
        def meant(self, job):
            return job.state is not State.PENDING or job.run_at <= job.created_at

    caught_in_counting(Broken, OLDEST, MOVES, MODEL)


def test_a_store_whose_oldest_job_may_run_already_is_caught():
    class Broken(Counting):
        def waits(self, job):
            return job.state in (State.PENDING, State.RUNNING)

    caught_in_counting(Broken, OLDEST, MOVES, MODEL)


def test_a_store_that_takes_the_next_job_for_the_oldest_is_caught():
    class Broken(Counting):
        async def tally(self):
            right, heads = await super().tally(), {}
            for job in sorted(filter(self.waits, await self.jobs()), key=lambda job: (-job.priority, job.run_at), reverse=True):
                heads[job.queue] = job.run_at
            return Tally(right.counts, heads)

    caught_in_counting(Broken, OLDEST, MODEL)


def test_a_store_whose_oldest_job_is_the_first_created_is_caught():
    class Broken(Counting):
        async def tally(self):
            right = await super().tally()
            return Tally(right.counts, {job.queue: job.run_at for job in await self.jobs() if self.waits(job)})

    caught_in_counting(Broken, OLDEST, MODEL)


def test_a_store_that_keeps_whole_seconds_is_caught():
    class Broken(MemoryStore):
        async def tally(self):
            right = await super().tally()
            return Tally(right.counts, {queue: run_at.replace(microsecond=0) for queue, run_at in right.oldest.items()})

    caught(Broken, OLDEST)


def test_a_store_with_one_oldest_job_for_all_queues_is_caught():
    class Broken(MemoryStore):
        async def tally(self):
            right = await super().tally()
            return Tally(right.counts, dict.fromkeys(right.oldest, min(right.oldest.values(), default=None)))

    caught(Broken, OLDEST, MODEL)


def test_a_store_that_counts_once_and_keeps_that_is_caught():
    class Broken(MemoryStore):
        kept = None

        async def tally(self):
            self.kept = self.kept or await super().tally()
            return self.kept

    caught(Broken, MOVES, MODEL)


def test_a_store_that_leaves_zeros_behind_is_caught():
    class Broken(MemoryStore):
        def __init__(self):
            super().__init__()
            self.seen = set()

        async def tally(self):
            right = await super().tally()
            self.seen |= {*right.counts}
            return Tally({place: right.counts.get(place, 0) for place in self.seen}, right.oldest)

    caught(Broken, MOVES, MODEL)


def test_a_store_whose_counts_forget_what_is_deleted_is_caught():
    class Broken(MemoryStore):
        def __init__(self):
            super().__init__()
            self.deleted = Counter()

        async def delete(self, which, **options):
            before = (await super().tally()).counts
            number = await super().delete(which, **options)
            self.deleted += Counter(before) - Counter((await super().tally()).counts)
            return number

        async def tally(self):
            right = await super().tally()
            return Tally(dict(Counter(right.counts) + self.deleted), right.oldest)

    caught(Broken, MOVES, MODEL)


def test_a_store_that_counts_a_dead_letter_sent_round_again_twice_is_caught():
    class Broken(MemoryStore):
        def __init__(self):
            super().__init__()
            self.extra = Counter()

        async def redrive(self, which, policy, **options):
            redriven = await super().redrive(which, policy, **options)
            self.extra.update((job.queue, job.name, State.DEAD) for job in await super().get(redriven.revived))
            return redriven

        async def tally(self):
            right = await super().tally()
            return Tally(dict(Counter(right.counts) + self.extra), right.oldest)

    caught(Broken, MOVES, MODEL)


def test_a_store_that_does_not_count_the_next_copy_of_an_interval_is_caught():
    class Broken(Counting):
        def meant(self, job):
            return job.schedule is None

    caught_in_counting(Broken, MOVES, MODEL)


def test_a_store_that_counts_the_first_thousand_is_caught():
    class Broken(Counting):
        async def jobs(self):
            return (await super().jobs())[:1000]

    caught_in_counting(Broken, LARGE)


def test_a_store_that_changes_jobs_while_it_counts_them_is_caught():
    class Broken(MemoryStore):
        async def tally(self):
            for job in await super().find(EVERYTHING, limit=100):
                if job.state is State.PENDING:
                    await super().run_now(EVERYTHING)
            return await super().tally()

    caught(Broken, "find.looking_changes_nothing", MODEL)


def test_a_store_that_counts_nothing_while_it_is_fenced_is_caught():
    class Broken(MemoryStore):
        async def tally(self):
            return Tally({}, {}) if self._mark is not None else await super().tally()

    caught(Broken, "fence.a_source_refuses_every_change_and_names_the_other", "transfer.what_is_restored_is_as_it_was")


def test_a_store_that_goes_on_counting_what_was_moved_away_is_caught():
    class Broken(MemoryStore):
        def __init__(self):
            super().__init__()
            self.gone = Counter()

        async def remove(self, cargo, **options):
            self.gone.update((job.queue, job.name, job.state) for job in cargo.jobs)
            return await super().remove(cargo, **options)

        async def tally(self):
            right = await super().tally()
            return Tally(dict(Counter(right.counts) + self.gone), right.oldest)

    caught(Broken, "transfer.what_is_removed_is_gone_with_its_keys")
