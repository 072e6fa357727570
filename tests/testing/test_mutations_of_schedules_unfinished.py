"""Stores broken in what they do while the last firing is unfinished, each caught by the contract test that speaks of it."""

from __future__ import annotations

from dataclasses import replace

from broken_schedules import Firer, caught_in_firing

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import UNFINISHED, Enqueued, Key, State

STEP = "firings.a_firing_enqueues_its_job_and_advances_the_schedule"
ORDER = "firings.a_batch_is_answered_in_its_order"
SKIPPED = "firings.while_a_firing_is_unfinished_the_next_is_skipped"
TRIED_AGAIN = "firings.a_firing_that_waits_for_its_next_try_is_unfinished"
REDRIVEN = "firings.a_redriven_firing_blocks_no_later_one"
DELETED = "firings.a_firing_that_was_deleted_blocks_no_later_one"
MADE_ANEW = "firings.a_schedule_that_is_made_anew_waits_for_the_firing_of_the_old_one"
BY_HAND = "firings.a_run_by_hand_is_a_firing"
NO_FIRING = "firings.a_job_of_the_same_name_is_no_firing"
OWN = "firings.schedules_of_one_job_name_do_not_stand_in_each_others_way"
ONE_WINS = "firings.of_many_that_fire_the_same_time_one_wins"


def test_a_store_that_fires_beside_an_unfinished_firing_is_caught():
    class Broken(Firer):
        async def enqueued(self, firing, now):
            [answer] = await self.enqueue([replace(firing.job, key=None)], now=now)
            return answer

    caught_in_firing(Broken, SKIPPED, TRIED_AGAIN, MADE_ANEW, BY_HAND, STEP)


def test_a_store_that_leaves_a_schedule_due_whose_firing_is_skipped_is_caught():
    class Broken(Firer):
        def advanced(self, current, firing, answer, now):
            return super().advanced(current, firing, answer, now) if answer.created else current

    caught_in_firing(Broken, SKIPPED, ORDER)


def test_a_store_that_takes_a_skipped_firing_for_a_run_is_caught():
    class Broken(Firer):
        def advanced(self, current, firing, answer, now):
            return replace(super().advanced(current, firing, answer, now), last_at=now)

    caught_in_firing(Broken, SKIPPED, MADE_ANEW)


def test_a_store_that_forgets_the_last_run_with_a_skipped_firing_is_caught():
    class Broken(Firer):
        def advanced(self, current, firing, answer, now):
            return replace(super().advanced(current, firing, answer, now), last_at=now if answer.created else None)

    caught_in_firing(Broken, SKIPPED)


def test_a_store_that_leaves_the_revision_of_a_skipped_firing_is_caught():
    class Broken(Firer):
        def advanced(self, current, firing, answer, now):
            after = super().advanced(current, firing, answer, now)
            return after if answer.created else replace(after, revision=current.revision)

    caught_in_firing(Broken, SKIPPED)


def test_a_store_that_answers_nothing_for_a_skipped_firing_is_caught():
    class Broken(Firer):
        async def fire_one(self, firing, now):
            answer = await super().fire_one(firing, now)
            return answer if answer and answer.created else None

    caught_in_firing(Broken, SKIPPED, ORDER, MADE_ANEW, BY_HAND)


def test_a_store_that_says_that_a_skipped_firing_is_new_is_caught():
    class Broken(Firer):
        async def fire_one(self, firing, now):
            answer = await super().fire_one(firing, now)
            return answer and replace(answer, created=True)

    caught_in_firing(Broken, SKIPPED, ORDER, TRIED_AGAIN)


def test_a_store_that_answers_a_skipped_firing_with_the_id_it_was_given_is_caught():
    class Broken(Firer):
        async def fire_one(self, firing, now):
            answer = await super().fire_one(firing, now)
            return answer and replace(answer, id=firing.job.id)

    caught_in_firing(Broken, SKIPPED, ORDER, TRIED_AGAIN)


def test_a_store_that_hurries_the_unfinished_firing_is_caught():
    class Broken(Firer):
        async def enqueued(self, firing, now):
            answer = await super().enqueued(firing, now)
            await self.run_now(JobFilter(ids=[answer.id]), now=now)
            return replace(answer, job=(await self.get([answer.id]))[0])

    caught_in_firing(Broken, SKIPPED)


def test_a_store_that_puts_the_new_firing_in_the_place_of_the_waiting_one_is_caught():
    class Broken(Firer):
        async def enqueued(self, firing, now):
            waiting = [job.id for job in await self.unfinished() if job.key == firing.job.key]
            await self.delete(JobFilter(ids=waiting), now=now)
            return await super().enqueued(firing, now)

    caught_in_firing(Broken, SKIPPED, TRIED_AGAIN, MADE_ANEW)


def test_a_store_that_lets_a_firing_go_once_it_runs_is_caught():
    class Broken(Firer):
        async def enqueued(self, firing, now):
            running = [job for job in await self.unfinished() if job.state is State.RUNNING and job.key == firing.job.key]
            if running:
                [answer] = await self.enqueue([replace(firing.job, key=None)], now=now)
                return answer
            return await super().enqueued(firing, now)

    caught_in_firing(Broken, SKIPPED)


def test_a_store_that_lets_a_firing_go_after_its_first_try_is_caught():
    class Broken(Firer):
        async def enqueued(self, firing, now):
            if any(job.attempts and job.state is State.PENDING for job in await self.unfinished()):
                [answer] = await self.enqueue([replace(firing.job, key=None)], now=now)
                return answer
            return await super().enqueued(firing, now)

    caught_in_firing(Broken, TRIED_AGAIN)


class Looking(Firer):
    """A store that looks for the unfinished firing by what `in_the_way` says, and not by the key that jobs hold."""

    def in_the_way(self, job, new):
        return job.key == new.key and job.state in UNFINISHED

    async def enqueued(self, firing, now):
        for job in await self.find(EVERYTHING, limit=1000):
            if self.in_the_way(job, firing.job):
                return Enqueued(job.id, False, job)
        return await super().enqueued(firing, now)


def test_a_store_that_skips_while_the_dead_firing_is_there_is_caught():
    class Broken(Looking):
        def in_the_way(self, job, new):
            return job.key == new.key and job.state is not State.DONE

    caught_in_firing(Broken, SKIPPED)


def test_a_store_that_skips_while_any_firing_is_there_is_caught():
    class Broken(Looking):
        def in_the_way(self, job, new):
            return job.key == new.key

    caught_in_firing(Broken, SKIPPED, ONE_WINS)


def test_a_store_that_skips_for_a_redriven_firing_is_caught():
    class Broken(Looking):
        def in_the_way(self, job, new):
            return job.schedule == new.schedule and job.state in UNFINISHED

    caught_in_firing(Broken, REDRIVEN)


def test_a_store_that_skips_for_any_job_of_that_name_is_caught():
    class Broken(Looking):
        def in_the_way(self, job, new):
            return job.name == new.name and job.state in UNFINISHED

    caught_in_firing(Broken, OWN, NO_FIRING, REDRIVEN)


def test_a_store_that_skips_for_a_key_of_another_kind_is_caught():
    class Broken(Looking):
        def in_the_way(self, job, new):
            return job.key is not None and job.key.text == new.key.text and job.state in UNFINISHED

    caught_in_firing(Broken, NO_FIRING)


def test_a_store_that_skips_only_for_what_it_has_fired_itself_is_caught():
    class Broken(Firer):
        def __init__(self):
            super().__init__()
            self.fired = {}

        async def enqueued(self, firing, now):
            last = await self.get([self.fired.get(firing.schedule.name, "")])
            if last and last[0].state in UNFINISHED:
                return Enqueued(last[0].id, False, last[0])
            self.fired[firing.schedule.name] = firing.job.id
            own = Key("dedupe", f"fired {firing.job.id}")
            [answer] = await self.enqueue([replace(firing.job, key=own)], now=now)
            return answer

    caught_in_firing(Broken, BY_HAND)


def test_a_store_that_goes_by_ids_that_are_gone_is_caught():
    class Broken(Firer):
        def __init__(self):
            super().__init__()
            self.ended = set()
            self.fired = {}

        async def finish(self, endings, **options):
            took = await super().finish(endings, **options)
            self.ended |= {claim.id for claim in took}
            return took

        async def enqueued(self, firing, now):
            last = self.fired.get(firing.schedule.name)
            if last is not None and last.id not in self.ended:
                return replace(last, created=False)
            answer = self.fired[firing.schedule.name] = await super().enqueued(firing, now)
            return answer

    caught_in_firing(Broken, DELETED)


def test_a_store_that_forgets_the_firing_with_its_schedule_is_caught():
    class Broken(Firer):
        async def enqueued(self, firing, now):
            current = await self.get_schedule(firing.schedule.name)
            if current.last_at is None:
                [answer] = await self.enqueue([replace(firing.job, key=None)], now=now)
                return answer
            return await super().enqueued(firing, now)

    caught_in_firing(Broken, MADE_ANEW, BY_HAND)
