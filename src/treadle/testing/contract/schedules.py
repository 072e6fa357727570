"""Cron schedules: stored under a revision, listed by name, and found when they are due (T9 to T14)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta, timezone

from treadle.core.cron import Cron
from treadle.core.payload import JSON
from treadle.core.schedule import Schedule
from treadle.core.store import REWOUND
from treadle.testing.contract import expect
from treadle.testing.contract.nightly import MANY, NAME, fire, fired, is_now, names, nightly, stored, there
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

schedules = Group[Trial]("schedules")


@schedules
async def a_schedule_comes_back_as_it_was_stored(t: Trial) -> None:
    """Every field of a schedule, its template and its moments included, is kept exactly."""
    payload: JSON = {"ключ": ["😀", 1.5, None, [], {}, 2**53 - 1], "b": 1.0, "a": -0.0}
    template = replace(t.new("clean", payload), queue="nights", priority=-4, max_attempts=9)
    wanted = replace(
        Schedule.of("plugin:x/nightly", Cron("*/30 * * * * *", "America/New_York", seconds=True), template),
        next_at=t.at(1.000001),
        last_at=t.at(-4.999999),
        paused=True,
    )
    kept = await stored(t, wanted)
    expect.equal(kept, replace(wanted, revision=1), "put_schedule answers the schedule as stored, at revision 1")
    expect.equal(await t.store.get_schedule(wanted.name), kept, "get_schedule answers what was stored")
    expect.equal(await t.store.list_schedules(), [kept], "list_schedules answers what was stored")
    expect.equal(await t.store.get_schedule("other"), None, "a name that is not stored is None")
    plain = Schedule.of("plain", Cron("0 3 * * *"), t.new())
    expect.equal(await stored(t, plain), replace(plain, revision=1), "a schedule without a next or last run is answered so")
    expect.equal(await t.store.get_schedule("plain"), replace(plain, revision=1), "and a template without a limit keeps none")


@schedules
async def moments_are_kept_in_utc(t: Trial) -> None:
    """Whatever zone the next and the last run are given in, they are answered in UTC, as what is due is (E1)."""
    zone = timezone(timedelta(hours=5, minutes=45))
    moment = t.now.astimezone(zone)
    answer = await stored(t, replace(nightly(t), next_at=moment, last_at=moment))
    due = expect.one((await t.store.due_schedules(1, now=t.now)).schedules, "the schedule is due at that moment")
    for schedule in (answer, await there(t), due):
        for kept in (schedule.next_at, schedule.last_at):
            expect.equal(kept, t.now, "a moment given in another zone is the same moment")
            expect.equal(kept and kept.utcoffset(), timedelta(0), "a schedule's moments are in UTC")
    fires_next = t.at(60).astimezone(zone)
    await fired(t, answer, fires_next)
    next_at = (await there(t)).next_at
    expect.equal(next_at, t.at(60), "a firing's next run is the moment that it was given")
    expect.equal(next_at and next_at.utcoffset(), timedelta(0), "and it is in UTC too")


@schedules
async def a_schedule_is_put_only_over_the_revision_expected(t: Trial) -> None:
    """`expect` compares and sets; the revision goes up by one with each put."""
    wanted = nightly(t)
    expect.equal(await t.store.put_schedule(wanted, expect=1), None, "where none is stored, revision 1 is not there")
    expect.equal(await t.store.get_schedule(wanted.name), None, "what was refused is not stored")
    first = await t.store.put_schedule(wanted, expect=0)
    expect.that(first is not None and first.revision == 1, "expect=0 stores where none is", first)
    expect.equal(await t.store.put_schedule(wanted, expect=0), None, "expect=0 stores nothing where one is")
    second = await t.store.put_schedule(replace(wanted, paused=True), expect=1)
    expect.that(second is not None and second.revision == 2 and second.paused, "the expected revision is replaced", second)
    for other in (1, 3):
        expect.equal(await t.store.put_schedule(wanted, expect=other), None, f"2 is there, so {other} replaces nothing")
    expect.equal(await t.store.get_schedule(wanted.name), second, "what was refused changed nothing")


@schedules
async def what_is_put_takes_the_place_of_all_that_was(t: Trial) -> None:
    """Every field is that of the last put, none of the one before; the revision counts from the stored one alone."""
    before = replace(nightly(t, due_in=60), last_at=t.at(-60), paused=True)
    await stored(t, before)
    template = t.new("sweep", [1], priority=-1)
    wanted = Schedule.of(NAME, Cron("*/5 * * * * *", "Asia/Tokyo", seconds=True), template)
    after = await stored(t, replace(wanted, revision=41))
    expect.equal(after, replace(wanted, revision=2), "a put replaces every field, also by none, at the next revision")
    expect.equal(await t.store.get_schedule(NAME), after, "and is stored as it is answered")
    back = await t.store.put_schedule(replace(before, revision=7), expect=2)
    expect.equal(back, replace(before, revision=3), "a put over an expected revision replaces every field too")
    expect.equal(await t.store.list_schedules(), [back], "there is still one schedule of that name")


@schedules
async def of_many_that_put_over_one_revision_one_wins(t: Trial) -> None:
    """Two changes made from the same state never both stand, and of many that create one name one does (T9)."""
    for revision in range(4):
        many = [replace(nightly(t), expression=f"{number} 3 * * *") for number in range(8)]
        answers = await asyncio.gather(*(t.store.put_schedule(one, expect=revision) for one in many))
        won = [answer for answer in answers if answer is not None]
        expect.equal(len(won), 1, f"of eight puts over revision {revision} one is stored")
        expect.equal(await t.store.get_schedule(NAME), won[0], "and it is the one whose put was answered")


@schedules
async def no_put_is_lost_among_others(t: Trial) -> None:
    """Without `expect` each put is stored, one after the other, at a revision of its own."""
    answers = await asyncio.gather(*(stored(t, nightly(t)) for _ in range(8)))
    expect.equal(sorted(one.revision for one in answers), [*range(1, 9)], "eight puts at once make eight revisions")


@schedules
async def names_are_told_apart_exactly(t: Trial) -> None:
    """Names that differ in case, composition or white space are different schedules (T14)."""
    texts = ["k", "K", "é", "e\u0301", "a b", "a  b", "a b ", "ß", "ss", "k%", "plugin:x/k", "plugin:x", "1", "01"]
    for number, text in enumerate(texts):
        answer = await t.store.put_schedule(nightly(t, text, due_in=number), expect=0)
        expect.that(answer is not None, f"the schedule {text!r} is none of those before it")
    for number, text in enumerate(texts):
        expect.equal((await there(t, text)).next_at, t.at(number), f"the schedule {text!r} is found by exactly its name")
    expect.equal(await t.store.delete_schedule("k"), True, "deleting goes by exactly the name")
    expect.equal(names(await t.store.list_schedules()), sorted(texts[1:]), "and leaves all others")


@schedules
async def schedules_are_listed_by_name_and_deleted(t: Trial) -> None:
    """Listing goes by name in code-point order, with prefix, paging and limit; deleting answers whether it was there."""
    for name in ("b", "a", "a%", "B", "a_b", "ab", "é", "f", "😀"):
        await stored(t, nightly(t, name))
    listed = names(await t.store.list_schedules())
    expect.equal(listed, ["B", "a", "a%", "a_b", "ab", "b", "f", "é", "😀"], "schedules are listed by name")
    listed = names(await t.store.list_schedules(prefix="a", after="a", limit=2))
    expect.equal(listed, ["a%", "a_b"], "prefix, after and limit narrow the list")
    expect.equal(await t.store.delete_schedule("a%"), True, "deleting answers that it was there")
    expect.equal(await t.store.delete_schedule("a%"), False, "deleting again answers that it was not")
    expect.equal(await t.store.get_schedule("a%"), None, "a deleted schedule is gone")
    expect.equal(len(await t.store.list_schedules()), 8, "the others stay")


@schedules
async def a_prefix_means_itself(t: Trial) -> None:
    """A prefix is plain text: percent sign, underline, backslash, star and emoji are no wildcards."""
    texts = ["a", "a%1", "a_1", "a1", "ab", "a\\1", "a*1", "a?1", "a[1", "A1", "b", "é", "a😀", "😀", "😀1"]
    for text in texts:
        await stored(t, nightly(t, text))
    for prefix in ("", "a", "A", "a%", "a_", "a\\", "a*", "a?", "a[", "a😀", "😀", "c", "a%1"):
        expected = sorted(text for text in texts if text.startswith(prefix))
        listed = names(await t.store.list_schedules(prefix=prefix))
        expect.equal(listed, expected, f"the prefix {prefix!r} means names that begin with it")


@schedules
async def pages_follow_on_each_other(t: Trial) -> None:
    """`after` and `limit` cut a list into pages, with a prefix too; `after` may be a name that is not there."""
    a = [f"a{number}" for number in range(7)]
    for name in [*a, "b", "0"]:
        await stored(t, nightly(t, name))
    pages: list[str] = []
    for size in (3, 3, 1, 0):
        page = names(await t.store.list_schedules(prefix="a", after=pages[-1] if pages else "", limit=3))
        expect.equal(len(page), size, "a page has as many schedules as there are, up to its limit")
        pages += page
    expect.equal(pages, a, "the pages together are the whole list")
    for prefix, after, expected in (("", "a5x", ["a6", "b"]), ("a", "0", a), ("a", "b", []), ("a", "a6", [])):
        listed = names(await t.store.list_schedules(prefix=prefix, after=after))
        expect.equal(listed, expected, f"names after {after!r} with the prefix {prefix!r}")
    expect.equal(await t.store.list_schedules(limit=0), [], "a limit of 0 is no schedule")


@schedules
async def many_are_listed_and_due_in_one_call(t: Trial) -> None:
    """A call answers as many as are there and were asked for, however many that is."""
    texts = [f"s{number:03}" for number in range(MANY)]
    await asyncio.gather(*(stored(t, nightly(t, name, due_in=-number)) for number, name in enumerate(texts)))
    expect.equal(names(await t.store.list_schedules()), texts, f"{MANY} schedules are listed in one call")
    due = await t.store.due_schedules(MANY, now=t.now)
    expect.equal(names(due.schedules), texts[::-1], f"{MANY} schedules are due in one call, earliest first")
    expect.equal(due.next_in, None, "and none is left")


@schedules
async def a_deleted_schedule_begins_again(t: Trial) -> None:
    """Where a schedule was deleted there is none: it is made anew at revision 1, without what it was (T14)."""
    await stored(t, nightly(t))
    await stored(t, replace(nightly(t), last_at=t.at(-60)))
    await t.store.delete_schedule(NAME)
    expect.equal(await t.store.put_schedule(nightly(t), expect=2), None, "the revision of what was deleted is not there")
    again = await t.store.put_schedule(nightly(t), expect=0)
    expect.equal(again, replace(nightly(t), revision=1), "it begins again at revision 1")


@schedules
async def what_is_due_comes_earliest_first_with_the_time_of_the_next(t: Trial) -> None:
    """Due schedules at or before now, no paused and no ended ones, at most so many; and how long until the next."""
    coming = (("now", 0.0), ("overdue", -60.0), ("later", 99.0), ("soon", 12.500001), ("just", 0.000001))
    for name, due_in in coming:
        await stored(t, nightly(t, name, due_in=due_in))
    for name, due_in in (("paused", -5.0), ("paused, soon", 3.0)):
        await stored(t, replace(nightly(t, name, due_in=due_in), paused=True))
    await stored(t, replace(nightly(t, "ended"), next_at=None))
    due = await t.store.due_schedules(10, now=t.now)
    expect.equal(names(due.schedules), ["overdue", "now"], "what is due comes earliest first")
    expect.equal([*due.schedules], [await there(t, "overdue"), await there(t, "now")], "each as it is stored")
    expect.equal((due.now, due.next_in), (t.now, 0.000001), "the answer says the store's now, and when the next one is due")
    due = await t.store.due_schedules(1, now=t.now)
    expect.equal(names(due.schedules), ["overdue"], "no more than the limit, the earliest")
    expect.equal(due.next_in, 0.0, "more are due at once")
    due = await t.store.due_schedules(2, now=t.now)
    expect.equal(due.next_in, 0.000001, "where as many are due as were asked for, the next one is the first that is not due")
    due = await t.store.due_schedules(10, now=t.at(1))
    expect.equal(names(due.schedules), ["overdue", "now", "just"], "asking takes nothing away, and time adds to it")
    expect.equal(due.next_in, 11.500001, "how long until the next one counts from now, and passes over paused ones")
    due = await t.store.due_schedules(10, now=t.at(1000))
    expect.equal(due.next_in, None, "where none is left, there is no next time")


@schedules
async def what_is_due_follows_every_change(t: Trial) -> None:
    """After each put, firing and deletion, what is due and what comes next are of the schedule as it is then."""

    async def due(words: str, *expected: str, next_in: float | None = None) -> None:
        answer = await t.store.due_schedules(10, now=t.now)
        expect.equal((names(answer.schedules), answer.next_in), ([*expected], next_in), f"{words}: what is due, and the next")

    await stored(t, nightly(t, due_in=-1))
    await due("a schedule that is late", NAME)
    await stored(t, replace(await there(t), paused=True))
    await due("a schedule that was paused")
    await stored(t, replace(await there(t), paused=False))
    await due("a schedule that was resumed", NAME)
    await stored(t, replace(await there(t), next_at=None))
    await due("a schedule that was ended")
    await stored(t, replace(await there(t), next_at=t.at(30)))
    await due("a schedule that was put off", next_in=30.0)
    t.advance(30)
    await due("a schedule whose time has come", NAME)
    await fired(t, await there(t), t.at(60))
    await due("a schedule that fired", next_in=60.0)
    t.advance(60)
    await due("a schedule whose next time has come", NAME)
    await fire(t, await there(t), t.at(45))
    await due("a schedule whose firing was skipped", next_in=45.0)
    await t.store.delete_schedule(NAME)
    await due("a schedule that was deleted")
    t.advance(100)
    await due("a schedule that was deleted, at its time")


@schedules
async def a_store_without_schedules_has_none_due(t: Trial) -> None:
    """Nothing is due and nothing is next."""
    due = await t.store.due_schedules(10, now=t.now)
    expect.equal((due.now, list(due.schedules), due.next_in), (t.now, [], None), "nothing is due")
    expect.equal(await t.store.list_schedules(), [], "nothing is listed")


@schedules
async def without_a_moment_the_stores_own_clock_decides(t: Trial) -> None:
    """The store's own now is an aware moment near this machine's; it decides what is due (S9)."""
    own = (await t.store.due_schedules(0)).now
    expect.equal(own.utcoffset(), timedelta(0), "the store's own now is in UTC")
    expect.that(is_now(own), "the store's own now is about this machine's", own)
    for name, days in (("ago", -2), ("to come", 2)):
        await stored(t, replace(nightly(t, name), next_at=own + timedelta(days=days)))
    due = await t.store.due_schedules(10)
    expect.equal(names(due.schedules), ["ago"], "what is due by the store's own clock")
    expect.that(due.next_in is not None and 86_400 < due.next_in <= 172_800, "the next one is two days off", due.next_in)


@schedules
async def a_clock_that_was_set_back_is_noticed(t: Trial) -> None:
    """A schedule that last fired more than a minute in the future is among the due ones, so that it is computed anew."""
    expect.equal(REWOUND, 60.0, "a clock may be wrong by a minute")
    await stored(t, replace(nightly(t, "ahead", due_in=7200), last_at=t.at(3600)))
    await stored(t, replace(nightly(t, "ended"), next_at=None, last_at=t.at(60.000001)))
    await stored(t, replace(nightly(t, "due as well", due_in=-5), last_at=t.at(3600)))
    await stored(t, replace(nightly(t, "paused", due_in=7200), last_at=t.at(3600), paused=True))
    await stored(t, replace(nightly(t, "jitter", due_in=7300), last_at=t.at(60)))
    due = await t.store.due_schedules(10, now=t.now)
    expected = ["ahead", "due as well", "ended"]
    expect.equal(sorted(names(due.schedules)), expected, "the clock ran ahead for these, each of which comes once")
    expect.equal(due.next_in, 7300.0, "the next one is the first of the others")
    due = await t.store.due_schedules(2, now=t.now)
    expect.equal((len(due.schedules), due.next_in), (2, 0.0), "the limit counts them too, and more are left")
    due = await t.store.due_schedules(3, now=t.now)
    expect.equal((len(due.schedules), due.next_in), (3, 7300.0), "none is left where as many were asked for")
