"""The measures: each drives one subject once, and answers figures or raises `Void`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from benchmarks.measures.draining import drain, drain_here
from benchmarks.measures.enqueueing import bulk, callers, one
from benchmarks.measures.pickup import pickup, pickup_here
from benchmarks.measures.resting import idle, look, pile
from benchmarks.measures.scheduling import firing, punctual
from benchmarks.measures.watching import Result, Spec
from benchmarks.subject import Subject

MEASURES: dict[str, Callable[[Subject, Spec], Coroutine[Any, Any, Result]]] = {
    measure.__name__: measure
    for measure in (one, callers, bulk, drain, drain_here, pickup, pickup_here, punctual, firing, idle, pile, look)
}
