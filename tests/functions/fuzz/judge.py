"""The description as a judge: what it allows must be taken, and come back exactly; what it does not, must be refused."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
from tests.functions.fuzz.raw import Answer
from tests.functions.fuzz.target import CRON, ENQUEUE, Target, encoded, exactly

from treadle.core.cron import Cron
from treadle.core.errors import InvalidArgument


def least(target: str) -> dict[str, Any]:
    return {} if target == ENQUEUE else {"name": "nightly", "schedule": "0 3 * * *", "function": "clean-up"}


def validator(document: Any, shape: str) -> jsonschema_rs.Validator:
    """What the description says of a body, as a judge."""

    def is_cron(value: str) -> bool:
        try:
            Cron.with_seconds(value)
        except InvalidArgument:
            return False
        return True

    schema = document["components"]["schemas"][shape]
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True, formats={"cron": is_cron})


async def judged(shot_at: Target, route: str, body: bytes) -> Answer | None:
    """Send it; it must be taken exactly if the description says so. Answers what was stored."""
    value = json.loads(body)
    valid = validator(shot_at.document, "EnqueueBody" if route == ENQUEUE else "CronBody").is_valid(value)
    if not valid:
        answer = await shot_at.refused("POST", route, body, status=(400,))
        assert "is not JSON" not in answer.message, (body, answer)
        return None
    answer = await shot_at.ask("POST", route, body)
    assert answer.status == 201, (body, answer)
    stored = answer if route == CRON else await shot_at.job(answer.data["id"])
    assert exactly(encoded(stored.data["payload"])) == exactly(encoded(value.get("payload"))), (body, stored)
    if route == CRON:
        (kept,) = [one for one in (await shot_at.ask("GET", CRON)).data if one["name"] == value["name"]]
        assert exactly(encoded(kept["payload"])) == exactly(encoded(value.get("payload")))
        assert (await shot_at.ask("DELETE", f"{CRON}/{value['name']}")).status == 200
    return stored


def encoded_of(body: bytes, field: str) -> str:
    """The field of the answer's data, as text with its keys in their order."""
    return json.dumps(dict(json.loads(body)["data"])[field])
