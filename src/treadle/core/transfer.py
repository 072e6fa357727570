"""Moving a store into another one: the marks that fence both, what moves, and what each end can do (S13).

Nothing may be lost between two stores that are both at work, so neither is while a move is under way. The source takes
nothing new from the moment it is marked; the target takes nothing until the move is over.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from treadle.core.errors import StoreError, StoreMoved, StoreUnavailable
from treadle.core.job import Job
from treadle.core.schedule import Interval, Schedule
from treadle.core.store import Document, Store


class Side(StrEnum):
    """Which end of a move a store is."""

    SOURCE = "source"
    TARGET = "target"


class Stage(StrEnum):
    """How far the move is, at this end.

    DRAINING: nothing new is taken, running jobs may end, and an interval may go on in the step that ends its run.
    SEALED: no job runs, and nothing changes but by the move. OVER: the move is complete; a target is open again.
    """

    DRAINING = "draining"
    SEALED = "sealed"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is of each kind that moves; of done jobs only those that hold an idempotency key."""

    pending: int = 0
    dead: int = 0
    done: int = 0
    intervals: int = 0
    schedules: int = 0
    documents: int = 0

    def as_dict(self) -> dict[str, int]:
        """The counts by kind."""
        return asdict(self)

    def less(self, other: Counts) -> Counts:
        """What there is beyond the other."""
        theirs = other.as_dict()
        return Counts(**{kind: number - theirs[kind] for kind, number in self.as_dict().items()})

    @property
    def jobs(self) -> int:
        """How many jobs there are among them."""
        return self.pending + self.dead + self.done

    @property
    def total(self) -> int:
        """How many there are of all kinds."""
        return sum(self.as_dict().values())


@dataclass(frozen=True, slots=True)
class Mark:
    """What a store knows of the latest move that it took part in.

    `move` is the same at both ends. `other` names the other store, without a password. In a target, `base` counts what was
    there when the filling began, None until then, and `own` names those intervals among it that the source has too;
    `emptying` says that leftovers of an earlier move go before that. In a source, `emptying` says that the move is being
    given up, for which there is no way back. `before` is what this mark replaced, to be put back if the move is given up.
    """

    move: str
    side: Side
    stage: Stage
    other: str
    emptying: bool = False
    base: Counts | None = None
    before: Mark | None = None
    own: tuple[str, ...] = ()

    @property
    def fence(self) -> str | None:
        """What a store hands to `fenced` for each call that it must refuse; None where it is open. One line of text."""
        if self.side is Side.TARGET and self.stage is Stage.OVER:
            return None
        return f"{FENCE} {self.side} {self.stage} {' '.join(self.other.split())}"

    def text(self) -> str:
        """The mark as JSON, the same text for the same mark, and for those that older versions wrote."""
        return json.dumps(asdict(self, dict_factory=_without_nothing_own), ensure_ascii=False, sort_keys=True)


FENCE = "TREADLEFENCE"


def _without_nothing_own(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in fields if name != "own" or value}


def mark_of(text: str) -> Mark:
    """The mark that `Mark.text` wrote."""
    return _mark(json.loads(text))


def _mark(kept: dict[str, object]) -> Mark:
    before, base, own = kept["before"], kept["base"], kept.get("own")
    return Mark(
        move=str(kept["move"]),
        side=Side(str(kept["side"])),
        stage=Stage(str(kept["stage"])),
        other=str(kept["other"]),
        emptying=bool(kept["emptying"]),
        base=Counts(**base) if isinstance(base, dict) else None,
        before=_mark(before) if isinstance(before, dict) else None,
        own=tuple(own) if isinstance(own, list) else (),
    )


def fenced(text: str) -> StoreError | None:
    """The error for a call that `Mark.fence` forbids, wherever in a driver's message that stands; None where it does not."""
    _, found, rest = text.partition(f"{FENCE} ")
    if not found:
        return None
    side, stage, other = rest.splitlines()[0].split(" ", 2)
    if side == Side.TARGET:
        return StoreUnavailable(
            f"the store is being filled by a move from {other}, and takes nothing until that is over: "
            "wait, or see to `treadle move`"
        )
    if stage == Stage.OVER:
        return StoreMoved(f"the store was moved to {other}: use that one; nothing is stored or claimed here any more")
    return StoreMoved(f"the store is being moved to {other}: use that one as soon as the move is over")


def checked_fence(mark: Mark | None) -> None:
    """Raise what a call on a store with this mark must meet, if anything."""
    if mark is not None and mark.fence is not None:
        error = fenced(mark.fence)
        assert error is not None
        raise error


@dataclass(frozen=True, slots=True)
class KeptInterval:
    """A remembered interval, and when its last copy was due (T3)."""

    interval: Interval
    due_at: datetime | None


@dataclass(frozen=True, slots=True)
class KeptDocument:
    """A document with the namespace that it is in."""

    namespace: str
    document: Document


@dataclass(frozen=True, slots=True)
class Cargo:
    """Things on their way, each exactly as it was stored. No job among them runs."""

    jobs: Sequence[Job] = ()
    intervals: Sequence[KeptInterval] = ()
    schedules: Sequence[Schedule] = ()
    documents: Sequence[KeptDocument] = ()


@runtime_checkable
class Transfer(Protocol):
    """Optional: what a store needs beside `Store` to be an end of a move.

    While `Mark.fence` is not None, every call that would change anything raises what `fenced` gives, in the very step
    that would have changed it; `renew`, `finish` and `reclaim` of jobs that run, and whatever reads, go on. A claim raises
    also where nothing is due.
    """

    async def founded(self) -> bool:
        """Whether the store has its tables; makes none. Raises `SchemaMissing` for older ones, `SchemaTooNew` for newer."""
        ...

    async def get_mark(self) -> Mark | None:
        """The mark, or None where the store never took part in a move."""
        ...

    async def put_mark(self, mark: Mark | None, *, expect: Mark | None) -> bool:
        """Replace the mark if it is `expect`; a SEALED one only where no job runs. Answers whether it was replaced.

        No call that the new mark forbids is under way any more when it answers: what was stored before is there to be read.
        """
        ...

    async def kept(self) -> Counts:
        """How many intervals, schedules and documents there are, those that have expired too; jobs are not counted."""
        ...

    async def kept_intervals(self, *, after: str = "", limit: int = 1000) -> list[KeptInterval]:
        """The remembered intervals whose schedule names are greater than `after`, in code-point order."""
        ...

    async def kept_documents(self, *, after: tuple[str, str] | None = None, limit: int = 1000) -> list[KeptDocument]:
        """All documents, or those beyond that namespace and key, in code-point order of both, those that have expired too."""
        ...

    async def taken(self, jobs: Sequence[Job]) -> dict[str, str]:
        """Of these jobs of another store, the ids of those that could not be restored here, each with the id of the holder.

        A job is in the way that has the same id, or that holds the same key of the same name where the key of the other
        one holds too: an idempotency key in any state, the others while a job is unfinished (E6, E7).
        """
        ...

    async def restore(self, cargo: Cargo, *, expect: Mark, now: datetime | None = None) -> None:
        """Store everything as it is, where nothing of that id or name is yet; what is there stays as it is.

        Only while the store has the mark `expect`, else `Conflict`. A key that another job holds is a `Conflict` too,
        and then nothing of that job is stored.
        """
        ...

    async def remove(self, cargo: Cargo, *, expect: Mark) -> None:
        """Remove the jobs, intervals, schedules and documents of those ids and names, while the mark is `expect`."""
        ...


@runtime_checkable
class Movable(Store, Transfer, Protocol):
    """A store that can be an end of a move, as all four of treadle's own can."""
