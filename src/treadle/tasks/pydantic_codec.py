"""Payloads of pydantic's models, and of what holds some (E11)."""

from __future__ import annotations

import json
from typing import Any

import pydantic

from treadle.core.errors import InvalidArgument, InvalidPayload
from treadle.tasks.codec import Codec


def pydantic_codec(annotation: Any, name: str) -> Codec:
    """The codec; raises `ValueError` for a type that pydantic cannot make from JSON."""
    try:
        adapter = pydantic.TypeAdapter(annotation)
    except pydantic.errors.PydanticUndefinedAnnotation as error:
        raise ValueError(f"the name {error.name!r} in it is not defined") from None
    except pydantic.errors.PydanticUserError as error:
        raise ValueError(f"pydantic says: {error.message.splitlines()[0]}") from None
    masks = _masks(adapter)

    def decode(payload: Any) -> Any:
        try:
            # As JSON, since a strict model takes dates, UUIDs and the like as text from nothing else.
            return adapter.validate_json(json.dumps(payload))
        except pydantic.ValidationError as error:
            # pydantic's own text shows the values, which may be secrets.
            told = "; ".join(
                f"{'.'.join(map(str, one['loc'])) or 'payload'}: {one['msg']}" for one in error.errors(include_input=False)
            )
            raise InvalidPayload(f"the payload does not fit {name}: {told}") from None

    def encode(payload: Any) -> Any:
        encoded = adapter.dump_python(payload, mode="json", by_alias=True)
        if masks and adapter.dump_python(decode(encoded)) != adapter.dump_python(payload):
            raise InvalidArgument(
                f"{name} writes a secret as asterisks, which are all that the handler would get; "
                "give the field a serializer that writes its value, or put an id into the payload"
            )
        return encoded

    return Codec(decode, encode)


def _masks(adapter: pydantic.TypeAdapter[Any]) -> bool:
    """Whether the type may hold a `SecretStr` or the like, as its schema tells."""
    try:
        return '"writeOnly": true' in json.dumps(adapter.json_schema(mode="serialization"))
    except (pydantic.errors.PydanticUserError, TypeError, ValueError):
        return False  # the type has no schema, or is not complete yet
