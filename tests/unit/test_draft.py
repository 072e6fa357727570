"""What is built the quick way equals what its class builds, field by field, and is as immutable."""

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from treadle.core import draft
from treadle.core.job import Enqueued, Job, Key, NewJob

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
NEW = NewJob("id", "mail", "[1]", "mails", 5.0, LATER, 3, 7, Key("dedupe", "k"))


def test_a_new_job():
    made = draft.new_job("id", "mail", "[1]", "mails", 5.0, LATER, 3, 7, Key("dedupe", "k"))
    assert made == NEW
    assert type(made) is NewJob
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "other"


def test_a_pending_job():
    made = draft.pending_job(NEW, NOW, LATER)
    assert made == NEW.stored(NOW, LATER)
    assert type(made) is Job
    assert hash(made) == hash(NEW.stored(NOW, LATER))
    assert dataclasses.replace(made, name="other").name == "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "other"


def test_an_answer():
    job = NEW.stored(NOW, LATER)
    made = draft.answer(job, created=True)
    assert made == Enqueued("id", True, job)
    assert type(made) is Enqueued
    with pytest.raises(dataclasses.FrozenInstanceError):
        del made.job


def test_every_field_of_a_job_is_written():
    fields = {field.name for field in dataclasses.fields(Job)}
    assert all(hasattr(draft.pending_job(NEW, NOW, LATER), name) for name in fields)
