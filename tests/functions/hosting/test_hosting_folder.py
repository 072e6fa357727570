"""What the functions folder holds, and what is said of that which is wrong in it (F1)."""

import logging
import os
import shutil
import sys

import pytest
from tests.functions.hosting.grounds import LOGGER, Grounds

from treadle.core.signals import CallFailed
from treadle.functions.fail_on import FailOn
from treadle.functions.hosting import Hosts


def test_both_forms_are_found_and_declare_what_they_want(grounds: Grounds) -> None:
    grounds.python("report", "async def handle(request): ...")
    grounds.program(
        "send-mail",
        manifest="""
method = "POST"
fail_on = "429, >=500"
concurrency = 3
start = "service"
health = "/health"
ready_within = 12
env = { GREETING = "hello" }
""",
    )
    hosts = grounds.hosts()
    assert hosts.names() == ["report", "send-mail"]
    report, mail = hosts.find("report"), hosts.find("send-mail")
    assert report is not None
    assert mail is not None
    assert (report.method, report.fail_on, report.concurrency, report.start) == ("JOB", None, None, "first-use")
    assert (mail.method, mail.fail_on, mail.concurrency, mail.start) == ("POST", FailOn("429, >=500"), 3, "service")
    assert (mail.command, mail.health, mail.ready_within) == ((sys.executable, "-S", "serve.py"), "/health", 12)
    assert mail.env == {"GREETING": "hello"}
    assert report.broken is mail.broken is None


def test_a_main_py_may_have_a_manifest_without_a_command(grounds: Grounds) -> None:
    grounds.python("report", "async def handle(request): ...")
    (grounds.folder / "report/function.toml").write_text('fail_on = ">=500"')
    found = grounds.hosts().find("report")
    assert found is not None
    assert found.fail_on == FailOn(">=500")
    assert found.command[0] == sys.executable


def test_a_command_of_one_text_is_split_as_a_shell_would(grounds: Grounds) -> None:
    grounds.program("one")
    (grounds.folder / "one/function.toml").write_text("""command = "deno serve --port $PORT 'a b.ts'" """)
    found = grounds.hosts().find("one")
    assert found is not None
    assert found.command == ("deno", "serve", "--port", "$PORT", "a b.ts")


def test_no_folder_and_a_folder_that_is_not_there_hold_nothing(grounds: Grounds) -> None:
    assert Hosts(None, dict, LOGGER).names() == []
    shutil.rmtree(grounds.folder)
    hosts = grounds.hosts()
    assert hosts.names() == []
    assert hosts.find("x") is None
    grounds.folder.mkdir()
    grounds.program("x")
    assert hosts.names() == ["x"]


def test_other_folders_are_ignored_and_told_once(grounds: Grounds, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for name in ("jobs", "Report", "a_b", "x" * 65):
        grounds.python(name, "")
    for name in ("notes", ".git", "__pycache__"):
        (grounds.folder / name).mkdir()
    (grounds.folder / "main.py").write_text("")
    hosts = grounds.hosts()
    assert hosts.names() == hosts.names() == []
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 5, told
    assert all(text.startswith("ignoring the folder ") for text in told)
    assert sum("neither main.py nor function.toml" in text for text in told) == 1
    assert any("reserved" in text for text in told)


def test_a_name_never_leads_out_of_the_folder(grounds: Grounds) -> None:
    grounds.python("inner", "")
    (grounds.folder.parent / "outer").mkdir()
    (grounds.folder.parent / "outer/main.py").write_text("")

    async def story(hosts: Hosts) -> None:
        for name in ("../outer", "..", "", "inner/../../outer", "/", "jobs"):
            assert hosts.find(name) is None
            with pytest.raises(CallFailed, match="not found"):
                await hosts.place(name, "s", 1)

    grounds.run(story)


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ('command = ["true"]\ncomand = 1', "unknown key 'comand'; it takes command, concurrency, env, fail_on, health"),
        ("command = [", "function.toml is no TOML: "),
        ("method = 'JOB'", "function.toml has no command, and there is no main.py"),
        ("command = []", "command must be text or a list of texts"),
        ("command = ''", "command must be text or a list of texts"),
        ("command = ['']", "command must begin with the name of a program"),
        ("command = ['a', 1]", "command must be text or a list of texts"),
        ("command = '''it's'''", "command cannot be split into words: No closing quotation"),
        ("command = 'x'\nmethod = 'GET'", "the method must be JOB, or POST"),
        ("command = 'x'\nfail_on = '>=abc'", "fail_on cannot be read at '>=abc'"),
        ("command = 'x'\nfail_on = 500", "fail_on must be text"),
        ("command = 'x'\nconcurrency = 0", "the function's concurrency must be from 1 to 10,000, not 0"),
        ("command = 'x'\nconcurrency = true", "the function's concurrency must be a whole number"),
        ("command = 'x'\nstart = 'always'", "start must be 'first-use', or 'service'"),
        ("command = 'x'\nhealth = 'health'", "health must be a path"),
        ('command = "x"\nhealth = "/a\\r\\nb"', "health must be a path"),
        ("command = 'x'\nenv = 'A=1'", "env must be a table"),
        ("command = 'x'\nenv = { PORT = '1' }", "env must not set PORT"),
        ("command = 'x'\nenv = { TREADLE_URL = '1' }", "env must not set TREADLE_URL"),
        ("command = 'x'\nenv = { A = 1 }", "env.A must be text, in quotes; not 1"),
        ("command = 'x'\nenv = { 'A B' = '1' }", "env has 'A B', which is no name of a variable"),
        ("command = 'x'\nready_within = -1", "ready_within must not be negative"),
        ("command = 'x'\nready_within = 4000", "ready_within must be at most 3600 seconds, not 4000"),
    ],
)
def test_a_wrong_manifest_breaks_its_function_alone(grounds: Grounds, manifest: str, reason: str) -> None:
    grounds.program("good")
    (grounds.folder / "bad").mkdir()
    (grounds.folder / "bad/function.toml").write_text(manifest)

    async def story(hosts: Hosts) -> None:
        assert hosts.names() == ["bad", "good"]
        found = hosts.find("bad")
        assert found is not None
        assert reason in (found.broken or "")
        with pytest.raises(CallFailed) as failed:
            await hosts.place("bad", "s", 1)
        text = str(failed.value)
        assert text.startswith("Function 'bad' cannot be reached: function.toml")
        assert reason in text
        assert "\n" not in text
        assert hosts.find("good").broken is None

    grounds.run(story)


def test_a_manifest_that_is_no_text_breaks_its_function(grounds: Grounds) -> None:
    (grounds.folder / "bad").mkdir()
    (grounds.folder / "bad/function.toml").write_bytes(b"command = '\xff'")
    found = grounds.hosts().find("bad")
    assert found is not None
    assert "no TOML" in str(found.broken)


def test_what_does_not_change_is_read_once(grounds: Grounds) -> None:
    path = grounds.program("one")
    hosts = grounds.hosts()
    first = hosts.find("one")
    assert hosts.find("one") is first
    stat = path.stat()
    path.write_text(path.read_text().replace("200", "201"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))  # the same size, and the least later time
    changed = hosts.find("one")
    assert changed is not first
    assert changed != first
    (path.parent / "data.txt").write_text("not a part of the program")
    assert hosts.find("one") is changed
