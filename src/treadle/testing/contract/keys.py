"""Idempotency and dedupe keys: how long they hold, and whom they keep away (E6, E7, E8)."""

from __future__ import annotations

from treadle.core.filter import JobFilter
from treadle.core.job import Key, State
from treadle.core.outcome import Dead, Done, Released, RetryAfter
from treadle.core.policies.redrive import RedrivePolicy
from treadle.core.store import Reclaim
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

keys = Group[Trial]("keys")


async def _held(t: Trial, key: Key, holder: str, words: str) -> None:
    """Enqueueing with the key again is answered with the holder, and changes nothing."""
    before = await t.everything()
    [answer] = await t.enqueue(t.new("job", "new", key=key, queue="elsewhere", priority=5))
    expect.equal((answer.id, answer.created), (holder, False), words)
    expect.same_job(answer.job, await t.job(holder), f"{words}, as it is stored", but={"failures"})
    await t.unchanged(before, f"{words}, and nothing changes")


async def _free(t: Trial, key: Key, words: str) -> str:
    [answer] = await t.enqueue(t.new("job", "new", key=key))
    expect.that(answer.created, words, f"created=False and the holder {answer.id}")
    return answer.id


@keys
async def an_idempotency_key_holds_in_every_state(t: Trial) -> None:
    """A job with an idempotency key answers for it while pending, running, waiting to retry, dead, redriven and done (E6)."""
    key = Key("idempotency", "welcome:1")
    job = await t.make.pending("job", "old", key=key)
    await _held(t, key, job.id, "an idempotency key is held by its pending job")
    held = await t.hold(job.id)
    await _held(t, key, job.id, "an idempotency key is held by its running job")
    await t.end(held, RetryAfter(0.0, "E: no"))
    await _held(t, key, job.id, "an idempotency key is held by its job that waits to be tried again")
    await t.end(await t.hold(job.id), Dead("E: no"))
    await _held(t, key, job.id, "an idempotency key is held by its dead job")
    await t.store.redrive(JobFilter(ids=[job.id]), RedrivePolicy.RESET, now=t.now)
    await _held(t, key, job.id, "an idempotency key is held by its redriven job")
    await t.end(await t.hold(job.id), Done())
    await _held(t, key, job.id, "an idempotency key is held by its done job")


@keys
async def an_idempotency_key_is_freed_by_deleting_its_job(t: Trial) -> None:
    """An idempotency key holds as long as its job is stored, and no longer (E6)."""
    key = Key("idempotency", "k")
    job = await t.make.done("job", key=key)
    await t.store.delete(JobFilter(ids=[job.id]), now=t.now)
    await _free(t, key, "an idempotency key is free once its job is deleted")


@keys
async def a_dedupe_key_holds_while_its_job_is_unfinished(t: Trial) -> None:
    """A job with a dedupe key answers for it while it is pending, running, released or waiting to retry (E7)."""
    key = Key("dedupe", "k")
    job = await t.make.pending("job", "old", key=key)
    await _held(t, key, job.id, "a dedupe key is held by its pending job")
    await t.end(await t.hold(job.id), Released())
    await _held(t, key, job.id, "a dedupe key is held by its released job")
    held = await t.hold(job.id)
    await _held(t, key, job.id, "a dedupe key is held by its running job")
    await t.end(held, RetryAfter(60.0, "E: no"))
    await _held(t, key, job.id, "a dedupe key is held by its job that waits to be tried again")


@keys
async def a_dedupe_key_is_free_once_its_job_is_done(t: Trial) -> None:
    """A done job holds no dedupe key, and the next job with it is a new one (E7)."""
    key = Key("dedupe", "k")
    job = await t.make.done("job", key=key)
    second = await _free(t, key, "a dedupe key is free once its job is done")
    expect.equal((await t.job(job.id)).key, key, "the done job still shows the key that it was enqueued with")
    await _held(t, key, second, "a dedupe key that was free is held by the next job that took it")


@keys
async def a_dedupe_key_is_free_once_its_job_is_dead(t: Trial) -> None:
    """A dead letter holds no dedupe key: the key is no permanent one (E7)."""
    key = Key("dedupe", "k")
    for _ in range(2):
        job_id = await _free(t, key, "a dedupe key is free once its job is dead")
        await t.end(await t.hold(job_id), Dead("E: no"))
    expect.equal(await t.store.count(JobFilter(states=frozenset({State.DEAD})), now=t.now), 2, "both dead letters are kept")


@keys
async def a_dedupe_key_is_freed_by_deleting_its_pending_job(t: Trial) -> None:
    """Deleting the pending holder of a dedupe key frees it (E7)."""
    key = Key("dedupe", "k")
    job = await t.make.pending("job", key=key)
    await t.store.delete(JobFilter(ids=[job.id]), now=t.now)
    await _free(t, key, "a dedupe key is free once its pending job is deleted")


@keys
async def a_dedupe_key_is_freed_by_reclaiming_to_dead(t: Trial) -> None:
    """A job that dies by an expired lease frees its dedupe key like any other dead job (E7, E21)."""
    key = Key("dedupe", "k")
    await t.make.expired("job", key=key)
    expired = expect.one(await t.store.expired(10, now=t.now), "expired answers the one running job whose lease is past")
    await t.reclaim(Reclaim(expired, Dead("visibility timeout exceeded")))
    await _free(t, key, "a dedupe key is free once its job was reclaimed as dead")


@keys
async def deleting_the_old_done_job_leaves_the_key_to_its_new_holder(t: Trial) -> None:
    """A dedupe key that a later job holds is not freed by deleting an earlier finished job that had it (E7)."""
    key = Key("dedupe", "k")
    old = await t.make.done("job", key=key)
    new = await t.make.pending("job", key=key)
    await t.store.delete(JobFilter(ids=[old.id]), now=t.now)
    await _held(t, key, new.id, "a dedupe key stays with its new holder when the old job is deleted")


@keys
async def keys_hold_within_a_batch(t: Trial) -> None:
    """Of several jobs with one key in a batch the first is created, and answers the others (E6, E7, E9)."""
    for kind in ("idempotency", "dedupe"):
        batch = [t.new("job", number, **{f"{kind}_key": f"k{number % 2}"}) for number in range(6)]  # type: ignore[arg-type]  # a computed keyword
        answers = await t.enqueue(*batch)
        expect.equal(
            [one.created for one in answers], [True, True] + [False] * 4, f"the first job of a batch takes its {kind} key"
        )
        expect.equal(
            [one.id for one in answers],
            [batch[number % 2].id for number in range(6)],
            f"the later jobs of a batch are answered with the holder of their {kind} key",
        )
    expect.equal(len(await t.everything()), 4, "only the holders are stored")


@keys
async def a_batch_mixes_held_and_free_keys(t: Trial) -> None:
    """In one batch, jobs with held keys are answered with their holders and the others are created (E9)."""
    held = await t.make.pending("job", idempotency_key="held")
    batch = [t.new("job"), t.new("job", idempotency_key="held"), t.new("job", idempotency_key="free"), t.new("job")]
    answers = await t.enqueue(*batch)
    expect.equal([one.created for one in answers], [True, False, True, True], "only the job with the held key is not created")
    expect.equal(answers[1].id, held.id, "the job with the held key is answered with its holder")


@keys
async def a_key_belongs_to_the_name_of_its_job(t: Trial) -> None:
    """The same key under another job name is another key, and the queue plays no part (E6, E7, E8)."""
    for kind in ("idempotency", "dedupe"):
        first = await t.make.pending("a", key=Key(kind, "k"), queue="q1")
        [other] = await t.enqueue(t.new("b", key=Key(kind, "k"), queue="q1"))
        expect.that(other.created, f"another job name with the same {kind} key is another pair")
        [same] = await t.enqueue(t.new("a", key=Key(kind, "k"), queue="q2"))
        expect.equal((same.created, same.id), (False, first.id), f"a {kind} key holds over all queues")


@keys
async def name_and_key_never_run_together(t: Trial) -> None:
    """No name and key make up the pair of another name and key, however they are put together (E8)."""
    pairs = [
        ("a", "b:c"), ("a:b", "c"), ("a:b:c", "d"), ("a", "b:c:d"), ("a|b", "c"), ("a", "b|c"), ("a/b", "c"), ("a", "b/c"),
        ("a\x1fb", "c"), ("a", "b\x1fc"), ("a,b", "c"), ("a", "b,c"), ("a b", "c"), ("a", "b c"), ("a\nb", "c"), ("a", "b\nc"),
        ('a"', "c"), ("a", '"c'), ("a\\", "c"), ("a", "\\c"), ("1:a", "b"), ("1", "a:b"), ("a{b}", "c"), ("a", "{b}c"),
    ]  # fmt: skip
    for kind in ("idempotency", "dedupe"):
        for name, text in pairs:
            [answer] = await t.enqueue(t.new(name, key=Key(kind, text)))
            expect.that(answer.created, f"the {kind} key {text!r} of job {name!r} is no other pair's")


@keys
async def the_kinds_of_key_are_apart(t: Trial) -> None:
    """The same text as idempotency, dedupe and schedule key of one name are three keys (E6, E7, T4)."""
    for kind in ("idempotency", "dedupe", "schedule"):
        [answer] = await t.enqueue(t.new("job", key=Key(kind, "k")))
        expect.that(answer.created, f"a {kind} key is held by no key of another kind")


@keys
async def keys_are_compared_exactly(t: Trial) -> None:
    """Keys that differ in case, composition or inner white space are different; long ones are compared whole (E8)."""
    long = "\U0001f9f5" * 254
    texts = [
        "k",
        "K",
        "é",
        "e\u0301",
        "a b",
        "a  b",
        "a\tb",
        "%",
        "_",
        "k%",
        "ß",
        "ss",
        "\u200d",
        f"{long}a",
        f"{long}b",
        "1",
        "01",
        "1.0",
    ]
    for text in texts:
        [answer] = await t.enqueue(t.new("job", idempotency_key=text))
        expect.that(answer.created, f"the key {text[-12:]!r} is none of those before it")
    for text in texts:
        [answer] = await t.enqueue(t.new("job", idempotency_key=text))
        expect.equal((answer.created, answer.job.idempotency_key), (False, text), "a key is found again by exactly its text")


@keys
async def jobs_without_a_key_are_never_one(t: Trial) -> None:
    """Jobs without a key are all stored, however alike they are."""
    answers = await t.enqueue(*(t.new("job", "same") for _ in range(5)))
    expect.that(all(one.created for one in answers), "jobs without a key are all created")


@keys
async def a_schedule_key_holds_while_its_job_is_unfinished(t: Trial) -> None:
    """A schedule key is held like a dedupe key: while its job is unfinished (T4, T11)."""
    key = Key("schedule", "every:job")
    job = await t.make.pending("job", key=key)
    await _held(t, key, job.id, "a schedule key is held by its pending job")
    await t.end(await t.hold(job.id), Done())
    await _free(t, key, "a schedule key is free once its job is done")
