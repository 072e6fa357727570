"""Payload types: what a handler's annotation asks of a payload, on arrival and at a typed enqueue (E11)."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from treadle.core.errors import InvalidArgument, InvalidPayload, MissingExtra


@dataclass(frozen=True, slots=True)
class Codec:
    """`decode` turns what JSON means into the annotated type, `encode` the other way."""

    decode: Callable[[Any], Any]
    encode: Callable[[Any], Any]


def codec_for(annotation: Any, handler: str) -> Codec | None:
    """The codec of an annotation that is, or holds, a model; None where JSON's own types are meant.

    Raises `MissingExtra` where the library that converts such a type is not installed.
    """
    kinds = _kinds(annotation)
    if "pydantic" in kinds:
        return _pydantic(annotation, handler)
    if kinds:
        return _msgspec(annotation, handler)
    return None


def _kinds(annotation: Any) -> set[str]:
    """Which libraries' models stand in the annotation."""
    if not isinstance(annotation, type):
        return set().union(*(_kinds(argument) for argument in typing.get_args(annotation)))
    modules = {base.__module__.partition(".")[0] for base in annotation.__mro__}
    if "pydantic" in modules or hasattr(annotation, "__pydantic_validator__"):
        return {"pydantic"}
    if "msgspec" in modules or dataclasses.is_dataclass(annotation) or _is_typed_dict(annotation):
        return {"msgspec"}
    return set().union(*(_kinds(argument) for argument in typing.get_args(annotation)))


def _is_typed_dict(annotation: type) -> bool:
    return issubclass(annotation, dict) and hasattr(annotation, "__total__") and hasattr(annotation, "__required_keys__")


def _msgspec(annotation: Any, handler: str) -> Codec:
    try:
        import msgspec
    except ImportError:
        raise MissingExtra(
            f"handler {handler!r} takes {_named(annotation)}, which needs msgspec: install treadle[typed]"
        ) from None

    def decode(payload: Any) -> Any:
        try:
            return msgspec.convert(payload, annotation)
        except msgspec.ValidationError as error:
            raise InvalidPayload(f"the payload does not fit {_named(annotation)}: {error}") from None

    return Codec(decode, msgspec.to_builtins)


def _pydantic(annotation: Any, handler: str) -> Codec:
    try:
        import pydantic
    except ImportError:
        raise MissingExtra(
            f"handler {handler!r} takes {_named(annotation)}, which needs pydantic: install treadle[pydantic]"
        ) from None
    adapter = pydantic.TypeAdapter(annotation)

    def decode(payload: Any) -> Any:
        try:
            return adapter.validate_python(payload)
        except pydantic.ValidationError as error:
            # pydantic's own text shows the values, which may be secrets.
            told = "; ".join(
                f"{'.'.join(map(str, one['loc'])) or 'payload'}: {one['msg']}" for one in error.errors(include_input=False)
            )
            raise InvalidPayload(f"the payload does not fit {_named(annotation)}: {told}") from None

    return Codec(decode, functools.partial(adapter.dump_python, mode="json"))


def _named(annotation: Any) -> str:
    return getattr(annotation, "__name__", None) or str(annotation)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a handler function takes."""

    is_async: bool
    takes_context: bool
    codec: Codec | None


def shape_of(function: Callable[..., Any], handler: str) -> Shape:
    """Read the function's signature: `payload`, or `payload, ctx`. Raises `InvalidArgument` for any other."""
    if not callable(function):
        raise InvalidArgument(f"handler {handler!r} must be a function, not {type(function).__name__}")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise InvalidArgument(f"the signature of handler {handler!r} cannot be read; wrap it in a function") from None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    required = [p for p in positional if p.default is p.empty]
    needed_by_name = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if (not positional and not takes_any) or len(required) > 2 or needed_by_name:
        raise InvalidArgument(
            f"handler {handler!r} must take (payload) or (payload, ctx), not ({', '.join(map(str, parameters))})"
        )
    takes_context = len(required) == 2 or (len(positional) > 1 and positional[1].name in ("ctx", "context"))
    codec = codec_for(_annotation(function, positional[0]), handler) if positional else None
    called = function if not isinstance(function, functools.partial) else function.func
    if isinstance(called, type):
        raise InvalidArgument(f"handler {handler!r} must be a function or an object, not the class {called.__name__} itself")
    run = called if inspect.isroutine(called) else type(called).__call__
    if inspect.isgeneratorfunction(run) or inspect.isasyncgenfunction(run):
        raise InvalidArgument(f"handler {handler!r} must not contain yield: nothing of a generator runs by calling it")
    return Shape(inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(run), takes_context, codec)


def _annotation(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The parameter's annotation, resolved where it is text; one that names what cannot be found is no model."""
    if not isinstance(parameter.annotation, str):
        return parameter.annotation
    called = inspect.unwrap(function.func if isinstance(function, functools.partial) else function)
    if not inspect.isroutine(called):
        called = called.__call__
    try:
        return typing.get_type_hints(called).get(parameter.name, Any)
    except (NameError, TypeError, AttributeError):
        return _from_frames(parameter.annotation, called)


def _from_frames(annotation: str, function: Any) -> Any:
    """Resolve an annotation that names something local to the function that defines the handler."""
    frame = inspect.currentframe()
    names: dict[str, Any] = {}
    while frame is not None:
        if frame.f_globals is getattr(function, "__globals__", None):
            names = {**frame.f_globals, **frame.f_locals}
            break
        frame = frame.f_back
    try:
        return eval(annotation, names)  # noqa: S307  the text is the programmer's own annotation
    except Exception:
        return Any
