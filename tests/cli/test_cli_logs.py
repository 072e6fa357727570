"""The log: a JSON object a line whatever a record holds, lines for people, and a standard error that may be gone."""

import json
import logging
import os
import re
import subprocess
import sys
import threading
import uuid
import warnings
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given, strategies as st

from treadle import State
from treadle.cli.logs import JsonFormatter, StderrHandler, TextFormatter, configure_logging

MOMENT = datetime(2026, 3, 1, 12, 0, 0, 7000, tzinfo=UTC)


def record(message="done", *args, level=logging.INFO, name="treadle", exc_info=None, **extra):
    made = logging.getLogger(name).makeRecord(name, level, "file.py", 1, message, args, exc_info, extra=extra)
    made.created = MOMENT.timestamp()
    return made


def formatted(*args, **options):
    line = JsonFormatter().format(record(*args, **options))
    assert line.isascii() and "\n" not in line
    return json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def caught(error):
    try:
        raise error
    except type(error):
        return sys.exc_info()


class Unspeakable:
    def __str__(self):
        raise ValueError("no text")

    __repr__ = __str__


# -- JSON


def test_the_fields_come_in_a_fixed_order():
    fields = formatted("%s of %d", "one", 2, url="/v1", attempt=2, job_name="function:send-report", job_id="a1")
    assert list(fields.items()) == [
        ("ts", "2026-03-01T12:00:00.007Z"),
        ("level", "info"),
        ("logger", "treadle"),
        ("message", "one of 2"),
        ("job_id", "a1"),
        ("function", "send-report"),
        ("job_name", "function:send-report"),
        ("attempt", 2),
        ("url", "/v1"),
    ]


def test_the_function_is_named_only_where_there_is_one():
    assert "function" not in formatted(job_name="mail")
    assert formatted(job_name="function:a", function="b")["function"] == "b"
    assert formatted(job_name=7)["job_name"] == 7


def test_a_moment_without_milliseconds_has_them_all_the_same():
    made = record()
    made.created = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
    assert json.loads(JsonFormatter().format(made))["ts"] == "2026-03-01T00:00:00.000Z"


def test_newlines_and_control_characters_stay_within_the_text():
    assert formatted("a\nb\r\u2028\x1b[31m\x00\u0085")["message"] == "a\nb\r\u2028\x1b[31m\x00\u0085"


def test_an_unpaired_surrogate_is_an_escape_since_readers_of_json_refuse_it():
    fields = formatted("a\ud800b", path="\udcff", **{"\ud801": 1})
    assert (fields["message"], fields["path"], fields["\\ud801"]) == ("a\\ud800b", "\\udcff", 1)
    json.dumps(fields, ensure_ascii=False).encode()


def test_arguments_that_do_not_fit_lose_nothing():
    message = formatted("%d jobs of %s", "three")["message"]
    assert "%d jobs of %s" in message and "three" in message


def test_a_traceback_is_one_field():
    fields = formatted("failed", exc_info=caught(ValueError("wrong\nvalue")))
    assert fields["exception"].startswith("Traceback (most recent call last):\n")
    assert fields["exception"].endswith("ValueError: wrong\nvalue")
    assert "exception" not in formatted("failed", exc_info=(None, None, None))


def test_an_error_without_a_text_has_its_traceback_all_the_same():
    class Odd(Exception):
        __str__ = Unspeakable.__str__

    assert "Odd" in formatted("failed", exc_info=caught(Odd()))["exception"]


def test_a_traceback_that_came_as_text_and_a_stack_are_kept():
    made = record()
    made.exc_text, made.stack_info = "Traceback of elsewhere", "Stack (most recent call last):\n  here"
    fields = json.loads(JsonFormatter().format(made))
    assert (fields["exception"], fields["stack"]) == ("Traceback of elsewhere", "Stack (most recent call last):\n  here")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (2.5, 2.5),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (1 << 63, str(1 << 63)),
        (10**5000, "<int without a text>"),
        (State.DEAD, "dead"),
        (IntEnum("Level", {"HIGH": 3}).HIGH, 3),
        (MOMENT, "2026-03-01T12:00:00.007000+00:00"),
        (MOMENT.date(), "2026-03-01"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (b"\xff", "b'\\xff'"),
        (ValueError("wrong"), "wrong"),
        ({1: (2, {3})}, {"1": [2, [3]]}),
        (MappingProxyType({"a": frozenset({"b"})}), {"a": ["b"]}),
        (Unspeakable(), "<Unspeakable without a text>"),
        ([Unspeakable()], ["<Unspeakable without a text>"]),
        ({Unspeakable: 1}, {str(Unspeakable): 1}),
    ],
    ids=lambda value: None if isinstance(value, Unspeakable) else type(value).__name__,
)
def test_what_json_cannot_say_is_text(value, shown):
    fields = formatted(extra_field=value)
    assert fields["extra_field"] == shown and type(fields["extra_field"]) is type(shown)


def test_what_holds_itself_ends():
    circle = []
    circle.append(circle)
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert formatted(circle=circle)["circle"] == [[[["[[...]]"]]]]
    assert formatted(deep=deep)["deep"]


def test_what_changes_while_it_is_read_or_lies_about_itself_costs_no_line():
    class Liar(dict):
        def items(self):
            raise RuntimeError("changed")

        __str__ = Unspeakable.__str__

    assert formatted(liar=Liar(a=1))["liar"] == "<Liar without a text>"


def test_fields_of_the_formatters_own_are_not_replaced():
    made = record("real", exc_info=caught(ValueError("real")))
    vars(made).update(ts=1, level="x", logger="y", exception="z")
    fields = json.loads(JsonFormatter().format(made))
    assert (fields["level"], fields["message"]) == ("info", "real")
    assert (fields["extra_ts"], fields["extra_level"], fields["extra_logger"], fields["extra_exception"]) == (1, "x", "y", "z")
    assert "ValueError: real" in fields["exception"]


@given(
    st.dictionaries(
        st.text(), st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.binary(), st.lists)
    )
)
def test_there_is_a_line_for_every_record(extra):
    made = record("x")
    vars(made).update({f"x{key}": value for key, value in extra.items()})
    line = JsonFormatter().format(made)
    assert "\n" not in line
    assert len(json.loads(line)) >= 4


# -- text


def test_a_line_for_people():
    assert TextFormatter().format(record("done", level=logging.WARNING)) == "2026-03-01T12:00:00.007Z WARNING treadle: done"
    assert TextFormatter().format(record("done")) == "2026-03-01T12:00:00.007Z INFO    treadle: done"


def test_a_message_cannot_pretend_to_be_another_line_nor_move_the_cursor():
    line = TextFormatter().format(record("a\n2026 ERROR forged\x1b[2J\ud800"))
    assert line.endswith(r"treadle: a\n2026 ERROR forged\x1b[2J\ud800")
    traced = TextFormatter().format(record("failed", exc_info=caught(ValueError("\x1b[2J"))))
    assert traced.splitlines()[1] == "Traceback (most recent call last):" and "\x1b" not in traced


# -- the process


@pytest.fixture
def restored():
    root, own = logging.getLogger(), logging.getLogger("treadle")
    before = root.handlers[:], root.level, own.level
    yield root
    logging.captureWarnings(False)
    root.handlers[:], root.level, own.level = before
    root.setLevel(before[1])  # clears what the loggers remember
    own.setLevel(before[2])


def lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_twice_configured_logs_each_line_once_in_the_latest_form(restored, capsys):
    configure_logging("info", "text")
    configure_logging("info", "json")
    logging.getLogger("treadle.functions").info("hello", extra={"job_id": "a1"})
    [line] = lines(capsys)
    assert (line["message"], line["job_id"], line["logger"]) == ("hello", "a1", "treadle.functions")
    assert len([handler for handler in restored.handlers if isinstance(handler, StderrHandler)]) == 1


def test_handlers_of_others_stay(restored):
    other = logging.NullHandler()
    restored.addHandler(other)
    configure_logging("info", "json")
    assert other in restored.handlers


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("debug", ["own debug", "own info", "own error", "lib warning", "lib error"]),
        ("info", ["own info", "own error", "lib warning", "lib error"]),
        ("error", ["own error", "lib error"]),
    ],
)
def test_others_are_heard_from_warning_on(restored, capsys, level, shown):
    configure_logging(level, "json")
    for name, levels in (("own", ("debug", "info", "error")), ("lib", ("debug", "info", "warning", "error"))):
        for each in levels:
            getattr(logging.getLogger("treadle.x" if name == "own" else "aiohttp.x"), each)("%s %s", name, each)
    assert [line["message"] for line in lines(capsys)] == shown


def test_an_application_can_be_heard_too(restored, capsys):
    configure_logging("info", "json", others="info")
    logging.getLogger("shop").info("sold")
    assert [line["message"] for line in lines(capsys)] == ["sold"]


def test_pythons_warnings_are_lines(restored, capsys):
    configure_logging("info", "json")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        configure_logging("info", "json")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(False)
    [line] = lines(capsys)
    assert (line["level"], line["logger"]) == ("warning", "py.warnings")
    assert "DeprecationWarning: old" in line["message"]


def test_lines_of_many_threads_do_not_mix(restored, capsys):
    configure_logging("info", "json")
    logger = logging.getLogger("treadle")
    threads = [threading.Thread(target=lambda: [logger.info("x" * 1000) for _ in range(50)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(line["message"]) for line in lines(capsys)] == [1000] * 400


PROGRAM = """
import logging, sys
from treadle.cli.logs import configure_logging
configure_logging("info", {form!r})
{first}
logger = logging.getLogger("treadle")
for number in range(300):
    logger.warning("line %d %s", number, "x" * 100)
    logger.error("%d", "not a number")
print("survived")
"""


def survived(form, first, **streams):
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", PROGRAM.format(form=form, first=first)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        **streams,
    )
    return ended.returncode == 0 and ended.stdout == "survived\n"


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("first", ["sys.stderr.close()", "sys.stderr = None", "import os; os.close(2)", ""])
def test_a_standard_error_that_is_closed_costs_nothing(form, first):
    reader, writer = os.pipe()
    os.close(reader)  # nobody listens
    try:
        assert survived(form, first, stderr=writer)
    finally:
        os.close(writer)


def test_a_full_disk_costs_nothing():
    with Path("/dev/full").open("wb") as full:
        assert survived("json", "", stderr=full)


def test_every_line_of_a_process_is_json():
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(form="json", first="")], capture_output=True, text=True, timeout=60, check=True
    )
    found = [json.loads(line) for line in ended.stderr.splitlines()]
    assert len(found) == 600
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found[0]["ts"])
