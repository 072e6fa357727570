"""Payload types: what a handler's annotation asks of a payload, on arrival and at a typed enqueue (E11)."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from treadle.core.errors import InvalidArgument, MissingExtra


@dataclass(frozen=True, slots=True)
class Codec:
    """`decode` turns what JSON means into the annotated type, `encode` the other way.

    `decode` raises `InvalidPayload`; `encode` whatever the type's library raises, and `InvalidArgument` for a value that does
    not come back as it is.
    """

    decode: Callable[[Any], Any]
    encode: Callable[[Any], Any]


def codec_for(annotation: Any, handler: str) -> Codec | None:
    """The codec of an annotation that is, or holds, a model; None where JSON's own types are meant.

    Raises `MissingExtra` where the library that converts such a type is not installed, and `InvalidArgument` where it cannot.
    """
    kinds = _kinds(annotation, set())
    if not kinds:
        return None
    library, extra = ("pydantic", "pydantic") if "pydantic" in kinds else ("msgspec", "typed")
    try:
        # What imports the libraries is imported only where they are needed.
        if library == "pydantic":
            from treadle.tasks.pydantic_codec import pydantic_codec as codec
        else:
            from treadle.tasks.msgspec_codec import msgspec_codec as codec
    except ImportError:
        raise MissingExtra(
            f"handler {handler!r} takes {named(annotation)}, which needs {library}: install treadle[{extra}]"
        ) from None
    try:
        return codec(annotation, named(annotation))
    except ValueError as error:
        raise InvalidArgument(f"handler {handler!r} cannot take {named(annotation)}: {error}") from None


def _kinds(annotation: Any, seen: set[Any]) -> set[str]:
    """Which libraries' models stand in the annotation, or in the fields of those that have no library of their own."""
    annotation = _meant(annotation)
    if not isinstance(annotation, type):
        return set().union(*(_kinds(argument, seen) for argument in typing.get_args(annotation)))
    if annotation in seen:
        return set()
    seen.add(annotation)
    modules = {base.__module__.partition(".")[0] for base in annotation.__mro__}
    if "pydantic" in modules or hasattr(annotation, "__pydantic_validator__"):
        return {"pydantic"}
    if "msgspec" in modules or dataclasses.is_dataclass(annotation) or _is_typed_dict(annotation):
        return {"msgspec"}.union(*(_kinds(field, seen) for field in _fields(annotation)))
    return set().union(*(_kinds(argument, seen) for argument in typing.get_args(annotation)))


def _meant(annotation: Any) -> Any:
    """The type behind a `NewType` or a `type` statement."""
    while True:
        if isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            return annotation


def _fields(model: type) -> list[Any]:
    """The types of a model's fields; none where one names what is not defined yet, which its library looks up later."""
    try:
        return [*typing.get_type_hints(model, include_extras=True).values()]
    except (NameError, TypeError, AttributeError):
        return []


def _is_typed_dict(annotation: type) -> bool:
    return issubclass(annotation, dict) and hasattr(annotation, "__total__") and hasattr(annotation, "__required_keys__")


def named(annotation: Any) -> str:
    """The type as a message names it."""
    name = None if typing.get_args(annotation) else getattr(annotation, "__name__", None)
    return name or str(annotation)
