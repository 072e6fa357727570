"""Commands as bytes: by hiredis where it is installed, for the driver's asyncio side does it in Python, word by word."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from treadle.stores.redis.wire import Argument

_pack: Any = None
with contextlib.suppress(ImportError):  # redis without its extra
    from hiredis import pack_command as _pack


def packed(connection: Any, words: Sequence[Argument]) -> list[bytes]:
    """The command as the connection sends it."""
    if _pack is None:
        pieces: list[bytes] = connection.pack_command(*words)
        return pieces
    return [_pack(tuple(words))]
