"""Payloads: what is refused, and what comes back exactly (E4, E5)."""

import json
import math

import pytest
from hypothesis import given, strategies as st

from treadle.core.errors import InvalidArgument
from treadle.core.payload import MAX_DEPTH, decode, encode


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def circle() -> list:
    ring: list = []
    ring += [ring, ring]
    return ring


REFUSED = {
    "nan": (float("nan"), "not JSON"),
    "infinity": ([math.inf], "not JSON"),
    "deep minus infinity": ({"a": [{"b": -math.inf}]}, "not JSON"),
    "bytes": (b"x", "bytes"),
    "set": ({1, 2}, "set"),
    "object": (object(), "object"),
    "number as key": ({1: "x"}, "key 1 is int"),
    "none as key": ({"a": {None: 1}}, "key None is NoneType"),
    "lone surrogate": ("\ud800", "surrogate"),
    "lone surrogate in a key": ({"\udfff": 1}, "surrogate"),
    "one level too deep": (nested(MAX_DEPTH + 1), "deeper than 100"),
    "deeper than python": (nested(100_000), "deeper than 100"),
    "circle": (circle(), "deeper than 100"),
    "integer beyond python's text limit": (10**5000, "not JSON"),
    "too large": ("x" * 1_048_575, "1,048,577 bytes of JSON; the limit is 1,048,576"),
}


@pytest.mark.parametrize("value, told", REFUSED.values(), ids=REFUSED)
def test_what_is_not_json_is_refused_in_one_line(value, told):
    with pytest.raises(InvalidArgument) as caught:
        encode(value)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_limit_counts_bytes_of_utf8_and_is_inclusive():
    assert encode("é" * 4, limit=10) == '"éééé"'
    with pytest.raises(InvalidArgument, match="10 bytes of JSON; the limit is 9"):
        encode("é" * 4, limit=9)


def test_a_hundred_levels_are_allowed():
    assert decode(encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_what_is_json_comes_back_equal_with_its_types_and_key_order(value):
    assert json.dumps(decode(encode(value))) == json.dumps(value)


def test_tuples_are_arrays():
    assert decode(encode({"a": (1, (2,))})) == {"a": [1, [2]]}
