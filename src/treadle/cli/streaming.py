"""Listing what is read page by page: as one JSON array, or as a table that begins before the last row is known (L3, L8)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

from treadle.cli.output import Out, encoded
from treadle.cli.table import Column, Table

PAGE = 200

Listed = TypeVar("Listed")


async def print_json(out: Out, listed: AsyncIterator[Listed], document: Callable[[Listed], object]) -> None:
    """One array, an entry a line, written as it is read."""
    before = b"["
    async for one in listed:
        out.raw(before + encoded(document(one)))
        before = b",\n "
    out.raw(b"]\n" if before != b"[" else b"[]\n")


async def print_table(
    out: Out, columns: Sequence[Column], listed: AsyncIterator[Listed], row: Callable[[Listed], list[str]], nothing: str
) -> None:
    """A table, a page of rows at a time; `nothing` is what is said where there is no row."""
    table = Table(out, columns)
    page: list[list[str]] = []
    async for one in listed:
        page.append(row(one))
        if len(page) == PAGE:
            table.rows(page)
            page = []
    if page:
        table.rows(page)
    elif not table.begun:
        out.line(nothing)
