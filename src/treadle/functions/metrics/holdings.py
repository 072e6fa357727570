"""Holdings: what the store has, asked for seldom, by one question at a time, and never shown stale (F15, S8)."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from treadle.core.errors import StoreUnavailable
from treadle.core.job import State
from treadle.core.store import Inspector, Tally
from treadle.engine.clock import EngineClock
from treadle.engine.outage import Outage
from treadle.functions.metrics.capped import MOST_NAMES, MOST_QUEUES, OTHER, Kept

EVERY = 10.0  # seconds from one answer to the next question
SHARE = 10  # a slow answer is kept this many times as long as it took, so that the store is busy with it at most a tenth
PATIENCE = 5.0  # what a scrape waits; servers give one up after 10 s
LONGEST = 60.0


@dataclass(frozen=True, slots=True)
class Holdings:
    """Jobs by queue, name and state, and by queue the age in seconds of the job that has been due the longest."""

    jobs: Mapping[tuple[str, str, State], int]
    ages: Mapping[str, float]


class Standing:
    """Keeps the store's last answer while it is fresh."""

    def __init__(self, store: Inspector, clock: EngineClock, logger: logging.Logger) -> None:
        self._store = store
        self._clock = clock
        self._outage = Outage("metrics", logger)
        self._queues: Kept[str] = Kept(MOST_QUEUES)
        self._names: Kept[tuple[str, str]] = Kept(MOST_NAMES)
        self._asking: asyncio.Task[None] | None = None
        self._next_at = float("-inf")
        self._holdings: Holdings | None = None

    async def read(self) -> Holdings | None:
        """What the store holds; None where it failed, or does not answer in time. Its last values are then not shown."""
        asking = self._asking
        if asking is None or (asking.done() and self._clock.seconds() >= self._next_at):
            asking = self._asking = asyncio.create_task(self._ask(), name="treadle-metrics")
        # A question that takes longer goes on: a store that is slow must not get a second one beside it.
        await asyncio.wait({asking}, timeout=PATIENCE)
        return self._holdings if asking.done() else None

    async def close(self) -> None:
        """Ask no more; safe twice."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})

    async def _ask(self) -> None:
        asked = self._clock.seconds()
        holdings = None
        try:
            async with asyncio.timeout(LONGEST):
                tally = await self._store.tally()
            holdings = await asyncio.to_thread(self._shaped, tally, self._clock.now())
            self._outage.over()
        except TimeoutError:
            self._outage.failed(StoreUnavailable(f"counting its jobs took longer than {LONGEST:g} s"))
        except Exception as error:
            self._outage.failed(error)
        finally:
            self._holdings = holdings
            now = self._clock.seconds()
            self._next_at = now + min(max(EVERY, SHARE * (now - asked)), LONGEST)

    def _shaped(self, tally: Tally, now: datetime) -> Holdings:
        """The tally as series: not too many, each state of a name that is there, and ages in place of moments."""
        queues: Counter[str] = Counter(dict.fromkeys(tally.oldest, 0))
        names: Counter[tuple[str, str]] = Counter()
        for (queue, name, _), count in tally.counts.items():
            queues[queue] += count
            names[queue, name] += count
        own_queues, own_names = self._queues.choose(queues), self._names.choose(names)
        jobs: dict[tuple[str, str, State], int] = {}
        for (queue, name, state), count in tally.counts.items():
            shown = (queue if queue in own_queues else OTHER, name if (queue, name) in own_names else OTHER)
            if (*shown, state) not in jobs:
                jobs |= {(*shown, each): 0 for each in State}
            jobs[*shown, state] += count
        ages: dict[str, float] = {}
        for queue in queues:
            shown_queue = queue if queue in own_queues else OTHER
            oldest = tally.oldest.get(queue, now)
            ages[shown_queue] = max(ages.get(shown_queue, 0.0), (now - oldest).total_seconds())
        return Holdings(jobs, ages)
