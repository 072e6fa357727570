"""Arrays of text as parameters, written as one literal: the driver's own way takes each element apart in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from treadle.stores.postgres.driver import psycopg

_TEXT_ARRAY = psycopg.adapters.types["text"].array_oid

if TYPE_CHECKING:
    _List = list[str | None]
else:
    _List = list


class Texts(_List):
    """A list of text or null for a parameter of type text[]; for connections of other libraries a list like any other."""

    __slots__ = ()


class TextsDumper(psycopg.adapt.Dumper):
    """Writes `Texts` for the connections on which it is registered."""

    oid: ClassVar[int] = _TEXT_ARRAY  # type: ignore[misc]  # the base has it as an instance variable with a default

    def dump(self, obj: Texts) -> bytes:
        """The array's literal."""
        return literal(obj).encode()


def literal(texts: _List) -> str:
    """The texts as the literal of an array, null where there is none."""
    try:
        body = '","'.join(texts)  # type: ignore[arg-type]  # what is null raises
    except TypeError:
        return "{" + ",".join("null" if text is None else _quoted(text) for text in texts) + "}"
    if not texts:
        return "{}"
    if "\\" in body or body.count('"') != 2 * len(texts) - 2:
        return "{" + ",".join(map(_quoted, texts)) + "}"  # type: ignore[arg-type]  # none is null here
    return f'{{"{body}"}}'


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
