"""Payloads: what goes in comes back exactly as JSON means it, through every way round (E5)."""

from __future__ import annotations

from treadle.core.filter import EVERYTHING
from treadle.core.outcome import Dead, Done, Released, RetryAfter
from treadle.core.payload import JSON, encode
from treadle.core.policies.redrive import RedrivePolicy
from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

payloads = Group[Trial]("payloads")

EMPTIES: JSON = {"items": [], "map": {}, "nested": [[], [{}]], "t": True, "n": None}

CASES: dict[str, JSON] = {
    "nothing": None,
    "an empty text": "",
    "text with NUL": "a\0b",
    "NUL in a key": {"s": "a\0b", "\0": 1},
    "emoji and accents": "\U0001f9f5 é e\u0301 \u202e \ufeff \u2028",
    "quotes and backslashes": "'\"\\`$%{}\r\n\t\x1f\x7f",
    "booleans": [True, False],
    "zero and one are no booleans": [0, 1, 0.0, 1.0],
    "a large integer": 2**80,
    "integers at the edges of 53 and 64 bits": [2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1],
    "minus zero": [-0.0, 0.0, 0, -1],
    "floats": [0.1, 1e-7, 1e308, -1e308, 5e-324, 1.7976931348623157e308, 123456789.123456789, 1e16, 1e22],
    "a float that is whole": [1.0, 1e2, 100, 1000000.0],
    "keys in their order": {"b": 1, "a": 2, "c": 3, "B": 4, "10": 5, "9": 6, "": 7},
    "lists and objects that are empty": EMPTIES,
    "a list of one empty list": [[]],
    "nested": {"a": [{"b": [{"c": [[[{"d": None}]]]}]}]},
    "text that looks like something else": ["null", "true", "1", "{}", "[]", "1e5", "\\u0000", "cjson.empty_array"],
}


async def _same(t: Trial, id: str, payload: JSON, words: str) -> None:
    expect.same_json((await t.job(id)).payload_json, encode(payload), words)


@payloads
async def every_kind_of_json_comes_back(t: Trial) -> None:
    """NUL, emoji, integers beyond 64 bits, floats, minus zero, key order: every operation answers it exactly (E5)."""
    for words, payload in CASES.items():
        new = t.new("job", payload)
        [answer] = await t.enqueue(new)
        expect.same_json(answer.job.payload_json, new.payload_json, f"enqueue answers {words} as it was")
        await _same(t, new.id, payload, f"get answers {words} as it was")
        claimed = expect.one(await t.claimable(), "a claim takes the one due job")
        expect.same_json(claimed.payload_json, new.payload_json, f"a claim answers {words} as it was")
    found = await t.store.find(EVERYTHING, limit=100, now=t.now)
    for job, (words, payload) in zip(reversed(found), CASES.items(), strict=True):
        expect.same_json(job.payload_json, encode(payload), f"find answers {words} as it was")


@payloads
async def a_batch_of_all_kinds_comes_back(t: Trial) -> None:
    """One batch of all these payloads, stored and claimed together, mixes none of them up (E5)."""
    jobs = [t.new("job", payload) for payload in CASES.values()]
    await t.enqueue(*jobs)
    claimed = await t.claimable()
    for job, new, words in zip(claimed, jobs, CASES, strict=True):
        expect.same_json(job.payload_json, new.payload_json, f"of a batch, {words} comes back as it was")


@payloads
async def a_payload_survives_every_way_round(t: Trial) -> None:
    """Retry, release, expiry, death and redrive leave the payload alone: an empty list stays a list (E5)."""
    payload: JSON = [EMPTIES, CASES["minus zero"], CASES["a large integer"], CASES["keys in their order"], "\0"]
    job = await t.make.pending("job", payload)
    for outcome in (RetryAfter(0.0, "E"), Released(0.0, True), Dead("E")):
        held = await t.hold(job.id)
        expect.same_json(held.job.payload_json, job.payload_json, f"a claim before {outcome} answers the payload as it was")
        await t.end(held, outcome)
        await _same(t, job.id, payload, f"the payload is as it was after {outcome}")
    await t.store.redrive(EVERYTHING, RedrivePolicy.RESET, now=t.now)
    await _same(t, job.id, payload, "the payload is as it was after a redrive")
    held = await t.hold(job.id)
    t.advance(100)
    expired = expect.one(await t.store.expired(1, now=t.now), "expired answers the one running job whose lease is past")
    expect.same_json(expired.job.payload_json, job.payload_json, "expired answers the payload as it was")
    [(_, again)] = await t.store.held([held.claim.token])
    expect.same_json(again.payload_json, job.payload_json, "held answers the payload as it was")
    await t.end(held, Done())
    await _same(t, job.id, payload, "the payload is as it was when the job is done")


@payloads
async def a_held_key_answers_the_payload_that_is_stored(t: Trial) -> None:
    """The same key with other content is answered with what was stored first, untouched (E6)."""
    first = await t.make.pending("job", EMPTIES, idempotency_key="k")
    [answer] = await t.enqueue(t.new("job", {"other": 1}, idempotency_key="k"))
    expect.same_json(answer.job.payload_json, first.payload_json, "the holder of a key is answered with its own payload")


@payloads
async def a_mebibyte_comes_back(t: Trial) -> None:
    """The largest payload allowed is stored and claimed whole (E5)."""
    new = t.new("job", "é\U0001f600a\\" * 116_508)  # nine bytes each, as JSON in UTF-8
    await t.enqueue(new)
    expect.that(len(new.payload_json.encode()) > 1_048_000, "the payload is close to the limit", len(new.payload_json.encode()))
    claimed = expect.one(await t.claimable(), "a claim takes the one due job")
    expect.that(claimed.payload_json == new.payload_json or claimed.payload == new.payload_json, "1 MiB comes back whole")


@payloads
async def the_deepest_payload_comes_back(t: Trial) -> None:
    """A hundred levels of lists and objects are stored and claimed (E4)."""
    payload: JSON = []
    for number in range(99):
        payload = {"a": payload} if number % 2 else [payload]
    new = t.new("job", payload)
    await t.enqueue(new)
    claimed = expect.one(await t.claimable(), "a claim takes the one due job")
    expect.same_json(claimed.payload_json, new.payload_json, "a payload of a hundred levels comes back")
