"""Stores broken in how they move jobs, each caught by the contract test that speaks of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from broken_stores import MODEL, Rewriting, TokenReader, View, caught

from treadle.core.filter import EVERYTHING, JobFilter
from treadle.core.job import Enqueued, Key, NewJob, State
from treadle.core.outcome import Dead, Released, RetryAfter
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.store import Claim, Claimed, Demand, Ending, Redriven
from treadle.stores.memory.adapter import MemoryStore


def test_a_store_that_answers_a_batch_out_of_order_is_caught():
    class Broken(MemoryStore):
        async def enqueue(self, jobs, **options):
            return sorted(await super().enqueue(jobs, **options), key=lambda answer: answer.id)

    caught(Broken, "enqueue.a_batch_is_answered_in_its_order")


def test_a_store_that_overwrites_a_held_id_is_caught():
    class Broken(MemoryStore):
        async def enqueue(self, jobs, **options):
            await super().delete(JobFilter(ids=[job.id for job in jobs]), now=options.get("now"))
            return await super().enqueue(jobs, **options)

    caught(
        Broken,
        "enqueue.a_held_id_is_answered_with_its_holder",
        "enqueue.repeating_a_batch_stores_nothing_twice",
        "transitions.enqueueing_moves_no_stored_job",
        MODEL,
    )


def test_a_store_that_frees_an_idempotency_key_once_its_job_is_done_is_caught():
    class Broken(MemoryStore):
        async def enqueue(self, jobs, **options):
            done = await super().find(JobFilter(states=frozenset({State.DONE}), keyed=True), limit=1000)
            held = {(job.name, job.key): job.id for job in done}
            ids = [held[job.name, job.key] for job in jobs if (job.name, job.key) in held]
            await super().delete(JobFilter(ids=ids))
            return await super().enqueue(jobs, **options)

    caught(Broken, "keys.an_idempotency_key_holds_in_every_state")


def test_a_store_that_takes_a_dedupe_key_for_a_permanent_one_is_caught():
    class Broken(MemoryStore):
        async def enqueue(self, jobs, **options):
            ended = await super().find(JobFilter(states=frozenset({State.DONE, State.DEAD})), limit=1000)
            for job in ended:
                if job.dedupe_key is not None and any((new.name, new.key) == (job.name, job.key) for new in jobs):
                    return [Enqueued(job.id, False, job)]
            return await super().enqueue(jobs, **options)

    caught(Broken, "keys.a_dedupe_key_is_free_once_its_job_is_done", "keys.a_dedupe_key_is_free_once_its_job_is_dead")


def test_a_store_that_runs_name_and_key_together_is_caught():
    class Broken(MemoryStore):
        def __init__(self):
            super().__init__()
            self.joined = {}

        async def enqueue(self, jobs, **options):
            answers = []
            for job in jobs:
                place = f"{job.name}:{job.key.text}" if job.key else job.id
                if place in self.joined:
                    [holder] = await super().get([self.joined[place]])
                    answers.append(Enqueued(holder.id, False, holder))
                else:
                    self.joined[place] = job.id
                    answers += await super().enqueue([job], **options)
            return answers

    caught(Broken, "keys.name_and_key_never_run_together")


def test_a_store_that_looks_for_keys_only_before_a_batch_is_caught():
    class Broken(MemoryStore):
        async def enqueue(self, jobs, **options):
            keys = [job.key for job in jobs]
            again = [replace(job, key=None) if job.key in keys[:number] else job for number, job in enumerate(jobs)]
            return await super().enqueue(again, **options)

    caught(Broken, "keys.keys_hold_within_a_batch")


def test_a_store_that_ignores_priority_is_caught():
    class Broken(MemoryStore):
        async def claim(self, *args, **options):
            claimed = await super().claim(*args, **options)
            return Claimed(sorted(claimed.jobs, key=lambda job: (job.run_at, job.id)), claimed.next_in)

    caught(Broken, "claim.higher_priorities_go_first", "claim.the_order_holds_over_queues_and_names_together", MODEL)


def test_a_store_that_claims_each_queue_in_turn_is_caught():
    class Broken(MemoryStore):
        async def claim(self, token, demands, **options):
            jobs = []
            for demand in demands:
                for queue in demand.queues or (None,):
                    one = Demand(demand.limit - len(jobs), queue and (queue,), demand.names, demand.max_attempts)
                    jobs += (await super().claim(token, [one], **options)).jobs
            return Claimed(jobs, 0.0)

    caught(Broken, "claim.the_order_holds_over_queues_and_names_together")


def test_a_store_that_claims_names_nobody_handles_is_caught():
    class Broken(MemoryStore):
        async def claim(self, token, demands, **options):
            return await super().claim(token, [Demand(one.limit, one.queues) for one in demands], **options)

    caught(Broken, "claim.unknown_names_are_left_alone", "claim.no_names_is_not_any_name", MODEL)


def test_a_store_that_claims_from_the_queues_of_faces_is_caught():
    class Broken(MemoryStore):
        async def claim(self, token, demands, **options):
            every = tuple({job.queue for job in await super().find(EVERYTHING, limit=1000)})
            demands = [Demand(one.limit, one.queues or every, one.names, one.max_attempts) for one in demands]
            return await super().claim(token, demands, **options)

    caught(Broken, "claim.queues_of_faces_are_claimed_only_by_name", MODEL)


def test_a_store_that_keeps_jobs_with_their_count_used_up_from_their_claim_is_caught():
    class Broken(MemoryStore):
        async def claim(self, *args, **options):
            claimed = await super().claim(*args, **options)
            return Claimed([job for job in claimed.jobs if job.attempts <= (job.max_attempts or 1)], claimed.next_in)

    caught(Broken, "claim.a_used_up_count_never_keeps_a_job_from_its_claim", MODEL)


def test_a_store_that_forgets_when_the_next_job_is_due_is_caught():
    class Broken(MemoryStore):
        async def claim(self, *args, **options):
            return Claimed((await super().claim(*args, **options)).jobs, None)

    caught(Broken, "claim.next_in_is_exact_where_less_came_than_was_asked_for", "claim.next_in_does_not_put_off_what_is_ready")


def test_a_store_that_counts_an_attempt_at_its_end_is_caught():
    class Broken(View):
        def seen(self, job):
            return replace(job, attempts=job.attempts - 1) if job.state is State.RUNNING else job

    caught(Broken, "attempts.an_attempt_counts_at_its_claim", "claim.a_claimed_job_is_running_and_leased", MODEL)


def test_a_store_that_keeps_only_the_last_failure_is_caught():
    class Broken(View):
        def seen(self, job):
            return replace(job, failures=tuple(job.failures)[-1:])

    caught(Broken, "attempts.each_failure_leaves_a_record")


def test_a_store_that_forgets_to_check_the_token_is_caught():
    class Broken(TokenReader):
        async def finish(self, endings, **options):
            known = [Ending(self.now_held(one.claim), one.outcome, one.following) for one in endings]
            took = {claim.id for claim in await super().finish(known, **options)}
            return {one.claim for one in endings if one.claim.id in took}

    caught(Broken, "tokens.a_wrong_token_changes_nothing", "tokens.a_late_result_never_ends_the_next_attempt", MODEL)


def test_a_store_that_renews_for_anybody_is_caught():
    class Broken(TokenReader):
        async def renew(self, claims, lease, **options):
            took = {one.id for one in await super().renew([self.now_held(claim) for claim in claims], lease, **options)}
            return {claim for claim in claims if claim.id in took}

    caught(Broken, "leases.renewing_answers_only_what_holds", MODEL)


def test_a_store_that_says_every_claim_held_is_caught():
    class Broken(MemoryStore):
        async def finish(self, endings, **options):
            await super().finish(endings, **options)
            return {one.claim for one in endings}

    caught(Broken, "tokens.a_token_holds_once", "finish.a_batch_applies_what_holds_and_leaves_the_rest", MODEL)


def test_a_store_that_forgets_what_a_lost_claim_took_is_caught():
    class Broken(MemoryStore):
        async def held(self, tokens):
            return []

    caught(Broken, "tokens.held_answers_what_a_lost_claim_took", MODEL)


def test_a_store_that_drops_the_note_is_caught():
    class Broken(View):
        def seen(self, job):
            return replace(job, note=None)

    caught(Broken, "finish.done_keeps_the_note")


def test_a_store_that_applies_one_outcome_to_a_whole_batch_is_caught():
    class Broken(MemoryStore):
        async def finish(self, endings, **options):
            return await super().finish([Ending(one.claim, endings[0].outcome) for one in endings], **options)

    caught(Broken, "finish.a_batch_applies_each_outcome_to_its_own_job")


def test_a_store_that_spends_the_attempt_of_a_release_is_caught():
    class Broken(Rewriting):
        def outcome_in(self, outcome):
            return RetryAfter(outcome.seconds, "released") if isinstance(outcome, Released) else outcome

    caught(Broken, "release.the_attempt_is_refunded", "finish.a_release_gives_the_attempt_back", MODEL)


def test_a_store_that_counts_a_snooze_as_an_interruption_is_caught():
    class Broken(Rewriting):
        def outcome_in(self, outcome):
            return replace(outcome, interrupted=True) if isinstance(outcome, Released) else outcome

    caught(Broken, "release.a_snooze_is_no_interruption")


def test_a_store_that_reclaims_a_renewed_lease_is_caught():
    class Broken(TokenReader):
        async def reclaim(self, reclaims, **options):
            return await super().finish([Ending(one.expired.claim, one.outcome) for one in reclaims], **options)

    caught(
        Broken, "leases.a_lease_that_was_renewed_meanwhile_is_not_reclaimed", "leases.a_lease_that_is_not_past_is_not_reclaimed"
    )


def test_a_store_that_sweeps_its_own_queue_only_is_caught():
    class Broken(MemoryStore):
        async def expired(self, limit, **options):
            return [one for one in await super().expired(limit, **options) if one.job.queue == "default"]

    caught(Broken, "leases.expired_looks_at_every_queue_and_name_longest_past_first", MODEL)


def test_a_store_that_renews_from_the_old_lease_is_caught():
    class Broken(MemoryStore):
        async def renew(self, claims, lease, *, now=None):
            jobs = await super().get([claim.id for claim in claims])
            old = max((job.lease_until for job in jobs if job.lease_until), default=now)
            return await super().renew(claims, lease, now=old)

    caught(Broken, "leases.renewing_leases_from_now", MODEL)


def test_a_store_that_revives_two_of_one_key_is_caught():
    class Broken(MemoryStore):
        async def redrive(self, which, policy, **options):
            dead = await super().find(replace(which, states=frozenset({State.DEAD})), limit=1000, now=options.get("now"))
            answer = await super().redrive(which, policy, **options)
            lost = {job.id: job for job in dead if job.id in answer.dropped}
            again = [replace(_new(lost[one]), key=None) for one in answer.dropped]
            await super().enqueue(again, now=options.get("now"))
            return Redriven([*answer.revived, *answer.dropped], [])

    caught(Broken, "redrive.of_twins_in_one_call_the_oldest_is_revived", "redrive.a_dead_letter_whose_key_is_taken_is_dropped")


def test_a_store_that_resets_whatever_the_policy_is_caught():
    class Broken(MemoryStore):
        async def redrive(self, which, policy, **options):
            return await super().redrive(which, RedrivePolicy.RESET, **options)

    caught(Broken, "redrive.a_kept_count_gives_one_more_try", MODEL)


def test_a_store_that_keeps_the_schedule_key_of_a_redriven_firing_is_caught():
    class Broken(View):
        def seen(self, job):
            key = job.key or (Key("schedule", job.schedule) if job.schedule else None)
            return replace(job, key=key)

    caught(Broken, "redrive.a_schedule_key_is_cleared")


def test_a_store_that_hurries_whatever_matches_is_caught():
    class Broken(MemoryStore):
        async def run_now(self, which, **options):
            return max(await super().count(which, **options), await super().run_now(which, **options))

    caught(Broken, "run_now.only_pending_jobs_are_run_now", "transitions.only_a_pending_job_is_run_now", MODEL)


def test_a_store_that_deletes_running_jobs_is_caught():
    class Broken(TokenReader):
        async def delete(self, which, *, limit=None, now=None):
            running = await super().find(replace(which, states=frozenset({State.RUNNING})), limit=1000, now=now)
            await super().finish([Ending(self.now_held(Claim(job.id, "")), Dead("gone")) for job in running], now=now)
            return await super().delete(which, limit=limit, now=now)

    caught(
        Broken,
        "delete.running_jobs_are_never_deleted",
        "transitions.only_a_running_job_is_kept_from_deletion",
        MODEL,
    )


def test_a_store_whose_age_is_exclusive_is_caught():
    class Broken(MemoryStore):
        async def delete(self, which, *, limit=None, now=None):
            if which.older_than is not None:
                now -= timedelta(microseconds=1)
            return await super().delete(which, limit=limit, now=now)

    caught(Broken, "delete.age_counts_from_the_end_inclusive", "delete.age_zero_reaches_everything")


def test_a_store_that_deletes_beyond_its_limit_is_caught():
    class Broken(MemoryStore):
        async def delete(self, which, *, limit=None, now=None):
            return await super().delete(which, now=now)

    caught(Broken, "delete.the_oldest_go_first_up_to_the_limit", MODEL)


def _new(job):
    return NewJob(job.id, job.name, job.payload_json, job.queue, run_at=job.run_at, priority=job.priority)
