"""Tables that fit: narrow a column, move it below, or leave it out, until each line is as wide as the terminal (L8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from treadle.cli.output import Out
from treadle.cli.printable import clipped, columns, padded, printable

GAP = "  "
INDENT = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `least` is the width it may be narrowed to (None: never); the lowest `rank` goes first where room lacks.

    One that is `below` then has a line of its own under the row; others are left out. Rank None stays in any case.
    `room` is the width to reserve for rows to come; a cell that outgrows its column is cut, unless it is kept `whole`.
    """

    title: str
    right: bool = False
    whole: bool = False
    room: int = 0
    least: int | None = None
    rank: int | None = None
    below: bool = False
    style: Callable[[str], str | None] | None = None


class Table:
    """Prints rows under one heading. The widths are those that fit the first page of rows, so that more can follow."""

    def __init__(self, out: Out, table: Sequence[Column]) -> None:
        self._out = out
        self._columns = table
        self._shown: list[int] = []
        self._below: list[int] = []
        self._widths: list[int] = []
        self.begun = False

    def rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Print the next page of rows."""
        rows = [[printable(cell) for cell in row] for row in rows]
        if not self.begun:
            self._fit(rows)
            self.begun = True
            self._out.line(self._row([column.title for column in self._columns], heading=True))
        for row in rows:
            self._out.line(self._row(row))
            for index in self._below:
                if row[index]:
                    self._out.line(self._out.styled(INDENT + self._cut(row[index], len(INDENT)), "dim"))
        self._out.flush()

    def _fit(self, rows: Sequence[Sequence[str]]) -> None:
        filled = [index for index in range(len(self._columns)) if any(row[index] for row in rows)]
        self._widths = [
            max([column.room, columns(column.title), *(columns(row[index]) for row in rows)])
            for index, column in enumerate(self._columns)
        ]
        self._shown = list(filled)
        natural = list(self._widths)
        while not self._fits(natural):
            leaving = [index for index in self._shown if self._columns[index].rank is not None]
            if not leaving:
                break
            self._shown.remove(min(leaving, key=self._rank))
        for index in sorted(set(filled) - set(self._shown), key=self._rank, reverse=True):
            # A wide column that went below may have made room for narrow ones that went before it.
            kept, self._shown = self._shown, sorted([*self._shown, index])
            if not self._fits(natural):
                self._shown = kept
        self._fits(natural)
        self._below = [index for index in filled if index not in self._shown and self._columns[index].below]

    def _rank(self, index: int) -> int:
        return self._columns[index].rank or 0

    def _fits(self, natural: Sequence[int]) -> bool:
        """Whether the columns that are shown fit, the flexible ones narrowed as far as it takes."""
        self._widths = list(natural)
        if self._out.width is None:
            return True
        self._narrow(self._total() - self._out.width)
        return self._total() <= self._out.width

    def _total(self) -> int:
        return sum(self._widths[index] for index in self._shown) + len(GAP) * (len(self._shown) - 1)

    def _narrow(self, over: int) -> None:
        """Take columns away from the widest that may be narrowed, down to its least."""
        for index in sorted(self._shown, key=lambda index: -self._widths[index]):
            least = self._columns[index].least
            if least is not None and over > 0:
                width = max(min(least, self._widths[index]), self._widths[index] - over)
                over -= self._widths[index] - width
                self._widths[index] = width

    def _row(self, row: Sequence[str], *, heading: bool = False) -> str:
        cells = []
        for index in self._shown:
            column, width = self._columns[index], self._widths[index]
            whole = column.whole or self._out.width is None
            cell = row[index] if whole else clipped(row[index], width, self._out.ellipsis)
            last = index == self._shown[-1] and not column.right
            text = cell if last else padded(cell, width, right=column.right)
            style = "bold" if heading else column.style(row[index]) if column.style is not None else None
            cells.append(self._out.styled(text, style) if style else text)
        return GAP.join(cells).rstrip()

    def _cut(self, text: str, taken: int) -> str:
        return text if self._out.width is None else clipped(text, max(1, self._out.width - taken), self._out.ellipsis)
