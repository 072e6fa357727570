"""Turns groups of contract functions into one pytest class, with rules for skipping (S2)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import pytest

from treadle.core.errors import InvalidArgument

Subject = TypeVar("Subject")
Check: TypeAlias = Callable[[Subject], Coroutine[Any, Any, None]]
Skip: TypeAlias = bool | str | Mapping[str, str] | None


class Group(Generic[Subject]):
    """A named group of contract functions, filled by using it as a decorator."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: dict[str, Check[Subject]] = {}

    def __call__(self, check: Check[Subject]) -> Check[Subject]:
        """Add the function; its name and its docstring are what a reader of a failure sees."""
        name = check.__name__
        if not inspect.getdoc(check):
            raise InvalidArgument(f"the contract function {self.name}.{name} needs a docstring: the sentence that it proves")
        if name in self.checks:
            raise InvalidArgument(f"the contract has two functions {self.name}.{name}")
        self.checks[name] = check
        return check


def test_class(title: str, groups: Iterable[Group[Subject]], run: Callable[[Check[Subject]], None], skip: Skip) -> type:
    """A class with one sync test method for each contract function; `run` runs one of them on a subject of its own.

    Raises `InvalidArgument` where `skip` names a group or a test that does not exist.
    """
    groups = list(groups)
    reasons = _reasons(groups, skip)
    namespace: dict[str, object] = {
        f"test_{group.name}__{name}": _method(check, run, reasons.get(f"{group.name}.{name}"))
        for group in groups
        for name, check in group.checks.items()
    }
    made = type(
        f"Test{''.join(part.capitalize() for part in title.replace('-', ' ').replace('_', ' ').split())}", (), namespace
    )
    made.__doc__ = f"The contract, on {title}."
    return made


test_class.__test__ = False  # type: ignore[attr-defined]  # so that pytest does not take this function for a test


def _method(check: Check[Subject], run: Callable[[Check[Subject]], None], reason: str | None) -> Callable[[object], None]:
    def method(self: object) -> None:
        if reason is not None:
            pytest.skip(reason)
        __tracebackhide__ = True
        run(check)

    method.__doc__ = check.__doc__
    method.__module__ = check.__module__
    return method


def run_on_a_fresh_loop(check: Check[Subject], work: Coroutine[Any, Any, None]) -> None:
    """Run the work on an event loop of its own; a failure is shown from the contract function on, without asyncio's frames."""
    __tracebackhide__ = True
    try:
        asyncio.run(work)
    except Exception as error:
        frame = error.__traceback__
        while frame is not None and frame.tb_frame.f_code is not check.__code__:
            frame = frame.tb_next
        raise error.with_traceback(frame or error.__traceback__)  # noqa: B904  # it is the same error, not a new one


def _reasons(groups: list[Group[Subject]], skip: Skip) -> dict[str, str]:
    """The reason for each skipped `group.test`."""
    tests = {group.name: [f"{group.name}.{name}" for name in group.checks] for group in groups}
    every = [test for names in tests.values() for test in names]
    match skip:
        case None | False:
            return {}
        case True:
            return dict.fromkeys(every, "the contract is skipped as a whole, without a reason given")
        case str():
            return dict.fromkeys(every, _checked_reason("the contract", skip))
    reasons: dict[str, str] = {}
    for name, reason in skip.items():
        if name not in tests and name not in every:
            raise InvalidArgument(
                f"skip names {name!r}, which is no part of the contract; its groups are {', '.join(tests)}, "
                "and a single test is named 'group.test', without 'test_'"
            )
        reasons |= dict.fromkeys(tests.get(name, [name]), _checked_reason(name, reason))
    return reasons


def _checked_reason(name: str, reason: object) -> str:
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidArgument(f"skipping {name} needs a reason in words, not {reason!r}")
    return reason
