"""A service that many generated examples are shot at, one after the other, in a loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Self

from tests.functions.function_stores import place
from tests.functions.fuzz.target import Target, target


class FiringRange:
    """A context: the service is there within it."""

    shot_at: Target

    def __init__(self, kind: str, **options: Any) -> None:
        self._options = options
        self._place = place(kind)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._here = self._place.__enter__()
        self._context = target(self._here, **self._options)
        self.shot_at = self._runner.run(self._context.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._runner.run(self._context.__aexit__(None, None, None))
            self._runner.run(self._here.close())
        finally:
            self._runner.close()
            self._place.__exit__(*error)

    def run(self, shot: Coroutine[Any, Any, None]) -> None:
        self._runner.run(shot)
