"""Stores broken in how they tell schedules apart, list and delete them, each caught by the contract test that speaks of it."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

import pytest
from broken_stores import caught

from treadle.core.filter import EVERYTHING
from treadle.stores.memory.adapter import MemoryStore

APART = "schedules.names_are_told_apart_exactly"
LISTED = "schedules.schedules_are_listed_by_name_and_deleted"
PREFIX = "schedules.a_prefix_means_itself"
PAGES = "schedules.pages_follow_on_each_other"
MANY = "schedules.many_are_listed_and_due_in_one_call"
ANEW = "schedules.a_deleted_schedule_begins_again"
READ_BEFORE = "firings.a_firing_that_was_read_before_a_change_does_nothing"


@pytest.mark.parametrize(
    "folded",
    [str.lower, lambda name: unicodedata.normalize("NFC", name), str.strip, lambda name: name.rpartition(":")[2]],
    ids=["case", "composition", "white space", "owner"],
)
def test_a_store_that_does_not_tell_names_apart_is_caught(folded):
    class Broken(MemoryStore):
        async def put_schedule(self, schedule, **options):
            return await super().put_schedule(replace(schedule, name=folded(schedule.name)), **options)

        async def get_schedule(self, name):
            return await super().get_schedule(folded(name))

    caught(Broken, APART)


@pytest.mark.parametrize("sort_key", [str.lower, lambda name: unicodedata.normalize("NFD", name)], ids=["case", "accents"])
def test_a_store_that_lists_by_language_is_caught(sort_key):
    class Broken(MemoryStore):
        async def list_schedules(self, **options):
            found = await super().list_schedules(**options)
            return sorted(found, key=lambda one: sort_key(one.name))

    caught(Broken, LISTED)


def test_a_store_that_lists_as_they_came_is_caught():
    class Broken(MemoryStore):
        async def list_schedules(self, **options):
            found = await super().list_schedules(**options)
            return sorted(found, key=lambda one: [*self._schedules._kept].index(one.name))

    caught(Broken, LISTED)


@pytest.mark.parametrize("wildcards", [{"%": ".*", "_": "."}, {r"\*": ".*", r"\?": ".", r"\[": "."}, {r"\\": ""}])
def test_a_store_whose_prefixes_of_names_have_wildcards_is_caught(wildcards):
    class Broken(MemoryStore):
        async def list_schedules(self, *, prefix="", **options):
            pattern = re.escape(prefix)
            for sign, meaning in wildcards.items():
                pattern = pattern.replace(sign, meaning)
            return [one for one in await super().list_schedules(**options) if re.match(pattern, one.name)]

    caught(Broken, PREFIX)


@pytest.mark.parametrize("ignored", ["prefix", "after", "limit"])
def test_a_store_that_ignores_what_narrows_a_list_is_caught(ignored):
    class Broken(MemoryStore):
        async def list_schedules(self, **options):
            options.pop(ignored, None)
            return await super().list_schedules(**options)

    caught(Broken, PAGES)


def test_a_store_that_repeats_the_last_of_a_page_is_caught():
    class Broken(MemoryStore):
        async def list_schedules(self, *, prefix="", after="", limit=1000):
            found = await super().list_schedules(prefix=prefix)
            return [one for one in found if one.name >= after][:limit]

    caught(Broken, LISTED, PAGES)


def test_a_store_that_takes_a_limit_of_zero_for_none_is_caught():
    class Broken(MemoryStore):
        async def list_schedules(self, *, limit=1000, **options):
            return await super().list_schedules(limit=limit or 1000, **options)

    caught(Broken, PAGES)


def test_a_store_that_reads_one_round_trip_of_schedules_is_caught():
    class Broken(MemoryStore):
        async def list_schedules(self, *, limit=1000, **options):
            return await super().list_schedules(limit=min(limit, 200), **options)

        async def due_schedules(self, limit, **options):
            return await super().due_schedules(min(limit, 200), **options)

    caught(Broken, MANY)


def test_a_store_that_says_that_it_deleted_in_any_case_is_caught():
    class Broken(MemoryStore):
        async def delete_schedule(self, name):
            await super().delete_schedule(name)
            return True

    caught(Broken, LISTED)


def test_a_store_that_pauses_what_it_should_delete_is_caught():
    class Broken(MemoryStore):
        async def delete_schedule(self, name):
            there = await super().get_schedule(name)
            return bool(there) and bool(await super().put_schedule(replace(there, paused=True)))

    caught(Broken, LISTED, APART, ANEW)


def test_a_store_that_deletes_the_jobs_of_a_schedule_with_it_is_caught():
    class Broken(MemoryStore):
        async def delete_schedule(self, name):
            await super().delete(EVERYTHING)
            return await super().delete_schedule(name)

    caught(Broken, READ_BEFORE, "firings.a_schedule_that_is_made_anew_waits_for_the_firing_of_the_old_one")


def test_a_store_that_goes_on_counting_after_a_deletion_is_caught():
    class Broken(MemoryStore):
        def __init__(self):
            super().__init__()
            self.revisions = {}

        async def put_schedule(self, schedule, **options):
            stored = await super().put_schedule(schedule, **options)
            if stored is not None:
                revision = self.revisions[schedule.name] = self.revisions.get(schedule.name, 0) + 1
                stored = self._schedules._kept[schedule.name] = replace(stored, revision=revision)
            return stored

    caught(Broken, ANEW)
