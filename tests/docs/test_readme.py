"""The documentation is held to its word: programs run, commands exist, links lead somewhere.

A block fenced `python` is a program of its own and is run as it stands, warnings being errors, in an empty folder.
Fenced `python postgres` it finds an empty database in DATABASE_URL, fenced `python redis` an empty store in REDIS_URL, both
on servers of the tests' own. Fenced `python continued` it goes on with the program above it; fenced `python fragment` it
cannot run, and what it imports from treadle must exist. Commands stand in blocks fenced `bash`. `text`, `json`, `toml`,
`ini`, `sql` and `http` are shown and not checked; `js`, `go`, `sh`, `nginx` and `dockerfile` are the business
of the tests of the pages that have them. Any other fence is an error.
"""

import ast
import http.client
import importlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from tests.servers import postgres, valkey

from treadle import Tasks
from treadle.cli.main import cli

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
SHOWN = {"text", "json", "toml", "ini", "sql", "http", "js", "go", "sh", "nginx", "dockerfile"}
PROGRAMS = {"cd", "cp", "curl", "docker", "export", "git", "kill", "node", "python", "python3", "rm", "uvicorn"}
# How a program may be fenced, and the variable that names a server to it. Those of the caller are never used.
SERVERS = {"python": None, "python postgres": "DATABASE_URL", "python redis": "REDIS_URL"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    fence: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    blocks, fence, start, lines = [], None, 0, []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        opening = re.match(r"\s*```(.*)$", line)
        if opening and fence is None:
            fence, start, lines = opening[1].strip(), number, []
        elif opening:
            blocks.append(Block(page, start, fence or "", "\n".join(lines) + "\n"))
            fence = None
        elif fence is not None:
            lines.append(line)
    assert fence is None, f"{page.relative_to(ROOT)}:{start}: this block is not closed"
    return blocks


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
README = [block for block in BLOCKS if block.page == ROOT / "README.md"]


def programs() -> list[tuple[str, str, str]]:
    """The programs, each with its place, its fence, and the blocks that go on with it."""
    found: list[tuple[Block, str]] = []
    for block in BLOCKS:
        if block.fence in SERVERS:
            found.append((block, block.text))
        elif block.fence == "python continued":
            assert found and found[-1][0].page == block.page, f"{block.place}: there is no program above to go on with"
            found[-1] = (found[-1][0], found[-1][1] + block.text)
    return [(block.place, block.fence, text) for block, text in found]


def commands() -> list[tuple[str, list[str]]]:
    """The commands of the `bash` blocks, without comments and environment variables."""
    found = []
    for block in BLOCKS:
        if block.fence == "bash":
            for line in block.text.replace("\\\n", " ").splitlines():
                for command in re.split(r"&&|\|\||[|;]", re.sub(r"(^|\s)#.*", "", line)):
                    words = shlex.split(command)
                    while words and re.fullmatch(r"\w+=.*", words[0]):
                        del words[0]
                    if words:
                        found.append((block.place, words))
    return found


# What asyncio's debug mode remarks on a busy machine is no fault of the program.
SLOW = re.compile(r"^Executing <.*> took [\d.]+ seconds\n", re.MULTILINE)


def run(program: str | Path, folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("TREADLE_STORE", "DATABASE_URL", "REDIS_URL")}
    environment = kept | variables
    command = [sys.executable, "-X", "dev", "-W", "error", *options, str(program)]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    ended.stderr = SLOW.sub("", ended.stderr)
    return ended


@contextmanager
def served(fence: str) -> Iterator[dict[str, str]]:
    """The variable that names a server to a program, if its fence asks for one: a database, or a prefix, of its own."""
    match SERVERS[fence]:
        case "DATABASE_URL" as variable:
            server = postgres.shared_server()
            database = server.fresh_database()
            yield {variable: server.url_of(database)}
            server.drop_database(database)
        case "REDIS_URL" as variable:
            server = valkey.shared()
            yield {variable: f"{server.url}?prefix={server.fresh_prefix()}"}
        case _:
            yield {}


@pytest.mark.parametrize(("place", "fence", "program"), programs(), ids=[place for place, *_ in programs()])
def test_a_program_in_the_docs_runs_as_it_stands(place: str, fence: str, program: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program)
    with served(fence) as variables:
        ended = run("program.py", tmp_path, **variables)
    assert ended.returncode == 0, f"{place} does not run:\n{ended.stderr}"
    # A failed attempt is logged with its traceback, and some programs fail on purpose; nothing else may go wrong beside it.
    for fault in ("Warning", "Exception ignored", "never retrieved", "was destroyed", "was never awaited"):
        assert fault not in ended.stderr, f"{place} warns:\n{ended.stderr}"


def test_every_fence_says_what_it_is() -> None:
    known = {*SERVERS, "python continued", "python fragment", "bash", *SHOWN}
    assert [f"{block.place}: ```{block.fence}" for block in BLOCKS if block.fence not in known] == []


def test_what_a_fragment_imports_exists() -> None:
    for block in BLOCKS:
        if block.fence.startswith("python"):
            for node in ast.walk(ast.parse(block.text, block.place)):
                if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "treadle":
                    module = importlib.import_module(node.module)
                    assert [n.name for n in node.names if not hasattr(module, n.name)] == [], block.place


def test_every_command_in_the_docs_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    wrong = []
    for place, words in commands():
        program = words[0].removeprefix(".venv/bin/")
        match program:
            case "make":
                good = targets.issuperset(words[1:])
            case "pip":
                good = extras(words) <= set(PROJECT["optional-dependencies"])
            case "treadle":
                good = treadle_command(words[1:])
            case _:
                files = [word for word in words[1:] if word.endswith(".py") and "/" in word]
                good = program in PROGRAMS and all((ROOT / file).exists() for file in files)
        if not good:
            wrong.append(f"{place}: {shlex.join(words)}")
    assert wrong == []


def extras(words: list[str]) -> set[str]:
    named = re.findall(r"\[([\w,-]+)\]", " ".join(words))
    return {extra for group in named for extra in group.split(",")}


def treadle_command(words: list[str]) -> bool:
    """Whether the subcommands and the options exist."""
    command: click.Command = cli
    context = click.Context(command, help_option_names=["-h", "--help"])  # click keeps the option that it makes first
    parameters: dict[str, click.Parameter] = {}
    words = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    while words:
        word = words.pop(0)
        for parameter in command.get_params(context):
            parameters |= dict.fromkeys([*parameter.opts, *parameter.secondary_opts], parameter)
        if word.startswith("-"):
            if word not in parameters:
                return False
            if not getattr(parameters[word], "is_flag", False):
                del words[:1]
        elif isinstance(command, click.Group):
            found = command.get_command(context, word)
            if found is None:
                return False
            command, context = found, click.Context(found, parent=context)
    return True


def test_every_link_leads_somewhere() -> None:
    broken = []
    for page in PAGES:
        prose = re.sub(r"^\s*```.*?^\s*```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", prose):
            path, _, anchor = target.partition("#")
            if re.match(r"https?:|mailto:", path):
                continue
            file = page if not path else page.parent / path
            if not file.exists() or (anchor and anchor not in headings(file)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def headings(page: Path) -> set[str]:
    """The anchors that a page's headings get."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_first_screen_has_the_program_and_the_two_commands() -> None:
    first, second = README[:2]
    assert first.fence == "python"
    assert [words for place, words in commands() if place == second.place] == [["make", "run"], ["make", "test"]]
    assert second.line < 40


# -- the base install


@pytest.fixture(scope="module")
def base_install(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what a plain `pip install` puts there: the built wheel, click and tzdata."""
    folder = tmp_path_factory.mktemp("base")
    built = folder / "wheel"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)], cwd=ROOT, check=True, capture_output=True
    )
    site = folder / "site-packages"
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    for name in ("click", "tzdata"):
        spec = importlib.util.find_spec(name)
        assert spec and spec.origin
        shutil.copytree(Path(spec.origin).parent, site / name)
    return site


def run_with_base_install(program: str, site: Path, folder: Path) -> str:
    """Run it with nothing but the standard library and that folder on the path; answers what it printed."""
    (folder / "program.py").write_text(f"import sys\nsys.path.insert(0, {str(site)!r})\n{program}")
    ended = run("program.py", folder, "-S", "-I")
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr
    return ended.stdout


LOADED = "\nimport sys\nprint(*sorted({name.partition('.')[0] for name in sys.modules}))\n"


def test_the_base_install_is_click_and_tzdata_and_nothing_else() -> None:
    assert {re.match(r"[\w-]+", requirement)[0] for requirement in PROJECT["dependencies"]} == {"click", "tzdata"}  # type: ignore[index]


def test_the_smallest_program_runs_on_the_base_install_and_loads_no_other_package(base_install: Path, tmp_path: Path) -> None:
    loaded = set(run_with_base_install(README[0].text + LOADED, base_install, tmp_path).split())
    assert "treadle" in loaded
    assert loaded - sys.stdlib_module_names - {"treadle", "__main__"} == set()
    assert "sqlite3" not in loaded


def test_importing_treadle_loads_no_driver_and_no_command_code(base_install: Path, tmp_path: Path) -> None:
    loaded = set(run_with_base_install("import treadle\ntreadle.Tasks" + LOADED, base_install, tmp_path).split())
    assert loaded & {"sqlite3", "psycopg", "psycopg_pool", "redis", "click", "msgspec", "pydantic", "pytest"} == set()


def test_sqlite_needs_no_more_than_the_base_install(base_install: Path, tmp_path: Path) -> None:
    program = README[0].text.replace('Tasks("memory:")', 'Tasks("sqlite:jobs.db")')
    program = program.replace(
        "asyncio.run(main())", "async def whole():\n    async with tasks:\n        await main()\n\nasyncio.run(whole())"
    )
    assert "sqlite:" in program
    run_with_base_install(program, base_install, tmp_path)
    assert (tmp_path / "jobs.db").exists()


# -- the web app


def test_the_web_app_of_the_readme_serves_and_works(tmp_path: Path) -> None:
    [app] = [block for block in README if "tasks.install(app)" in block.text]
    (tmp_path / "app.py").write_text(app.text)
    listener = socket.create_server(("127.0.0.1", 0))  # listening already, so that nobody has to wait for the server
    port = listener.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "app:app", "--fd", str(listener.fileno()), "--log-level", "warning"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, pass_fds=[listener.fileno()]) as server:
        try:
            listener.close()
            assert post_image(port) == (202, True)
            assert post_image(port) == (202, False)
            assert server.stdout
            assert server.stdout.readline() == "drawing cat.png\n"
            server.send_signal(signal.SIGTERM)
            assert server.wait(20) in (0, -signal.SIGTERM)  # uvicorn raises the signal again once it has stopped
            assert server.stdout.read() == ""
        finally:
            server.kill()
    with closing(Tasks(f"sqlite:{tmp_path / 'data/app.db'}").sync) as tasks:
        [job] = tasks.list()
    assert job.state == "done"


def post_image(port: int) -> tuple[int, bool]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", "/images/cat.png")
        answer = connection.getresponse()
        return answer.status, json.load(answer)["created"]
    finally:
        connection.close()
