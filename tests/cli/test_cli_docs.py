"""D7: the page about the command names every command and option, and its examples print what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from runs import DEADLINE, Run, Shop, Worker

from treadle.cli.main import COMMANDS, cli

PAGE = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text()
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
SHARED = SECTIONS["What all commands share"]


def options(command: click.Command) -> list[str]:
    """The options of a command; of a group, those of the commands in it too."""
    found = [name for param in command.params if isinstance(param, click.Option) for name in param.opts]
    if isinstance(command, click.Group) and command is not cli:
        with click.Context(command) as context:
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                found += options(below)
    return found


def below(name: str) -> list[str]:
    """The names of the commands in a group."""
    group = command(name)
    return group.list_commands(click.Context(group)) if isinstance(group, click.Group) else []


def command(name: str) -> click.Command:
    with click.Context(cli) as context:
        found = cli.get_command(context, name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name: str) -> None:
    section = SECTIONS[f"treadle {name}"]
    for option in options(command(name)):
        if option not in options(cli):
            assert re.search(rf"^\| .*`{option}[ `]", section, re.MULTILINE), f"{name} {option} is not documented"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_a_group_is_documented(name: str) -> None:
    for command in below(name):
        assert re.search(rf"^\| .*`{command}[ `]", SECTIONS[f"treadle {name}"], re.MULTILINE), f"{name} {command}"


def test_every_option_of_all_commands_is_documented() -> None:
    for option in [*options(cli), "--help", "-h"]:
        assert re.search(rf"^\| .*`{option}[ `]", SHARED, re.MULTILINE), f"{option} is not documented"


def test_nothing_is_documented_that_does_not_exist() -> None:
    assert {section for section in SECTIONS if section.startswith("treadle ")} == {f"treadle {name}" for name in COMMANDS}
    for name in COMMANDS:
        documented = re.findall(r"^\| `(--?[a-z-]+)", SECTIONS[f"treadle {name}"], re.MULTILINE)
        assert set(documented) <= set(options(command(name)))


def normal(text: str) -> list[str]:
    """The lines without what differs from run to run: ids, moments, ages and the widths they lead to."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.]+Z", "MOMENT", text)
    text = re.sub(r"\b(in )?\d+ (ms|s|min|h|d)\b( ago)?|\bnow\b", "AGE", text)
    text = re.sub(r"on [\w.-]+:\d+:\w+", "on WORKER", text)
    text = re.sub(r"sqlite:/\S*/(\w+\.db)", r"sqlite:\1", text)
    return [re.sub(r" +", " ", line).rstrip() for line in text.strip().splitlines()]


def test_the_examples_print_what_the_page_says(treadle: Run, tmp_path: Path) -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (program,) = (text for fence, text in blocks if fence == "python")
    (tmp_path / "app.py").write_text(program)
    subprocess.run([sys.executable, "app.py"], cwd=tmp_path, check=True, timeout=DEADLINE)
    (dead,) = treadle("list", "--status", "dead", "--json", "--store", "sqlite:shop.db").json
    shown = re.search(r"treadle show (\S+)", PAGE)
    assert shown
    compared = 0
    for (fence, text), (next_fence, expected) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        commands = (
            [shlex.split(line.replace(shown[1], dead["id"]))[1:] for line in text.splitlines()] if fence == "bash" else []
        )
        printed = ""
        for arguments in commands:
            if arguments[0] != "work":
                result = treadle(*arguments)
                assert (result.code, result.stderr) == (0, b""), arguments
                printed += result.out
        if commands and next_fence == "text":
            assert normal(printed) == normal(expected)
            compared += 1
    assert compared == 10


def test_the_worker_of_the_page_runs(shop: Shop) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (shop.folder / "app.py").write_text(program)
    (line,) = re.findall(r"^treadle work (.*)$", PAGE, re.MULTILINE)
    worker = Worker(shop.folder, *shlex.split(line))
    try:
        worker.wait_for("welcome-email, charge-card; concurrency 8, queues default, mail")
        worker.signal()
        assert worker.wait() == 0
    finally:
        worker.close()
