"""The statements: one file each, read once, with the store's schema put in."""

from __future__ import annotations

import functools
import re
from importlib.resources import files
from types import MappingProxyType
from typing import TypeAlias

Statements: TypeAlias = MappingProxyType[str, str]
"""SQL by the name of its file."""

_FRAGMENT = re.compile(r"\{(\w+)\}")
_COMMENT = re.compile(r"^\s*--.*\n?|\s+--.*$", re.MULTILINE)
_TABLE = re.compile(r"\btreadle\.(?=[a-z])")
_SPACE = re.compile(r"\s+")


@functools.cache
def statements(schema: str) -> Statements:
    """All statements for the tables of that schema, without comments: a server reads and logs them often."""
    texts = {path.name.removesuffix(".sql"): path.read_text() for path in files(__package__).joinpath("queries").iterdir()}

    def whole(text: str) -> str:
        bare = _COMMENT.sub("", text)
        return _FRAGMENT.sub(lambda found: whole(texts[found[1]]), bare)

    return MappingProxyType({name: _SPACE.sub(" ", in_schema(whole(text), schema)).strip() for name, text in texts.items()})


@functools.cache
def fence(name: str, schema: str) -> str:
    """The triggers of `fences/NAME.sql`, without comments."""
    text = files(__package__).joinpath("fences", f"{name}.sql").read_text()
    return _SPACE.sub(" ", in_schema(_COMMENT.sub("", text), schema)).strip()


def in_schema(sql: str, schema: str) -> str:
    """The SQL, which names its tables `treadle.…`, for the tables of that schema."""
    return _TABLE.sub(f'"{schema}".', sql)
