"""The model's test: random operations on the store and on the model agree after each step (S3)."""

from __future__ import annotations

import asyncio

from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

model = Group[Trial]("model")


@model
async def random_operations_agree(t: Trial) -> None:
    """A plain model in Python and the store hold the same jobs, field by field, whatever is done to both (S3)."""
    from treadle.testing.contract.state_machine import drive  # hypothesis is loaded only where it is used

    # In a thread, since hypothesis drives the machine without awaiting, and the machine has an event loop of its own.
    await asyncio.to_thread(drive, t.factory, t.model_examples)
