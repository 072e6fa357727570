"""The setup of a worker: what its parts share."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from treadle.core.profile import Profile
from treadle.core.store import Store
from treadle.engine.clock import EngineClock
from treadle.engine.observer import Observer
from treadle.engine.registry import Registry


@dataclass(frozen=True, slots=True)
class Settings:
    """What is set per worker, beside the profile of its queues (E18)."""

    worker_id: str
    concurrency: int
    poll_interval: float
    queues: tuple[str, ...] | None


@dataclass(slots=True)
class Setup:
    """A store, what to run from it, and how.

    `profile` may be replaced while the worker runs: what is claimed from then on goes by the new one.
    """

    store: Store
    registry: Registry
    profile: Profile
    settings: Settings
    clock: EngineClock
    logger: logging.Logger
    observer: Observer | None = None
