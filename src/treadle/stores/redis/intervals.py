"""Intervals: remembered by schedule name, each kept going by its pending copy (T1 to T4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from treadle.core.job import Enqueued
from treadle.core.schedule import Interval
from treadle.stores.redis import record, wire
from treadle.stores.redis.link import Link
from treadle.stores.redis.moment import present
from treadle.stores.redis.pieces import pieces
from treadle.stores.redis.template import job_of, template_of

AT_ONCE = 200


class Intervals:
    """The part of the store that keeps intervals."""

    _link: Link

    async def ensure(self, intervals: Sequence[tuple[Interval, str]], *, now: datetime | None = None) -> list[Enqueued | None]:
        """Remember intervals and put their copies back; see `IntervalStore.ensure` (T1 to T4)."""
        answers: list[Enqueued | None] = []
        for piece in pieces(intervals, AT_ONCE, lambda one: 2 * len(one[0].job.payload_json)):
            arguments: list[wire.Argument] = [present(now), len(piece)]
            for interval, job_id in piece:
                arguments += [text_of(interval), *wire.new_jobs([interval.copy(job_id, 0.0)])]
            answers += record.placed(*await self._link.call("ensure", *arguments))
        return answers

    async def intervals(self, schedules: Sequence[str]) -> list[Interval]:
        """The remembered intervals of these schedule names."""
        texts = await self._link.call("intervals", *wire.listed(schedules))
        return [interval_of(text) for text in texts if text is not None]


def text_of(interval: Interval) -> str:
    """The interval as it is stored."""
    return json.dumps([interval.seconds, template_of(interval.job)])


def interval_of(text: str) -> Interval:
    """The interval that `text_of` was given."""
    seconds, template = json.loads(text)
    return Interval(seconds, job_of(template))
