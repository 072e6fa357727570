"""The documented calls do what they promise, made of the service itself: `treadle serve`, in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.client.calls import documented_calls
from tests.client.faces import Face

from treadle.client import verify_signature
from treadle.functions.signature import signature

START = "import sys; from treadle.cli.main import main; sys.argv[0] = 'treadle'; main()"
WAIT = 60


@dataclass(frozen=True)
class Service:
    url: str
    key: str


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that is new and empty, on a file."""
    folder: Path = tmp_path_factory.mktemp("service")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TREADLE_", "JOB_"))}
    command = [sys.executable, "-c", START, "serve", "--port", "0", "--json", "--store", f"sqlite:{folder / 'tasks.db'}"]
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, (folder / "log").read_text()
            started = json.loads(line)
            yield Service(started["url"], started["keys"]["service_role"])
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT) == 0, (folder / "log").read_text()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def test_the_documented_calls(face: Face, service: Service) -> None:
    documented_calls(face, service.url, service.key)


def test_the_signature_of_the_service_is_the_one_that_is_verified() -> None:
    signed = signature("secret", "0199c1de-0000-7000-8000-000000000001", b'{"a":1}')
    assert verify_signature("secret", "0199c1de-0000-7000-8000-000000000001", b'{"a":1}', signed)
    assert not verify_signature("secret", "0199c1de-0000-7000-8000-000000000001", b'{"a":2}', signed)
