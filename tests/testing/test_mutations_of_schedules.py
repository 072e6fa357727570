"""Stores broken in how they keep and list schedules, each caught by the contract test that speaks of it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest
from broken_schedules import Kept
from broken_stores import caught

from treadle.stores.memory.adapter import MemoryStore
from treadle.testing.contract import GROUPS

SAME = "schedules.a_schedule_comes_back_as_it_was_stored"
UTC_ONLY = "schedules.moments_are_kept_in_utc"
EXPECTED = "schedules.a_schedule_is_put_only_over_the_revision_expected"
REPLACED = "schedules.what_is_put_takes_the_place_of_all_that_was"
WON = "schedules.of_many_that_put_over_one_revision_one_wins"
ANEW = "schedules.a_deleted_schedule_begins_again"


# -- what is kept


@pytest.mark.parametrize(
    "lost",
    [
        {"seconds": False},
        {"tz": "UTC"},
        {"expression": "0 3 * * *"},
        {"paused": False},
        {"next_at": None},
        {"last_at": None},
    ],
    ids=lambda lost: next(iter(lost)),
)
def test_a_store_that_loses_a_field_of_a_schedule_is_caught(lost):
    class Broken(Kept):
        def kept(self, schedule):
            return replace(schedule, **lost)

    caught(Broken, SAME)


@pytest.mark.parametrize(
    "lost",
    [{"queue": "default"}, {"priority": 0}, {"max_attempts": 5}, {"key": None}, {"schedule": None}, {"payload_json": "null"}],
    ids=lambda lost: next(iter(lost)),
)
def test_a_store_that_loses_a_field_of_the_template_is_caught(lost):
    class Broken(Kept):
        def kept(self, schedule):
            return replace(schedule, job=replace(schedule.job, **lost))

    caught(Broken, SAME)


@pytest.mark.parametrize(
    "changed",
    [
        lambda text: text.replace("[]", "{}"),
        lambda text: json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False),
        lambda text: json.dumps(json.loads(text, parse_int=float), ensure_ascii=False),
    ],
    ids=["empty lists as objects", "sorted keys", "integers as floats"],
)
def test_a_store_that_changes_the_payload_of_a_template_is_caught(changed):
    class Broken(Kept):
        def kept(self, schedule):
            return replace(schedule, job=replace(schedule.job, payload_json=changed(schedule.job.payload_json)))

    caught(Broken, SAME)


@pytest.mark.parametrize("field", ["next_at", "last_at"])
def test_a_store_that_keeps_the_milliseconds_of_a_schedule_is_caught(field):
    class Broken(Kept):
        def kept(self, schedule):
            moment = getattr(schedule, field)
            return replace(schedule, **{field: moment and moment.replace(microsecond=moment.microsecond // 1000 * 1000)})

    caught(Broken, SAME)


def test_a_store_that_answers_a_put_with_what_it_was_given_is_caught():
    class Broken(MemoryStore):
        async def put_schedule(self, schedule, **options):
            return await super().put_schedule(schedule, **options) and schedule

    caught(Broken, SAME, UTC_ONLY, EXPECTED)


def test_a_store_that_lists_schedules_without_their_templates_is_caught():
    class Broken(MemoryStore):
        async def list_schedules(self, **options):
            found = await super().list_schedules(**options)
            return [replace(one, job=replace(one.job, payload_json="null")) for one in found]

    caught(Broken, SAME)


def test_a_store_that_keeps_the_clock_of_another_zone_for_utc_is_caught():
    class Broken(Kept):
        def kept(self, schedule):
            return replace(schedule, next_at=schedule.next_at and schedule.next_at.replace(tzinfo=UTC))

    caught(Broken, UTC_ONLY)


# -- compare and set


def test_a_store_that_puts_a_schedule_over_any_revision_is_caught():
    class Broken(MemoryStore):
        async def put_schedule(self, schedule, *, expect=None):
            return await super().put_schedule(schedule)

    caught(Broken, EXPECTED, WON, ANEW, "firings.what_was_read_before_a_firing_is_not_put_back")


def test_a_store_that_takes_expect_zero_for_any_revision_is_caught():
    class Broken(MemoryStore):
        async def put_schedule(self, schedule, *, expect=None):
            return await super().put_schedule(schedule, expect=expect or None)

    caught(Broken, EXPECTED, WON)


def test_a_store_that_makes_a_schedule_where_another_revision_is_expected_is_caught():
    class Broken(MemoryStore):
        async def put_schedule(self, schedule, *, expect=None):
            there = await super().get_schedule(schedule.name)
            return await super().put_schedule(schedule, expect=expect if there else None)

    caught(Broken, EXPECTED, ANEW)


def test_a_store_that_refuses_only_older_revisions_is_caught():
    class Broken(MemoryStore):
        async def put_schedule(self, schedule, *, expect=None):
            there = await super().get_schedule(schedule.name)
            newer = there is not None and expect is not None and expect > there.revision
            return await super().put_schedule(schedule, expect=None if newer else expect)

    caught(Broken, EXPECTED)


def test_a_store_that_counts_the_revision_from_what_it_is_given_is_caught():
    class Broken(MemoryStore):
        async def put_schedule(self, schedule, *, expect=None):
            there = await super().get_schedule(schedule.name)
            if expect is not None and expect != (there.revision if there else 0):
                return None
            stored = self._schedules._kept[schedule.name] = replace(schedule, revision=schedule.revision + 1)
            return stored

    caught(Broken, EXPECTED, REPLACED)


def test_a_store_that_leaves_the_revision_where_it_was_is_caught():
    class Broken(MemoryStore):
        async def put_schedule(self, schedule, *, expect=None):
            there = await super().get_schedule(schedule.name)
            stored = await super().put_schedule(schedule, expect=expect)
            if there is not None and stored is not None:
                stored = self._schedules._kept[schedule.name] = replace(stored, revision=there.revision)
            return stored

    caught(Broken, EXPECTED, REPLACED, "firings.a_firing_that_is_over_does_not_hinder_another_of_its_schedule")


@pytest.mark.parametrize("field", ["next_at", "last_at", "paused"])
def test_a_store_that_keeps_what_a_put_has_no_value_for_is_caught(field):
    class Broken(MemoryStore):
        async def put_schedule(self, schedule, **options):
            there = await super().get_schedule(schedule.name)
            value = getattr(schedule, field) or (there and getattr(there, field))
            return await super().put_schedule(replace(schedule, **{field: value or getattr(schedule, field)}), **options)

    caught(Broken, REPLACED)


@pytest.mark.parametrize("field", ["expression", "tz", "seconds", "job"])
def test_a_store_that_keeps_the_meaning_of_a_schedule_that_is_put_anew_is_caught(field):
    class Broken(MemoryStore):
        async def put_schedule(self, schedule, **options):
            there = await super().get_schedule(schedule.name) or schedule
            return await super().put_schedule(replace(schedule, **{field: getattr(there, field)}), **options)

    caught(Broken, REPLACED)


def test_a_store_that_compares_and_then_puts_is_caught():
    class Broken(MemoryStore):
        async def put_schedule(self, schedule, *, expect=None):
            there = await super().get_schedule(schedule.name)
            if expect is not None and expect != (there.revision if there else 0):
                return None
            await asyncio.sleep(0)
            return await super().put_schedule(schedule)

    caught(Broken, WON, "firings.a_change_and_a_firing_never_both_win")


def test_a_store_that_reads_the_revision_and_then_puts_is_caught():
    class Broken(MemoryStore):
        async def put_schedule(self, schedule, *, expect=None):
            if expect is None:
                there = await super().get_schedule(schedule.name)
                await asyncio.sleep(0)
                expect = there.revision if there else 0
            return await super().put_schedule(schedule, expect=expect)

    caught(Broken, "schedules.no_put_is_lost_among_others")


# -- nothing is left out


@pytest.mark.parametrize("group", [one for one in GROUPS if one.name in ("schedules", "firings", "intervals", "run_now")])
def test_each_contract_test_of_schedules_has_a_store_that_it_catches(group):
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_mutations_of_*.py"))
    assert [name for name in group.checks if f'"{group.name}.{name}"' not in text] == []
