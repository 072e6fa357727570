"""The guide from a file to a cluster, done as the page tells it, with real servers."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.servers import postgres, valkey

PAGE = (Path(__file__).parents[2] / "docs/how-to/move.md").read_text()
BLOCKS = re.findall(r"^```([^\n]*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
REDIS, POSTGRES = "redis://queue.example:6379/0", "postgres://app@db.example/app"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def test_the_guide_from_a_file_to_a_cluster_is_true(tmp_path: Path) -> None:
    server = valkey.shared()
    database = postgres.shared_server().fresh_database()
    urls = {REDIS: f"{server.url}?prefix={server.fresh_prefix()}", POSTGRES: postgres.shared_server().url_of(database)}
    environment = {name: value for name, value in os.environ.items() if name != "TREADLE_STORE"}
    [program] = [text for fence, text in BLOCKS if fence == "python"]
    (tmp_path / "app.py").write_text(program)

    def run(*words: str) -> str:
        words = tuple(urls.get(word, word) for word in words)
        command = [sys.executable, "-m", "treadle.cli.main", *words[1:]] if words[0] == "treadle" else [sys.executable, *words]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    run("app.py")
    compared = 0
    for (fence, text), (following, expected) in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True):
        if fence != "bash":
            continue
        printed = ""
        for line in text.splitlines():
            words = shlex.split(line)
            if words[0] == "export":
                name, _, value = words[1].partition("=")
                environment[name] = urls.get(value, value)
            elif words[1] == "work":
                work_until_it_says(words, "welcome-email", tmp_path, environment)
            else:
                printed += run(*words)
        if following == "text":
            assert normal(printed, urls, tmp_path) == expected
            compared += 1
    assert compared == 2
    postgres.shared_server().drop_database(database)


def normal(text: str, urls: dict[str, str], folder: Path) -> str:
    for there, here in urls.items():
        text = text.replace(here, there)
    return text.replace(str(folder), "/srv/app")


def work_until_it_says(words: list[str], told: str, folder: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "treadle.cli.main", *words[1:]]
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr
        lines: Callable[[], str] = worker.stderr.readline
        seen = ""
        while told not in seen:
            line = lines()
            assert line, seen
            seen += line
        worker.terminate()
        worker.communicate(timeout=30)
        assert worker.returncode == 0


def test_every_row_of_the_guide_names_an_option_that_exists() -> None:
    from treadle.cli.commands.move import command

    options = {name for parameter in command.params for name in parameter.opts}
    assert set(re.findall(r"`(--[a-z-]+)`", PAGE)) <= options
