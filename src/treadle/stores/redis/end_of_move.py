"""The part of the store that moves between stores take part in (S13)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from treadle.core.errors import Conflict
from treadle.core.job import FINISHED, Job, Key
from treadle.core.payload import encode
from treadle.core.transfer import Cargo, Counts, KeptDocument, KeptInterval, Mark, Stage, mark_of
from treadle.stores.redis import record, wire
from treadle.stores.redis.documents import LISTED_AT_ONCE, MOST_BYTES, document_of
from treadle.stores.redis.intervals import interval_of, text_of
from treadle.stores.redis.link import Link
from treadle.stores.redis.moment import NEVER, at, moment, present
from treadle.stores.redis.pieces import pieces
from treadle.stores.redis.schedules import meaning, optional
from treadle.stores.redis.wire import Argument

JOBS_AT_ONCE = 100  # each with its record, its indexes and its failures
KEPT_AT_ONCE = 200


class EndOfMove:
    """What `Transfer` asks of a store; each script looks whether the mark still is the one that the move knows."""

    _link: Link

    async def founded(self) -> bool:
        """Whether treadle was ever here; writes nothing."""
        return bool(await self._link.look("founded"))

    async def get_mark(self) -> Mark | None:
        """The mark; see `Transfer.get_mark`."""
        text = await self._link.call("mark_get")
        return None if text is None else mark_of(text)

    async def put_mark(self, mark: Mark | None, *, expect: Mark | None) -> bool:
        """Replace the mark; see `Transfer.put_mark`."""
        return bool(
            await self._link.call(
                "mark_put",
                "" if expect is None else expect.text(),
                "" if mark is None else mark.text(),
                "" if mark is None else mark.fence or "",
                int(mark is not None and mark.stage is Stage.SEALED),
            )
        )

    async def kept(self) -> Counts:
        """How much there is beside jobs; see `Transfer.kept`."""
        intervals, schedules, documents, _ = await self._link.call("kept")
        return Counts(intervals=intervals, schedules=schedules, documents=documents)

    async def kept_intervals(self, *, after: str = "", limit: int = 1000) -> list[KeptInterval]:
        """Intervals in order; see `Transfer.kept_intervals`."""
        names = sorted(name for name in await self._link.call("interval_names") if name > after)[:limit]
        found: list[KeptInterval] = []
        for piece in pieces(names, KEPT_AT_ONCE):
            texts, due = await self._link.call("kept_intervals", *wire.listed(piece))
            found += [
                KeptInterval(interval_of(text), None if when is None else at(when))
                for text, when in zip(texts, due, strict=True)
                if text is not None
            ]
        return found

    async def kept_documents(self, *, after: tuple[str, str] | None = None, limit: int = 1000) -> list[KeptDocument]:
        """Documents of all namespaces; see `Transfer.kept_documents`."""
        _, _, _, namespaces = await self._link.call("kept")
        found: list[KeptDocument] = []
        for namespace in sorted(one for one in namespaces if after is None or one >= after[0]):
            begin = f"({after[1]}" if after is not None and namespace == after[0] else "-"
            while len(found) < limit:
                most = min(LISTED_AT_ONCE, limit - len(found))
                # At the beginning of time nothing has expired.
                end, documents = await self._link.call("document_list", NEVER, namespace, "", begin, most)
                found += [KeptDocument(namespace, document_of(*one)) for one in documents]
                if end is None:
                    break
                begin = f"({end}"
        return found

    async def taken(self, jobs: Sequence[Job]) -> dict[str, str]:
        """Who would be in the way; see `Transfer.taken`."""
        found: dict[str, str] = {}
        for piece in pieces(jobs, KEPT_AT_ONCE):
            arguments: list[Argument] = [len(piece)]
            for job in piece:
                key = _held(job)
                arguments += (job.id, *(("", "", "") if key is None else (key.kind, job.name, key.text)))
            holders = await self._link.call("taken", *arguments)
            found |= {job.id: holder for job, holder in zip(piece, holders, strict=True) if holder is not None}
        return found

    async def restore(self, cargo: Cargo, *, expect: Mark, now: datetime | None = None) -> None:
        """Put everything in as it was, a hundred jobs (or 16 MiB) in one step; see `Transfer.restore`."""
        mark = expect.text()
        for jobs in pieces(cargo.jobs, JOBS_AT_ONCE, _weight):
            arguments: list[Argument] = [mark, present(now), len(jobs)]
            for job in jobs:
                arguments += (job.id, job.payload_json, record.text_of(job), int(_held(job) is not None))
                arguments += wire.listed([record.failure_text(failure) for failure in job.failures])
            refused = await self._link.call("restore_jobs", *arguments)
            if refused:
                raise Conflict(f"job {refused[0]} cannot be stored here: job {refused[1]} holds its key")
        for intervals in pieces(cargo.intervals, KEPT_AT_ONCE):
            arguments = [mark, len(intervals)]
            for one in intervals:
                arguments += (one.interval.schedule, text_of(one.interval), optional(one.due_at))
            await self._link.call("restore_intervals", *arguments)
        for schedules in pieces(cargo.schedules, KEPT_AT_ONCE):
            arguments = [mark, present(now), len(schedules)]
            for schedule in schedules:
                arguments += (schedule.name, schedule.revision, optional(schedule.next_at), optional(schedule.last_at))
                arguments += (int(schedule.paused), meaning(schedule))
            await self._link.call("restore_schedules", *arguments)
        values = [(one.namespace, one.document, encode(one.document.value, MOST_BYTES)) for one in cargo.documents]
        for documents in pieces(values, KEPT_AT_ONCE, lambda one: len(one[2])):
            arguments = [mark, present(now), len(documents)]
            for namespace, document, text in documents:
                expires_at = "" if document.expires_at is None else moment(document.expires_at)
                arguments += (namespace, document.key, text, document.revision, expires_at)
            await self._link.call("restore_documents", *arguments)

    async def remove(self, cargo: Cargo, *, expect: Mark) -> None:
        """Take everything out, a hundred in one step; see `Transfer.remove`."""
        mark = expect.text()
        for jobs in pieces(cargo.jobs, JOBS_AT_ONCE):
            await self._link.call("remove_jobs", mark, "", *wire.listed([job.id for job in jobs]))
        names = [*(one.interval.schedule for one in cargo.intervals)]
        schedules = [schedule.name for schedule in cargo.schedules]
        places = [part for one in cargo.documents for part in (one.namespace, one.document.key)]
        for kind, items in enumerate((names, schedules, places)):
            for piece in pieces(items, 2 * JOBS_AT_ONCE):  # even, so that no namespace is parted from its key
                lists = [wire.listed(piece if kind == place else ()) for place in range(3)]
                await self._link.call("remove_kept", mark, "", *lists[0], *lists[1], *lists[2])


def _held(job: Job) -> Key | None:
    """The key, if it holds in this state (E6, E7)."""
    return job.key if job.key is not None and (job.key.kind == "idempotency" or job.state not in FINISHED) else None


def _weight(job: Job) -> int:
    return len(job.payload_json) + sum(len(failure.error) + 100 for failure in job.failures)
