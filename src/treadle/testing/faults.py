"""Faults on purpose: a store that fails before or after an operation, loses answers or is slow, to test what uses one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from treadle.core.errors import InvalidArgument, StoreUnavailable
from treadle.core.store import Store


@dataclass(slots=True)
class _Fault:
    """What befalls the next calls of one operation; `times` None means every call."""

    when: str
    times: int | None
    error: Callable[[], Exception]
    gate: asyncio.Event | None = None
    seconds: float = 0.0


@dataclass(slots=True)
class Calls:
    """How often each operation was called, faulty calls too."""

    counts: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, operation: str) -> int:
        return self.counts.get(operation, 0)


class FaultyStore:
    """Wraps a store and does as it does, but for the faults that a test sets; it is a `Store` like the one inside.

        store = FaultyStore(MemoryStore())
        store.fail_before("claim", times=2)     # the next two claims never reach the store
        store.fail_after("finish")              # finish is applied, and its answer is lost, until `heal`

    Async operations can be faulty, optional ones of the inner store too; lease keepers by `break_keepers`.
    """

    # Set from the inner store, so that a capability is there exactly if that store has it, for `isinstance` as well.
    enqueue: Any
    claim: Any
    held: Any
    renew: Any
    finish: Any
    expired: Any
    reclaim: Any
    redrive: Any
    run_now: Any
    delete: Any
    ensure: Any
    intervals: Any
    get: Any
    find: Any
    count: Any
    stats: Any
    tally: Any
    pending_names: Any
    due: Any
    get_document: Any
    put_document: Any
    delete_document: Any
    list_documents: Any
    migrate: Any
    close: Any

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.calls = Calls()
        self._faults: dict[str, list[_Fault]] = {}
        self._keepers_broken = False
        for name in dir(inner):
            if not name.startswith("_") and not hasattr(type(self), name):
                value = getattr(inner, name)
                setattr(self, name, self._faulty(name, value) if inspect.iscoroutinefunction(value) else value)

    def fail_before(self, *operations: str, times: int | None = None, error: Callable[[], Exception] | None = None) -> None:
        """The next `times` calls (None: all) fail and reach no store. Raises `InvalidArgument` for an unknown operation."""
        self._add(operations, _Fault("before", times, error or _unavailable))

    def fail_after(self, *operations: str, times: int | None = None, error: Callable[[], Exception] | None = None) -> None:
        """The next `times` calls (None: all) are applied, and their answers are lost in an error."""
        self._add(operations, _Fault("after", times, error or _unavailable))

    def slow(self, *operations: str, seconds: float, times: int | None = None) -> None:
        """The next `times` calls (None: all) take so many seconds longer."""
        self._add(operations, _Fault("slow", times, _unavailable, seconds=seconds))

    def hold(self, *operations: str, times: int | None = None) -> asyncio.Event:
        """The next `times` calls (None: all) wait until the event that this answers is set: slowness without sleeping."""
        gate = asyncio.Event()
        self._add(operations, _Fault("slow", times, _unavailable, gate=gate))
        return gate

    def heal(self, *operations: str) -> None:
        """End the faults of these operations, of all if none is named."""
        for operation in operations or tuple(self._faults):
            self._faults.pop(operation, None)
        if not operations:
            self._keepers_broken = False

    def break_keepers(self) -> None:
        """Renewals by lease keepers fail, of those handed out already too, until `heal`."""
        self._keepers_broken = True

    def lease_keeper(self) -> FaultyKeeper:
        """The inner store's keeper, which `break_keepers` breaks."""
        return FaultyKeeper(self.inner.lease_keeper(), lambda: self._keepers_broken)

    def _add(self, operations: tuple[str, ...], fault: _Fault) -> None:
        for operation in operations:
            if not inspect.iscoroutinefunction(getattr(self.inner, operation, None)):
                raise InvalidArgument(f"the store {type(self.inner).__name__} has no async operation {operation!r}")
            self._faults.setdefault(operation, []).append(
                _Fault(fault.when, fault.times, fault.error, fault.gate, fault.seconds)
            )

    def _faulty(self, name: str, operation: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        async def call(*args: object, **options: object) -> object:
            self.calls.counts[name] = self.calls[name] + 1
            fault = self._next(name)
            if fault is not None and fault.when == "before":
                raise fault.error()
            if fault is not None and fault.gate is not None:
                await fault.gate.wait()
            elif fault is not None and fault.seconds:
                await asyncio.sleep(fault.seconds)
            answer = await operation(*args, **options)
            if fault is not None and fault.when == "after":
                raise fault.error()
            return answer

        return call

    def _next(self, name: str) -> _Fault | None:
        """The oldest fault of the operation that is not used up."""
        faults = self._faults.get(name)
        if not faults:
            return None
        fault = faults[0]
        if fault.times is not None:
            fault.times -= 1
            if fault.times <= 0:
                faults.pop(0)
        return fault


class FaultyKeeper:
    """A lease keeper whose renewals fail while the store's keepers are broken."""

    def __init__(self, inner: Any, broken: Callable[[], bool]) -> None:
        self._inner, self._broken = inner, broken

    def renew(self, *args: Any, **options: Any) -> Any:
        """As the inner keeper, or `StoreUnavailable`."""
        if self._broken():
            raise _unavailable()
        return self._inner.renew(*args, **options)

    def close(self) -> None:
        """Give the inner keeper up."""
        self._inner.close()


def _unavailable() -> Exception:
    return StoreUnavailable("the store cannot be reached (a fault that the test set)")
