"""Bounded steps: jobs are picked without a lock and changed a few hundred a transaction, so that other writers get through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from treadle.core.filter import JobFilter
from treadle.stores.sqlite.connection import Connection
from treadle.stores.sqlite.fencing import open_only
from treadle.stores.sqlite.finding import pick
from treadle.stores.sqlite.moments import present
from treadle.stores.sqlite.session import Session

T = TypeVar("T")

STEP = 500  # jobs a transaction: about 10 ms
_ROUND = 50_000  # jobs picked at once: a few megabytes


async def in_steps(
    connection: Connection,
    which: JobFilter,
    change: Callable[[Session, JobFilter, Sequence[int], int], T],
    size: Callable[[T], int],
    *,
    limit: int | None,
    now: datetime | None,
) -> list[T]:
    """Change at most `limit` matching jobs, oldest id first; answers what each step answered.

    `change` is handed the picked seqs and looks again which of them still match; `size` says how many it changed.
    """
    moment = present(now)
    await connection.read(open_only)
    answers: list[T] = []
    changed = 0
    after = ""
    while True:
        wanted = _ROUND if limit is None else min(_ROUND, limit - changed)
        if wanted <= 0:
            return answers
        picked = await connection.read(partial(pick, which=which, limit=wanted, after=after, now=moment))
        for start in range(0, len(picked), STEP):
            seqs = [seq for seq, _ in picked[start : start + STEP]]
            answer = await connection.write(lambda session, seqs=seqs: change(session, which, seqs, moment))  # type: ignore[misc]  # mypy cannot type a lambda's default
            answers.append(answer)
            changed += size(answer)
        if len(picked) < wanted:
            return answers
        after = picked[-1][1]
