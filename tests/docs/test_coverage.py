"""The reference pages and the code name the same things, in both directions (D7)."""

import ast
import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

import click
import pytest

import treadle
import treadle.testing
from treadle import InvalidArgument, Job, State, Tasks, open_store
from treadle.cli.loading import CannotLoad
from treadle.cli.main import COMMANDS, cli
from treadle.core import errors, payload
from treadle.core.policies import limits
from treadle.core.policies.retry import Exponential
from treadle.core.transitions import MAX_ERROR
from treadle.engine import engine, worker
from treadle.engine.abort import Aborted
from treadle.engine.claimer import SPARE_THREADS
from treadle.engine.outage import Outage
from treadle.engine.schedules import Schedules
from treadle.functions.directory import BadFunction
from treadle.functions.http.listening import CannotListen
from treadle.functions.tokens import WrongSignature
from treadle.stores import POSTGRES, REDIS
from treadle.stores.postgres import PostgresStore
from treadle.stores.postgres.settings import Settings
from treadle.stores.redis import RedisStore
from treadle.stores.redis.adapter import PREFIX
from treadle.stores.redis.url import address
from treadle.tasks.blocking import SyncTasks
from treadle.tasks.blocking_schedules import SyncSchedules
from treadle.tasks.options import EnqueueOptions
from treadle.testing import contract, library

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/treadle"
DOCS = ROOT / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text()


def sections(text: str, level: str = "##") -> dict[str, str]:
    """The text under each heading of that level, down to the next of it."""
    return dict(re.findall(rf"^{level} ([^\n]+)\n(.*?)(?=^{level} |\Z)", text, re.MULTILINE | re.DOTALL))


def rows(text: str) -> list[list[str]]:
    """The cells of every table in the text, without the headings."""
    found, before = [], ""
    for line in text.splitlines():
        if line.startswith("|") and before.startswith("|") and not re.match(r"\| *-", line):
            found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        before = line
    return found


def first_names(text: str) -> list[str]:
    """What stands in backquotes in the first cell of each row."""
    return [name for cells in rows(text) for name in re.findall(r"`([^`]+)`", cells[0])]


def public(owner: type) -> dict[str, Any]:
    """What a class has that is public: methods, properties and slots, those of its bases included."""
    found = {}
    for base in reversed(owner.__mro__[:-1]):
        if base.__module__.partition(".")[0] == "treadle":
            found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    return found


def methods(owner: type) -> dict[str, Any]:
    return {name: value for name, value in public(owner).items() if inspect.isfunction(value)}


def signature(name: str, function: Any) -> str:
    """The call as the page writes it: names and defaults, without types."""
    parts, starred = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            starred = True
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        mark = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else f"={shown(parameter.default)}"
        parts.append(f"{mark}{parameter.name}{default}")
    awaited = "await " if inspect.iscoroutinefunction(function) else ""
    return f"{awaited}{name}({', '.join(parts)})"


def shown(default: Any) -> str:
    match default:
        case Exponential(base, cap):
            return f"Exponential({base:g}, {cap:g})"
        case tuple():
            return repr(tuple(map(str, default)))
        case _:
            return repr(default)


# -- api.md

API = sections(page("reference/api.md"))
OWNERS = {"Tasks": Tasks, "Handler": treadle.Handler, "Context": treadle.Context}
PREFIXES = {"Tasks": "tasks", "Handler": "handler", "Context": "ctx"}
VALUES = ["Enqueued", "Redriven", "Pruned", "Stats", "Schedule"]
CALLED = ["Tasks", "Retry", "Snooze", "GiveUp", "Exponential", "Fixed", "NewJob", "Cron", "open_store"]


def test_every_public_name_is_documented() -> None:
    api, named = page("reference/api.md"), set(first_names(sections(page("reference/errors.md"))["Errors"]))
    missing = [name for name in treadle.__all__ if name not in API and name not in named and f"`{name}`" not in api]
    assert [name for name in missing if name != "__version__"] == []
    assert "`treadle.__version__`" in api


def test_no_section_is_about_a_name_that_is_not_public() -> None:
    assert [name for name in API if name not in treadle.__all__ and name not in ("tasks.sync", "tasks.schedules")] == []


@pytest.mark.parametrize("owner", OWNERS)
def test_every_method_has_a_section_with_its_signature(owner: str) -> None:
    documented = sections(API[owner], "###")
    assert set(documented) == {f"{PREFIXES[owner]}.{name}" for name in methods(OWNERS[owner])}
    for name, method in methods(OWNERS[owner]).items():
        lines = documented[f"{PREFIXES[owner]}.{name}"].splitlines()
        assert f"`{signature(name, method)}`" in lines, f"{owner}.{name} is {signature(name, method)}"


@pytest.mark.parametrize("owner", OWNERS)
def test_every_parameter_of_a_method_is_explained(owner: str) -> None:
    documented = sections(API[owner], "###")
    for name, method in methods(OWNERS[owner]).items():
        if owner == "Tasks" and name in ("handle", "configure", "iterate"):
            continue  # said to be those of `handler`, of the settings and of `list`
        text = documented[f"{PREFIXES[owner]}.{name}"].replace(f"`{signature(name, method)}`", "")
        for parameter in list(inspect.signature(method).parameters)[1:]:
            if parameter not in ("app", "options"):
                assert re.search(rf"`{parameter}\b", text), f"{owner}.{name}: {parameter} is not explained"


@pytest.mark.parametrize("owner", OWNERS)
def test_every_attribute_is_documented(owner: str) -> None:
    attributes = set(public(OWNERS[owner])) - set(methods(OWNERS[owner]))
    if owner == "Tasks":
        attributes |= {name for name in vars(Tasks("memory:")) if not name.startswith("_")}
    if owner == "Handler":
        attributes |= {"name", "function"}
        assert attributes <= set(re.findall(r"`(\w+)`", API[owner]))
        return
    before = API[owner].partition("\n### ")[0]
    assert set(first_names(before)) == attributes


def test_the_sign_to_abort_is_documented() -> None:
    for name in {*public(Aborted)} - {"set"}:
        assert re.search(rf"`{name}\b", API["Context"]), name


@pytest.mark.parametrize("name", CALLED)
def test_calls_are_written_as_they_are(name: str) -> None:
    assert f"`{signature(name, getattr(treadle, name))}`" in API[name]


def test_the_blocking_twins_are_all_there_and_take_what_the_async_ones_take() -> None:
    [line] = [line for line in API["tasks.sync"].splitlines() if line.startswith("`enqueue`")]
    assert re.findall(r"`(\w+)`", line) == [*methods(SyncTasks)]
    for name, method in methods(SyncTasks).items():
        if "options" not in inspect.signature(method).parameters:
            assert signature(name, method) == signature(name, getattr(Tasks, name)).removeprefix("await "), name


def test_every_operation_on_schedules_is_documented_and_has_a_blocking_twin() -> None:
    async_only, of_faces = {"iterate"}, {"put", "create"}
    assert set(methods(Schedules)) - of_faces - async_only == set(methods(SyncSchedules))
    documented = [*methods(SyncSchedules), *async_only]
    assert {name.removeprefix("await ").partition("(")[0] for name in first_names(API["tasks.schedules"])} == set(documented)
    for name in documented:
        assert f"`{signature(name, getattr(Schedules, name))}`" in API["tasks.schedules"]
    for name, method in methods(SyncSchedules).items():
        assert signature(name, method) == signature(name, getattr(Schedules, name)).removeprefix("await ")


@pytest.mark.parametrize("name", VALUES)
def test_every_field_of_an_answer_is_documented(name: str) -> None:
    fields = [field.name for field in dataclasses.fields(getattr(treadle, name))]
    assert first_names(API[name]) == fields


def test_every_option_of_an_enqueue_and_of_a_handler_is_documented() -> None:
    documented = sections(API["Tasks"], "###")
    assert set(first_names(documented["tasks.enqueue"])) == {"name", "payload", *EnqueueOptions.__annotations__}
    options = [*inspect.signature(Tasks.handler).parameters][1:]
    assert first_names(documented["tasks.handler"]) == options


def test_every_method_of_cron_is_documented() -> None:
    text = page("reference/cron.md")
    assert [name for name in methods(treadle.Cron) if not re.search(rf"`{name}\(", text)] == []


# -- settings.md

SETTINGS = sections(page("reference/settings.md"))


def test_every_setting_is_documented_with_its_default() -> None:
    documented = {re.findall(r"`(\w+)`", cells[0])[0]: cells[1] for cells in rows(SETTINGS["Of `Tasks`"])}
    parameters = list(inspect.signature(Tasks).parameters.values())
    assert [*documented] == [parameter.name for parameter in parameters]
    for parameter in parameters:
        match parameter.default:
            case None:
                default = "none"
            case bool():
                default = f"`{parameter.default}`"
            case int():
                default = f"{parameter.default:,}"
            case float():
                default = f"{parameter.default:g} s"
            case _:
                default = f"`{shown(parameter.default)}`"
        assert documented[parameter.name] == default, parameter.name


def test_the_numbers_that_are_no_settings_are_right() -> None:
    numbers = [cells[0] for cells in rows(SETTINGS["Numbers that are not settings"])]
    assert numbers == [
        f"{worker.ABANDON_AFTER:g} s",
        f"{SPARE_THREADS} + `concurrency`",
        "3",
        f"{engine.LOOK_OUT_EVERY:g} s",
        f"{engine.PRUNE_EVERY:g} s",
        f"{Outage.FIRST_PAUSE:g} s to {Outage.LONGEST_PAUSE:g} s",
    ]
    assert f"{worker.BACKLOG:,}" in page("explain/stopping.md")


def test_every_environment_variable_is_documented() -> None:
    read = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.environ.get", "os.getenv", "_named_by"):
                if isinstance(node.args[0], ast.Constant):  # else whoever calls that function names it
                    read.add(node.args[0].value)
            elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
                read.add(ast.literal_eval(node.slice))
    assert set(first_names(SETTINGS["Environment variables"])) == read


# -- errors.md

ERRORS = sections(page("reference/errors.md"))


def error_classes(base: type[errors.TreadleError] = errors.TreadleError) -> list[type[errors.TreadleError]]:
    below = [found for one in base.__subclasses__() for found in error_classes(one)]
    return [base, *[one for one in below if one.__module__.startswith("treadle.")]]


def test_every_error_is_documented_with_its_code() -> None:
    documented = {}
    for cells in rows(ERRORS["Errors"].partition("\n### ")[0]):
        name, code = (re.findall(r"`(\w+)`", cell)[0] for cell in cells[:2])
        documented[name] = (code, re.findall(r"`(\w+)`", cells[2]))
    assert set(documented) == {one.__name__ for one in error_classes()}
    for one in error_classes():
        code, also = documented[one.__name__]
        assert code == one.code
        assert set(also) <= {base.__name__ for base in one.__mro__[1:]}
    assert {one.__name__ for one in (CannotLoad, BadFunction, CannotListen, WrongSignature)} <= set(documented)


def test_every_log_message_is_documented_with_its_level() -> None:
    logged = {}
    for layer in ("engine", "tasks", "stores"):
        for file in (SOURCE / layer).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                call = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
                level = re.fullmatch(r"(?:.*[._])?log(?:ger)?\.(info|warning|error|exception)", call)
                if level and isinstance(node, ast.Call):
                    text = re.sub(r"%[.\d]*[a-z]", "…", ast.literal_eval(node.args[0]))
                    logged[text] = level[1].replace("exception", "error")
    documented = {re.findall(r"`([^`]+)`", cells[1])[0]: cells[0] for cells in rows(ERRORS["Log messages"])}
    assert documented == logged


# -- jobs.md

JOBS = sections(page("reference/jobs.md"))


def test_every_field_of_a_job_and_of_a_failure_is_documented() -> None:
    fields = {field.name for field in dataclasses.fields(Job)}
    properties = {name for name, value in vars(Job).items() if isinstance(value, property)}
    assert set(first_names(JOBS["Fields"])) == fields | properties
    assert first_names(JOBS["Failures"]) == [field.name for field in dataclasses.fields(treadle.Failure)]


def test_every_state_is_documented() -> None:
    assert first_names(JOBS["States"]) == [*State]


def test_the_limits_are_those_of_the_code() -> None:
    table = {cells[0]: cells[1] for cells in rows(JOBS["Limits"])}
    assert f"1 to {limits.MAX_NAME} " in table["names of jobs and queues"]
    assert f"1 to {limits.MAX_KEY} " in table["keys"]
    assert table["`priority`"] == f"{limits.MIN_PRIORITY:,} to {limits.MAX_PRIORITY:,}"
    assert table["`max_attempts`"] == f"1 to {limits.MAX_ATTEMPTS:,}"
    assert table["payload"].startswith(f"{payload.MAX_PAYLOAD:,} bytes")
    assert table["nesting of a payload"] == f"{payload.MAX_DEPTH} levels"
    assert table["`last_error`"] == f"{MAX_ERROR} characters"
    assert all(f"`{prefix}`" in table["reserved"] for prefix in limits.RESERVED_PREFIXES)


# -- stores.md

STORES = sections(page("reference/stores.md"))


# What names each store; nothing is opened by it.
URLS = {"memory:": "memory:", "sqlite:": "sqlite:x", "postgres:": "postgres://h/d", "redis:": "redis://h"}


@pytest.mark.parametrize("url", ["sqlite:x.db"])
def test_every_option_of_a_store_url_is_documented(url: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        open_store(f"{url}?no-such-option=1")
    known = str(refused.value).partition("known are ")[2].split(", ")
    text = STORES[f"{url.partition(':')[0]}:"]
    documented = {cells[0].strip("`"): re.findall(r"`(\w+)`", cells[1]) for cells in rows(text) if len(cells) == 3}
    assert [*documented] == known
    for option in known:
        with pytest.raises(InvalidArgument) as refused:
            open_store(f"{url}?{option}=no-such-value")
        assert documented[option] == str(refused.value).partition("must be one of ")[2].split(", ")


def options_of(store: str) -> dict[str, tuple[str, str]]:
    """The default and the values of each option, as the page has them."""
    table = [cells for cells in rows(STORES[store].partition("\n### ")[0]) if len(cells) == 4]
    return {cells[0].strip("`"): (cells[1].strip("`"), cells[2]) for cells in table}


def test_every_option_of_a_postgres_url_is_documented_with_its_default() -> None:
    with pytest.raises(InvalidArgument) as refused:
        open_store(f"{URLS['postgres:']}?no-such-option=1")
    documented = options_of("postgres:")
    assert {*documented} == {*str(refused.value).partition("known are ")[2].split(", ")}
    for field in dataclasses.fields(Settings):
        if field.name != "url":
            default, _ = documented[field.name]
            seconds = f"{field.default:g} s" if field.type == "float" else None
            assert default == (seconds or {"None": "none"}.get(str(field.default), str(field.default).lower())), field.name
    assert {*documented} == {*inspect.signature(PostgresStore).parameters} - {"url"}


def test_every_option_of_a_redis_url_is_documented_with_its_default() -> None:
    documented = options_of("redis:")
    given = address(f"{URLS['redis:']}?{'&'.join(f'{name}=7' for name in documented if name != 'cluster')}&cluster=true")
    assert given.url == URLS["redis:"], "the store takes them all, and the driver none"
    assert (given.prefix, given.cluster, given.timeout) == ("7", True, 7.0)
    parameters = inspect.signature(RedisStore).parameters
    defaults = {"prefix": PREFIX, "cluster": "false", "timeout": f"{parameters['timeout'].default:g} s"}
    assert {name: default for name, (default, _) in documented.items()} == defaults
    assert {*parameters} - {"url"} - {*documented} == {"patience"}
    assert "`patience`" in STORES["redis:"]


def test_every_store_that_can_be_opened_has_a_section() -> None:
    for url in URLS.values():
        open_store(url)
    assert [name for name in STORES if name.endswith(":")] == [*URLS]
    for scheme in (*POSTGRES, *REDIS):
        assert re.search(rf"`{re.escape(scheme)}:", page("reference/stores.md")), scheme


# -- testing.md

TESTING = sections(page("reference/testing.md"))


def test_the_testing_kit_is_documented() -> None:
    assert {*TESTING} == {*treadle.testing.__all__}
    for name in ("ManualClock", "FaultyStore", "JobFactory"):
        kit = getattr(treadle.testing, name)
        assert f"`{signature(name, kit)}`" in TESTING[name]
        documented = first_names(TESTING[name])
        for method, function in methods(kit).items():
            called = signature(method, function).removeprefix("await ")
            assert called in documented, f"{name}.{called}"
        calls = {one.partition("(")[0] for one in documented if "(" in one}
        assert calls == {*methods(kit)}
    for name in ("store_contract", "tasks_contract", "run_handler", "assert_enqueued", "refute_enqueued"):
        called = signature(name, getattr(treadle.testing, name)).removeprefix("await ")
        assert f"`{called}`" in TESTING[name]


def test_every_group_of_the_contracts_is_documented() -> None:
    parameters = [*inspect.signature(treadle.testing.store_contract).parameters]
    assert first_names(TESTING["store_contract"]) == [*parameters, *[group.name for group in contract.GROUPS]]
    assert first_names(TESTING["tasks_contract"]) == [group.name for group in library.GROUPS]


# -- cli.md


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_its_options_are_documented(name: str) -> None:
    text = page("reference/cli.md")
    assert f"## treadle {name}" in text
    found = cli.get_command(click.Context(cli), name)
    assert found
    parameters = list(found.params)
    if isinstance(found, click.Group):
        for below in found.list_commands(click.Context(found)):
            assert f"| `{below}" in text, below
            command = found.get_command(click.Context(found), below)
            assert command
            parameters += command.params
    for parameter in parameters:
        if isinstance(parameter, click.Option):
            assert all(f"`{option}" in text for option in parameter.opts), parameter.opts


# -- the pages


def test_every_page_is_in_the_index() -> None:
    index = page("README.md")
    pages = [str(file.relative_to(DOCS)) for file in DOCS.rglob("*.md") if file != DOCS / "README.md"]
    assert [name for name in pages if f"({name})" not in index and not name.startswith("decisions/0")] == []


def test_the_tests_that_pages_name_exist() -> None:
    named = {name for file in DOCS.rglob("*.md") for name in re.findall(r"`(tests/[\w/.:]+)`", file.read_text())}
    assert any("::" in name for name in named)
    for name in named:
        path, _, test = name.partition("::")
        assert (ROOT / path).exists(), name
        assert not test or re.search(rf"^(async )?def {test}\(", (ROOT / path).read_text(), re.MULTILINE), name


def test_the_files_that_the_tour_names_exist() -> None:
    for name in re.findall(r"`((?:core|engine|stores|tasks|cli|testing)/[\w/.]+)`", page("explain/internals.md")):
        assert (SOURCE / name).exists(), name


def test_every_word_of_the_glossary_stands_once_and_in_order() -> None:
    words = [cells[0].strip("*") for cells in rows(page("glossary.md"))]
    assert words == sorted(set(words))
