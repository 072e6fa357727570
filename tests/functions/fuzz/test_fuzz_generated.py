"""F14: bodies that nobody thought of, made by hypothesis."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.functions.function_stores import KINDS
from tests.functions.fuzz.cron_expressions import cron_expressions
from tests.functions.fuzz.firing_range import FiringRange
from tests.functions.fuzz.judge import encoded_of, judged, least
from tests.functions.fuzz.target import CRON, ENQUEUE, encoded, exactly

from treadle.core.filter import EVERYTHING

json_texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
numbers = st.one_of(st.integers(-(10**25), 10**25), st.floats(allow_nan=False, allow_infinity=False))
any_json: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, json_texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(json_texts, inner, max_size=4)),
    max_leaves=12,
)
fields = {
    ENQUEUE: {
        "payload": any_json,
        "delay_secs": st.one_of(st.integers(0, 2_592_000), st.floats(0, 2_592_000), any_json),
        "max_attempts": st.one_of(st.integers(1, 100), any_json),
    },
    CRON: {
        "name": st.one_of(st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._:-]{0,20}", fullmatch=True), any_json),
        "schedule": st.one_of(cron_expressions(), any_json),
        "function": st.one_of(st.from_regex(r"[a-z0-9]{1,5}(-[a-z0-9]{1,5}){0,3}", fullmatch=True), any_json),
        "payload": any_json,
    },
}


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, bytes]:
    route = draw(st.sampled_from([ENQUEUE, CRON]))
    known = fields[route]
    chosen = draw(st.permutations(sorted(known)))
    body = {name: draw(known[name]) for name in chosen if name in least(route) or draw(st.booleans())}
    if draw(st.integers(0, 9)) == 0:
        body[draw(json_texts)] = draw(any_json)
    return route, json.dumps(body, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1]))).encode()


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """A body with bytes put in, left out, changed or said twice."""
    route, body = draw(bodies())
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(body)))
        end = draw(st.integers(start, min(len(body), start + 8)))
        how = draw(st.sampled_from(["cut", "bytes", "twice", "end", "tokens"]))
        middle = {
            "cut": b"",
            "bytes": draw(st.binary(max_size=4)),
            "twice": body[start:end] * 2,
            "end": b"",
            "tokens": draw(
                st.sampled_from([b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\u", b"\\ud800", b"NaN", b"1e999", b"\x00", b"-"])
            ),
        }[how]
        body = body[:start] + middle + (b"" if how == "end" else body[end:])
    return route, body


def examples(kind: str) -> Any:
    count = {"memory": 150, "sqlite": 100, "postgres": 40, "redis": 40}[kind]
    return settings(max_examples=count, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_generated_bodies_are_judged_as_the_description_says(kind: str) -> None:
    with FiringRange(kind) as range_:

        async def shoot(route: str, body: bytes) -> None:
            await judged(range_.shot_at, route, body)
            await range_.shot_at.store.delete(EVERYTHING)

        @examples(kind)
        @given(bodies())
        def check(case: tuple[str, bytes]) -> None:
            range_.run(shoot(*case))

        check()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_bodies_are_refused_or_mean_what_they_say(kind: str) -> None:
    with FiringRange(kind) as range_:

        async def shoot(route: str, body: bytes) -> None:
            before = await range_.shot_at.contents()
            answer = await range_.shot_at.ask("POST", route, body)
            if answer.status == 201:
                sent = json.loads(body) if body.strip() else {}
                assert exactly(encoded_of(answer.body, "payload")) == exactly(encoded(sent.get("payload"))), (body, answer)
                if route == CRON:
                    await range_.shot_at.ask("DELETE", f"{CRON}/{sent['name']}")
                await range_.shot_at.store.delete(EVERYTHING)
            else:
                assert answer.status == 400, (body, answer)
                assert await range_.shot_at.contents() == before, body

        @examples(kind)
        @given(damaged())
        def check(case: tuple[str, bytes]) -> None:
            range_.run(shoot(*case))

        check()
