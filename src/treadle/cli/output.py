"""Standard output: text fitted to the terminal, JSON as bytes, and readers that go away (L8)."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from typing import BinaryIO

from treadle.core.errors import TreadleError

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class ReaderGone(Exception):
    """Whoever read standard output has closed it, as `head` does: not an error, and nothing more to say."""


class OutputFailed(TreadleError):
    """Standard output cannot be written."""


class Out:
    """Writes to standard output.

    `width` is the number of columns to fit, or None where nothing is to be fitted: in a pipe or a file, unless COLUMNS is set.
    """

    def __init__(self) -> None:
        stream = sys.stdout
        if stream is None:
            raise OutputFailed("standard output is closed")
        self._bytes: BinaryIO = stream.buffer
        self._encoding = stream.encoding or "ascii"
        self.terminal = stream.isatty()
        columns = os.environ.get("COLUMNS", "")
        self.width: int | None = None
        if self.terminal or (columns.isascii() and columns.isdigit() and int(columns) > 0):
            self.width = shutil.get_terminal_size().columns
        self.colour = self.terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.ellipsis = "…" if self._can("…") else "~"

    def line(self, text: str = "") -> None:
        """Print a line; what the encoding lacks becomes a question mark."""
        self._write(text.encode(self._encoding, "replace") + b"\n")

    def json(self, document: object) -> None:
        """Print one JSON document, in UTF-8 whatever the locale."""
        self._write(encoded(document) + b"\n")

    def raw(self, data: bytes) -> None:
        """Print bytes as they are."""
        self._write(data)

    def styled(self, text: str, *styles: str) -> str:
        """The text in colour, where colour is wanted."""
        if not self.colour or not styles:
            return text
        return f"\033[{';'.join(_STYLES[style] for style in styles)}m{text}\033[0m"

    def flush(self) -> None:
        """Hand on what was printed so far."""
        self._guarded(self._bytes.flush)

    def _write(self, data: bytes) -> None:
        self._guarded(lambda: self._bytes.write(data))

    def _guarded(self, step: Callable[[], object]) -> None:
        try:
            step()
        except BrokenPipeError:
            raise ReaderGone from None
        except OSError as error:
            drop_stdout()
            raise OutputFailed(f"standard output cannot be written: {error.strerror}") from None

    def _can(self, text: str) -> bool:
        try:
            text.encode(self._encoding)
        except (UnicodeEncodeError, LookupError):
            return False
        return True


def encoded(document: object) -> bytes:
    """One line of JSON, not escaped (L8)."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()


def drop_stdout() -> None:
    """Point standard output at nothing, so that the interpreter does not trip over what is still buffered at its exit."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.close(nothing)
    except OSError:
        pass
