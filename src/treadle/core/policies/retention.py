"""How long finished jobs are kept (E29)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retention:
    """Seconds after `finished_at` until jobs are pruned; None keeps them.

    A job with an idempotency key is pruned by `keyed`, since its key guards as long as it is stored.
    """

    done: float | None = None
    dead: float | None = None
    keyed: float | None = None
