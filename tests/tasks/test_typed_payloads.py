"""Typed payloads: what a handler's own `.enqueue` stores is what it takes, and a type that cannot work is refused (E11)."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import enum
import pathlib
import sys
import uuid
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NewType, TypedDict

import msgspec
import pydantic
import pytest
from pydantic.alias_generators import to_camel

from treadle import Context, InvalidArgument, Tasks

if TYPE_CHECKING:
    from nowhere import Order


def run(main):
    return asyncio.run(asyncio.wait_for(main, 30))


class Colour(enum.Enum):
    RED = "red"


class Aliased(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(alias_generator=to_camel)
    user_id: int


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    at: dt.datetime
    id: uuid.UUID
    price: decimal.Decimal
    colour: Colour
    pair: tuple[int, dt.date]
    data: bytes = b"x"


class ById(pydantic.BaseModel):
    names: dict[int, str]
    when: dict[dt.date, int]


@dataclass
class Counts:
    by: dict[int, str]
    on: dict[dt.date, list[uuid.UUID]]
    colours: dict[Colour, int]


class CountsStruct(msgspec.Struct, rename="camel"):
    by_number: dict[int, float]


@dataclass
class Holding:
    """A dataclass that holds a model, which is pydantic's then."""

    model: Aliased
    more: list[Aliased] = field(default_factory=list)


class Revealed(pydantic.BaseModel):
    token: pydantic.SecretStr

    @pydantic.field_serializer("token")
    def reveal(self, token: pydantic.SecretStr) -> str:
        return token.get_secret_value()


DAY, ID = dt.date(2026, 3, 29), uuid.UUID(int=7)
ROUND_TRIPS = [
    (Aliased, Aliased(userId=1)),
    (
        Strict,
        Strict(
            at=dt.datetime(2026, 3, 29, 1, 30, 0, 123456, tzinfo=dt.UTC),
            id=ID,
            price=decimal.Decimal("1.10"),
            colour=Colour.RED,
            pair=(1, DAY),
        ),
    ),
    (ById, ById(names={1: "a"}, when={DAY: 1})),
    (Counts, Counts({1: "a", -2: "b"}, {DAY: [ID]}, {Colour.RED: 1})),
    (CountsStruct, CountsStruct({1: 0.5})),
    (Holding, Holding(Aliased(userId=1), [Aliased(userId=2)])),
    (Revealed, Revealed(token="s3cret")),
    (list[Aliased], [Aliased(userId=1)]),
    (dict[str, Counts] | None, {"a": Counts({}, {}, {})}),
]


@pytest.mark.parametrize("kind, value", ROUND_TRIPS, ids=lambda one: getattr(one, "__name__", None))
def test_what_a_typed_enqueue_stores_is_what_the_handler_gets(kind, value):
    seen = []

    async def handler(payload):
        seen.append(payload)

    handler.__annotations__["payload"] = kind

    async def main():
        tasks = Tasks("memory:", max_attempts=1)
        enqueued = await tasks.handle("job", handler).enqueue(value)
        await tasks.drain()
        job = await tasks.get(enqueued.id)
        assert (job.state, job.last_error) == ("done", None)

    run(main())
    assert seen == [value]


class Asymmetric(pydantic.BaseModel):
    name: str = pydantic.Field(validation_alias="in", serialization_alias="out")


class Sealed(pydantic.BaseModel):
    token: pydantic.SecretStr
    other: pydantic.SecretBytes | None = None


@dataclass
class Positive:
    number: Annotated[int, msgspec.Meta(gt=0)]


@pytest.mark.parametrize(
    "kind, value, why",
    [
        (
            Asymmetric,
            Asymmetric(**{"in": "x"}),
            "'job' would not take .* not fit Asymmetric: in: Field required",
        ),
        (Sealed, Sealed(token="s3cret"), "the payload of 'job' cannot be stored: Sealed writes a secret as asterisks"),
        (Positive, Positive(-1), r"'job' would not take .* `int` >= 1 - at `\$.number`"),
    ],
    ids=["aliases that differ", "a secret", "a value that is out of bounds"],
)
def test_a_value_that_would_not_come_back_is_refused_at_the_typed_enqueue(kind, value, why):
    async def handler(payload):
        raise AssertionError("must not be called")

    handler.__annotations__["payload"] = kind

    async def main():
        tasks = Tasks("memory:")
        with pytest.raises(InvalidArgument, match=why) as refused:
            await tasks.handle("job", handler).enqueue(value)
        assert "s3cret" not in str(refused.value)
        assert await tasks.list() == []

    run(main())


def test_a_secret_of_plain_json_reaches_its_handler():
    seen = []

    async def handler(payload: Sealed):
        seen.append(payload.token.get_secret_value())

    async def main():
        tasks = Tasks("memory:")
        tasks.handle("job", handler)
        await tasks.enqueue("job", {"token": "s3cret"})
        await tasks.drain()

    run(main())
    assert seen == ["s3cret"]


# -- types that cannot work


class Mine:
    pass


@dataclass
class Folder:
    name: str
    where: pathlib.Path


@dataclass
class Left:
    a: int


@dataclass
class Right:
    a: int


class Holder(msgspec.Struct):
    model: Aliased


@dataclass
class Anything:
    """What can be had from JSON, though msgspec knows nothing of it, or can be left out."""

    thing: object
    key: Hashable
    mine: Mine | None = None
    more: list[Mine] = field(default_factory=list)
    both: dict[str, Mine | None] = field(default_factory=dict)
    next: Anything | None = None


def handler_of(kind):
    async def handler(payload):
        pass

    handler.__annotations__["payload"] = kind
    return handler


@pytest.mark.parametrize(
    "kind, why",
    [
        (Folder, "msgspec cannot make Path, the type of Folder.where, from JSON"),
        (list[Folder], "msgspec cannot make Path, the type of Folder.where, from JSON"),
        (Left | Right, "msgspec says: Type unions may not contain more than one dataclass"),
        (Holder, "pydantic says: Unable to generate pydantic-core schema for"),
        (dict[str, Left | Mine], "msgspec says: Type unions containing a custom type may not"),
        (Left | None, None),
        (Anything, None),
    ],
)
def test_a_type_that_cannot_be_made_from_json_is_refused_at_registration(kind, why):
    tasks = Tasks("memory:")
    if why is None:
        tasks.handle("job", handler_of(kind))
        return
    with pytest.raises(InvalidArgument, match=f"handler 'job' cannot take .*: {why}") as refused:
        tasks.handle("job", handler_of(kind))
    assert "\n" not in str(refused.value)
    assert tasks.names == []


if sys.version_info < (3, 12):  # from then on pydantic takes it

    def test_a_typed_dict_that_holds_a_model_is_refused_where_pydantic_cannot_take_it():
        class Message(TypedDict):
            model: Aliased

        with pytest.raises(InvalidArgument, match=r"pydantic says: Please use `typing_extensions\.TypedDict`"):
            Tasks("memory:").handle("job", handler_of(Message))


def test_a_type_that_names_one_that_is_defined_later_is_taken():
    tasks = Tasks("memory:")
    for kind in (LaterDataclass, LaterModel):
        tasks.handle("job", handler_of(kind))


@dataclass
class LaterDataclass:
    one: NotYet  # noqa: F821  not there yet, when the handler is registered


class LaterModel(pydantic.BaseModel):
    one: NotYet  # noqa: F821  not there yet, when the handler is registered


# -- annotations that are text


def test_a_name_that_is_imported_for_type_checkers_only_is_refused_for_the_payload_and_not_for_the_context():
    tasks = Tasks("memory:")

    async def handler(payload: Order):
        pass

    async def listed(payload: list[Order]):
        pass

    def with_context(payload: Left, ctx: Order):
        pass

    for one in (handler, listed):
        with pytest.raises(InvalidArgument, match=r"Order.* of handler 'job' cannot be read .*outside of `if TYPE_CHECKING`"):
            tasks.handle("job", one)
    tasks.handle("job", with_context)
    assert tasks._registry.get("job").convert is not None


def test_text_within_an_annotation_is_resolved_too():
    tasks = Tasks("memory:")
    handler = handler_of(list["Left"])
    tasks.handle("job", handler)
    assert tasks._registry.get("job").convert([{"a": 1}]) == [Left(1)]


def test_constraints_of_an_annotation_hold():
    async def handler(payload: Annotated[list[Left], msgspec.Meta(max_length=1)]):
        pass

    async def main():
        tasks = Tasks("memory:", max_attempts=1)
        tasks.handle("job", handler)
        enqueued = await tasks.enqueue("job", [{"a": 1}, {"a": 2}])
        await tasks.drain()
        return await tasks.get(enqueued.id)

    assert "length <= 1" in run(main()).last_error


LeftId = NewType("LeftId", Left)


def test_a_new_type_of_a_model_is_that_model():
    seen = []

    async def handler(payload: LeftId, ctx: Context):
        seen.append(payload)

    async def main():
        tasks = Tasks("memory:", max_attempts=1)
        tasks.handle("job", handler)
        await tasks.enqueue("job", {"a": 1})
        wrong = await tasks.enqueue("job", {"a": "x"})
        await tasks.drain()
        assert (await tasks.get(wrong.id)).last_error.startswith("InvalidPayload: the payload does not fit LeftId")

    run(main())
    assert seen == [Left(1)]


def test_annotations_of_plain_json_need_no_library_and_check_nothing():
    tasks = Tasks("memory:")

    async def one(payload: dict[str, Any] | list[int] | None): ...
    async def two(payload): ...
    async def three(*payload): ...

    for handler in (one, two, three):
        tasks.handle("job", handler)
        assert tasks._registry.get("job").convert is None
