"""The shape of a handler: what its signature says that it takes (E11)."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from treadle.core.errors import InvalidArgument
from treadle.tasks.codec import Codec, codec_for


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
        parameters = list(_signature(function).parameters.values())
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
    codec = codec_for(_annotation(function, positional[0], handler), handler) if positional else None
    called = function if not isinstance(function, functools.partial) else function.func
    if isinstance(called, type):
        raise InvalidArgument(f"handler {handler!r} must be a function or an object, not the class {called.__name__} itself")
    run = called if inspect.isroutine(called) else type(called).__call__
    if inspect.isgeneratorfunction(run) or inspect.isasyncgenfunction(run):
        raise InvalidArgument(f"handler {handler!r} must not contain yield: nothing of a generator runs by calling it")
    return Shape(inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(run), takes_context, codec)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    if sys.version_info >= (3, 14):  # annotations are evaluated there only now, and may name what is not there
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def _annotation(function: Callable[..., Any], parameter: inspect.Parameter, handler: str) -> Any:
    """The parameter's annotation, resolved where it is text, or holds some.

    Raises `InvalidArgument` for one that cannot be: whether it is a model, and what to check, would be anybody's guess.
    """
    if parameter.annotation is parameter.empty:
        return Any
    called = inspect.unwrap(function.func if isinstance(function, functools.partial) else function)
    if not inspect.isroutine(called):
        called = called.__call__
    module = getattr(inspect.unwrap(called), "__globals__", {})
    alone = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})  # the others may name what is not there
    try:
        return typing.get_type_hints(alone, module, _locals(module), include_extras=True)[parameter.name]
    except Exception as error:
        shown = parameter.annotation if isinstance(parameter.annotation, str) else repr(parameter.annotation)
        raise InvalidArgument(
            f"the type {shown} of the payload of handler {handler!r} cannot be read ({error}): "
            "import it outside of `if TYPE_CHECKING`, and define it above the handler"
        ) from None


def _locals(module: dict[str, Any]) -> dict[str, Any]:
    """What is local to the functions of that module that are being run, for a handler that is defined in one of them."""
    names: dict[str, Any] = {}
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals is module and frame.f_locals is not module:
            names = {**frame.f_locals, **names}
        frame = frame.f_back
    return names
