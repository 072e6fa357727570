"""Whatever a function sends, and however it is cut into pieces: an answer or a failure, soon, and nothing left behind."""

import asyncio
from itertools import pairwise

import pytest
from callee import call, callee, calling, run
from hypothesis import example, given, settings, strategies as st
from test_caller_answers import DROPPED, KEPT, OPEN

from treadle.core.signals import CallFailed
from treadle.functions.caller import Answer
from treadle.functions.caller.answer import Reading

ANSWERS = {name: (status, answer) for name, (status, answer) in (KEPT | DROPPED | OPEN).items() if len(answer) < 5000}
FEW = settings(max_examples=150, deadline=None)


def pieces(data, cuts):
    marks = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(marks)]


def read(parts):
    """The status, or the fault, that a reader finds in them."""
    reading = Reading()
    try:
        for part in parts:
            reading.feed(part)
            if reading.fault is not None or reading.spoiled:
                break
        return reading.status, reading.fault, reading.complete, reading.spoiled
    finally:
        reading.end()


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(ANSWERS)), st.lists(st.integers(0, 5000), max_size=12))
def test_pieces_make_no_difference_to_a_reader(name, cuts):
    status, answer = ANSWERS[name]
    found, fault, complete, _ = read(pieces(answer, cuts))
    assert (found, fault) == (status, None)
    assert complete == read([answer])[2]


@settings(max_examples=1000, deadline=None)
@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
@example(b"H" * 70_000, [])
@example(b"\r\n" * 40_000, [])
def test_a_reader_takes_anything(data, cuts):
    status, fault, complete, _ = read(pieces(data, cuts))
    assert status is None or fault is None
    assert status is None or 101 <= status <= 999
    assert status is not None or not complete


@st.composite
def spoiled(draw):
    """An answer with some bytes changed, put in, taken out, or repeated."""
    data = ANSWERS[draw(st.sampled_from(sorted(ANSWERS)))][1]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        until = at + draw(st.integers(0, 8))
        match draw(st.sampled_from(["cut", "put", "change", "repeat", "end"])):
            case "cut":
                data = data[:at] + data[until:]
            case "put":
                data = data[:at] + draw(st.binary(max_size=6)) + data[at:]
            case "change":
                data = data[:at] + draw(st.binary(min_size=1, max_size=1)) + data[at + 1 :]
            case "repeat":
                data = data[:at] + data[at:until] * 3 + data[until:]
            case "end":
                data = data[:at]
    return data


async def outcome(data, cuts, ending):
    """What two calls of a function that sends these bytes come to."""

    async def behaviour(line):
        await line.request()
        for piece in pieces(data, cuts):
            await line.send(piece)
            await asyncio.sleep(0)
        if ending == "closes":
            line.close()
        elif ending == "resets":
            line.reset()

    async with callee(behaviour) as peer, calling() as caller:
        outcomes = []
        for _ in range(2):
            try:
                outcomes.append(await call(caller, peer.url, seconds=0.05 if ending == "stays" else 5.0))
            except CallFailed as failed:
                text = str(failed)
                assert text.startswith("Function 'x' ")
                assert text.isprintable()
                assert len(text) < 200
                outcomes.append(text)
        await caller.close()
        assert not caller._pool._open
        return outcomes


@FEW
@given(st.sampled_from(sorted(ANSWERS)), st.lists(st.integers(0, 5000), max_size=6))
def test_pieces_make_no_difference_to_a_call(name, cuts):
    status, answer = ANSWERS[name]
    assert run(outcome(answer, cuts, "closes")) == [Answer(status)] * 2


@FEW
@given(st.one_of(spoiled(), st.binary(max_size=100)), st.lists(st.integers(0, 500), max_size=4))
def test_any_bytes_and_a_close(data, cuts):
    for one in run(outcome(data, cuts, "closes")):
        if isinstance(one, str):
            assert "timed out" not in one


@settings(max_examples=60, deadline=None)
@given(spoiled(), st.lists(st.integers(0, 500), max_size=4), st.sampled_from(["stays", "resets"]))
def test_any_bytes_and_no_end(data, cuts, ending):
    for one in run(outcome(data, cuts, ending)):
        assert isinstance(one, Answer | str)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_an_answer_cut_at_every_point(name):
    """Up to the last byte of the headers there is none; from then on there is one, and none other."""
    status, answer = ANSWERS[name]
    known = False
    for length in range(1, len(answer) + 1):
        found, fault, *_ = read([answer[:length]])
        assert fault is None
        assert found in ((status,) if known else (None, status))
        known = found is not None
    assert known
