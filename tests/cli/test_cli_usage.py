"""L1, L2, L9: the commands, their exit codes, and what is printed where."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from runs import DEADLINE, TREADLE, Run, Shop, environment, spawn, summaries_are_first_sentences

from treadle.cli.main import COMMANDS, cli

READING = (["list"], ["show", "x"], ["retry", "x"], ["retry", "--all-dead"], ["prune"], ["stats"])
BAD = (
    [],
    ["frobnicate"],
    ["--frobnicate"],
    ["--store"],
    ["--store", ""],
    ["--store", "sqlite:x.db"],
    ["list", "--frobnicate"],
    ["list", "surplus"],
    ["list", "--status", "finished"],
    ["list", "--status", "DONE"],
    ["list", "--status", ""],
    ["list", "--name", ""],
    ["list", "--name", " padded"],
    ["list", "--name", "n" * 129],
    *(["list", "--limit", bad] for bad in ("0", "-1", "+5", "1_000", "٣", "５", " 5", "5 ", "1.0", "1e3", "", "x", "0x5")),
    ["show"],
    ["show", "a", "b"],
    ["retry"],
    ["retry", "x", "--all-dead"],
    ["retry", "x", "--name", "n"],
    ["prune", "--status", "running"],
    ["prune", "--status", "done", "--status", "running"],
    *(
        ["prune", "--older-than", bad]
        for bad in ("7", "d", "", "-1d", "+7d", "1.5h", "7 d", "7D", "1w", "٣d", "1_0d", "999999d", "9" * 99 + "d")
    ),
    ["stats", "surplus"],
    ["migrate", "surplus"],
    ["work"],
    ["work", "app"],
    ["work", "app:"],
    ["work", ":tasks"],
    ["work", "app.py:tasks:x"],
    ["work", "app:tasks", "--concurrency", "0"],
    ["work", "app:tasks", "--concurrency", "100001"],
    ["work", "app:tasks", "--queues", ""],
    ["work", "app:tasks", "--queues", "a,,b"],
    ["work", "app:tasks", "--queues", "functions"],
    ["work", "app:tasks", "--grace", "5"],
    ["work", "app:tasks", "--log-level", "loud"],
    ["work", "app:tasks", "--store", "memory:"],
    ["completion"],
    ["completion", "tcsh"],
    *(
        ["list", "--store", bad]
        for bad in ("memory:", "MEMORY:", "sqlite::memory:", "sqlite:", "nonsense", "ftp://x", "sqlite:x.db?a=b")
    ),
)


@pytest.mark.parametrize("arguments", BAD, ids=lambda arguments: " ".join(arguments)[:60] or "nothing")
def test_l2_bad_arguments_are_usage_errors(treadle: Run, tmp_path: Path, arguments: list[str]) -> None:
    treadle(*arguments).refused_as_usage()
    assert list(tmp_path.iterdir()) == []


def test_l2_the_real_process_says_the_same(tmp_path: Path) -> None:
    spawn(cwd=tmp_path).refused_as_usage()
    spawn("list", "--limit", "1_000", cwd=tmp_path).refused_as_usage()
    spawn("list", cwd=tmp_path, TREADLE_STORE="memory:").refused_as_usage()


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_l2_help_goes_to_stdout(treadle: Run, arguments: list[str]) -> None:
    result = treadle(*arguments)
    assert (result.code, result.stderr) == (0, b"")
    assert result.out.startswith("Usage: treadle")
    assert result.stdout.isascii()  # whatever the locale, it can be printed


def test_l1_each_listed_summary_is_the_first_sentence_of_the_command() -> None:
    summaries_are_first_sentences(cli, COMMANDS)


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_l2_reading_where_no_file_is_fails_and_makes_none(treadle: Run, tmp_path: Path, arguments: list[str]) -> None:
    for more in ([], ["--store", "sqlite:folder/none.db"], ["--store", "sqlite:///none.db?synchronous=NORMAL"]):
        result = treadle(*arguments, *more)
        assert "there is no store at sqlite:" in result.failed_in_one_line()
        assert result.stdout == b""
    assert list(tmp_path.iterdir()) == []


def test_l1_the_store_is_given_before_or_after_the_command_or_in_the_environment(
    treadle: Run, stocked: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"pending": 1, "running": 0, "done": 1, "dead": 1}
    for arguments in (
        ["--store", stocked.url, "stats", "--json"],
        ["stats", "--json", "--store", stocked.url],
        ["--store", "sqlite:elsewhere.db", "stats", "--json", f"--store={stocked.url}"],
    ):
        assert treadle(*arguments).json.items() >= counts.items()
    monkeypatch.setenv("TREADLE_STORE", stocked.url)
    monkeypatch.setenv("DATABASE_URL", "postgres://never.asked/x")
    assert treadle("stats", "--json").json.items() >= counts.items()


def test_s1_without_any_url_the_store_is_data_tasks_db(treadle: Run, tmp_path: Path) -> None:
    assert "sqlite:data/tasks.db" in treadle("stats").failed_in_one_line()
    assert treadle("migrate").code == 0
    assert (tmp_path / "data/tasks.db").exists()
    assert treadle("stats").code == 0


def test_l2_failures_are_one_line_whatever_is_wrong_with_the_file(treadle: Run, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database\n" * 500)
    (tmp_path / "folder.db").mkdir()
    for name in ("text.db", "folder.db"):
        assert treadle("stats", "--store", f"sqlite:{name}").failed_in_one_line()
    assert treadle("migrate", "--store", "sqlite:text.db/deeper/x.db").failed_in_one_line()


def test_l2_an_unexpected_exception_is_one_line_and_its_traceback_is_kept_for_those_who_ask(
    treadle: Run, stocked: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("line one\nline two")

    monkeypatch.setattr("treadle.engine.operations.Operations.stats", broken)
    assert "unexpected RuntimeError: line one line two" in treadle("stats", "--store", stocked.url).failed_in_one_line()
    monkeypatch.setenv("TREADLE_DEBUG", "1")
    result = treadle("stats", "--store", stocked.url)
    assert result.code == 1 and "Traceback" in result.err


def test_l2_a_password_in_the_url_is_never_shown(treadle: Run) -> None:
    for scheme in ("postgres", "redis", "ftp"):
        result = treadle("stats", "--store", f"{scheme}://user:hunter2@127.0.0.1:1/x")
        assert result.code in (1, 2) and "hunter2" not in result.err + result.out


def test_l2_no_room_for_the_output_is_a_failure(stocked: Shop) -> None:
    for arguments in (["list"], ["list", "--json"], ["stats"], ["--help"]):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [*TREADLE, *arguments], cwd=stocked.folder, env=environment(TREADLE_STORE=stocked.url), stdout=full,
                stderr=subprocess.PIPE, timeout=DEADLINE, check=False,
            )  # fmt: skip
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1 and b"No space left" in done.stderr


def test_l2_a_closed_standard_output_is_a_failure_and_no_traceback(stocked: Shop) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *TREADLE, "stats", "--store", stocked.url],
        env=environment(), stderr=subprocess.PIPE, timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == ["treadle: standard output is closed"]


def test_l9_version(treadle: Run) -> None:
    import treadle as package

    result = treadle("--version")
    assert (result.code, result.out) == (0, f"treadle {package.__version__}\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_l9_completion_scripts(treadle: Run, shell: str) -> None:
    result = treadle("completion", shell)
    assert result.code == 0 and "_TREADLE_COMPLETE" in result.out


def completed(words: str, **changes: str) -> list[str]:
    """What a shell is offered after these words."""
    done = subprocess.run(
        TREADLE,
        env=environment(
            _TREADLE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(len(words.split(" ")) - 1), **changes
        ),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_l9_commands_options_states_names_and_ids_complete(stocked: Shop) -> None:
    assert completed("treadle st") == ["stats"]
    assert "--older-than" in completed("treadle prune --o")
    assert completed("treadle list --status d") == ["done", "dead"]
    assert completed("treadle list --name l", TREADLE_STORE=stocked.url) == ["later"]
    assert completed(f"treadle --store {stocked.url} list --name ") == ["later"]
    assert completed("treadle retry ", TREADLE_STORE=stocked.url) == [stocked.ids["dead"]]
    assert len(completed("treadle show ", TREADLE_STORE=stocked.url)) == 3
    assert completed("treadle list --name ", TREADLE_STORE="sqlite:/nowhere/x.db") == []


def test_help_is_quick_since_it_imports_no_command_and_no_driver() -> None:
    code = (
        "import sys\nfrom treadle.cli.main import main\nmain(['--help'])\n"
        "heavy = ('treadle.cli.commands.', 'treadle.stores', 'treadle.engine', 'asyncio', 'sqlite3')\n"
        "bad = [name for name in sys.modules if name.startswith(heavy)]\n"
        "sys.exit(f'imported {bad}' if bad else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert done.returncode == 0, done.stderr
