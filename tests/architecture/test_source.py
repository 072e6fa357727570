"""The shape of the source: small files, one sentence at the top, no SQL outside the stores, no clock but two."""

import ast
import re
from pathlib import Path

import treadle

SOURCE = Path(treadle.__file__).parent
ROOT = Path(__file__).parents[2]
FILES = sorted(SOURCE.rglob("*.py"))
LONG = {"core/store.py": 400}  # the whole contract in one place


def name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def test_files_are_small():
    for path in FILES:
        lines = len(path.read_text().splitlines())
        assert lines <= LONG.get(name(path), 350), f"{name(path)} has {lines} lines"


def test_every_file_opens_with_a_sentence():
    for path in FILES:
        doc = ast.get_docstring(ast.parse(path.read_text()))
        assert doc, f"{name(path)} has no docstring"
        assert doc.splitlines()[0].endswith((".", ".)", ":")), f"{name(path)} does not open with a sentence"


def test_no_file_is_named_for_nothing():
    for path in FILES:
        assert path.stem not in {"utils", "helpers", "common", "base", "manager", "misc"}, name(path)


def test_sql_and_lua_stand_only_in_the_stores():
    sql = re.compile(r"\b(select .+ from|insert into|update \w+ set|delete from)\b")
    for path in FILES:
        if not name(path).startswith("stores/"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    assert not sql.search(node.value), f"{name(path)}:{node.lineno} holds SQL"


def test_only_the_engines_clock_and_the_stores_read_a_clock():
    clocks = re.compile(r"\btime\.(time|time_ns|monotonic|perf_counter)\(|datetime\.(now|utcnow)\(")
    allowed = ("engine/clock.py", "engine/outage.py", "stores/", "cli/", "client/clock.py")
    for path in FILES:
        if not name(path).startswith(allowed):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                assert not clocks.search(line), f"{name(path)}:{number} reads a clock"


def test_no_test_sleeps_to_wait():
    sleeping = re.compile(r"\b(time|asyncio|anyio)\.sleep\((?!0\))")
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not sleeping.search(line), f"{path.name}:{number} sleeps; wait for an event"


def test_what_is_ignored_says_why():
    marker = re.compile(r"#\s*(?:type: ignore(?:\[[^\]]*\])?|noqa(?::\s*[A-Z0-9, ]+)?)(.*)")
    for path in FILES:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = marker.search(line)
            assert not found or len(found.group(1).strip(" #")) > 10, f"{name(path)}:{number} ignores without a reason"
