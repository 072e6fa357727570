"""Payloads of dataclasses, TypedDicts and Structs, converted by msgspec (E11)."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import inspect

from treadle.core.errors import InvalidPayload
from treadle.tasks.codec import Codec

_JSON: tuple[object, ...] = ({}, [], "", 0, 0.0, True)  # one value of each kind, to be asked for


def msgspec_codec(annotation: Any, name: str) -> Codec:
    """The codec; raises `ValueError` for a type that msgspec cannot make from JSON."""
    _try(annotation)

    def decode(payload: Any) -> Any:
        try:
            return msgspec.convert(payload, annotation, str_keys=True)
        except msgspec.ValidationError as error:
            raise InvalidPayload(f"the payload does not fit {name}: {error}") from None

    return Codec(decode, functools.partial(msgspec.to_builtins, str_keys=True))


def _try(annotation: Any) -> None:
    try:
        msgspec.convert(None, annotation, str_keys=True)
    except msgspec.ValidationError:
        pass  # it is no model, of course; but the type is one that msgspec knows its way about
    except NameError:
        return  # a field names a type that is defined further below
    except TypeError as error:
        raise ValueError(f"msgspec says: {error}") from None
    for place, kind in _foreign(inspect.type_info(annotation), set()):
        where = f", the type of {place}," if place else ""
        raise ValueError(f"msgspec cannot make {kind}{where} from JSON; annotate what JSON has, such as str or dict")


def _foreign(kind: inspect.Type, seen: set[type], place: str = "") -> Iterator[tuple[str, str]]:
    """Types that msgspec only passes through as they are, while JSON has none of them, and without which there is no value.

    Not those of a union, in which msgspec takes none beside None, which there is always.
    """
    match kind:
        case inspect.CustomType(cls=custom):
            if not any(_is(value, custom) for value in _JSON):
                yield place, custom.__name__
        case inspect.StructType() | inspect.DataclassType() | inspect.TypedDictType() | inspect.NamedTupleType():
            if kind.cls not in seen:
                seen.add(kind.cls)
                for field in kind.fields:
                    if field.required:
                        yield from _foreign(field.type, seen, f"{kind.cls.__name__}.{field.name}")
        case _:
            for inner in _parts(kind):
                yield from _foreign(inner, seen, place)


def _parts(kind: inspect.Type) -> Sequence[inspect.Type]:
    match kind:
        case inspect.DictType(key_type=key, value_type=value):
            return key, value
        case inspect.TupleType(item_types=items):
            return items
        case inspect.CollectionType(item_type=item):
            return (item,)
        case inspect.Metadata(type=inner):
            return (inner,)
        case _:
            return ()


def _is(value: object, custom: type) -> bool:
    try:
        return isinstance(value, custom)
    except TypeError:
        return False  # a protocol that says nothing about instances
