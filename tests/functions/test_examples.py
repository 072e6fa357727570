"""The example functions, run for real: genuine job calls, forged ones, and the same job twice (F1, F4)."""

import asyncio
import hashlib
import hmac
import json
import logging
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.functions.hosting.grounds import request, until

from treadle.functions.hosting import Hosts

EXAMPLES = Path(__file__).parents[2] / "examples/functions/functions"
NAMES = ["hello-c", "hello-node", "hello-python"]
SECRETS = ["short", "s" * 64, "longer than one block of the hash, which is hashed first: " + "0123456789abcdef" * 4]
BODIES = [b"null", b'{"name":"Ada","n":[1,2.5,null]}', '"é😀"'.encode(), b"[" + b"1," * 100_000 + b"1]", b"x" * 55, b"x" * 56]


class Example:
    """One of them, in a folder of its own, with its process."""

    def __init__(self, hosts: Hosts, name: str, data: Path) -> None:
        self.hosts, self.name, self.data = hosts, name, data
        self.secret = "the secret"

    async def call(self, id: str, body: bytes, signature: str | None = None, path: str | None = None) -> tuple[int, bytes]:
        function = self.hosts.find(self.name)
        assert function is not None
        url = await self.hosts.place(self.name, self.secret, 30)
        headers = {"content-type": "application/json", "x-treadle-signature": signature or signed(self.secret, id, body)}
        return await request(url, function.method, path or f"/jobs/{id}", body, headers)

    def kept(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.data.iterdir()} if self.data.exists() else {}


def signed(secret: str, id: str, body: bytes) -> str:
    return "sha256=" + hmac.new(secret.encode(), id.encode() + b"." + body, hashlib.sha256).hexdigest()


@pytest.fixture(params=NAMES)
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Callable[[Example], Awaitable[None]]], None]:
    """Tells a story with the example, in a copy of its folder."""
    name = request.param
    needed = {"hello-node": ["node"], "hello-c": ["make", "cc"]}.get(name, [])
    for program in needed:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed, which the example {name} needs")
    folder = tmp_path / "functions"
    shutil.copytree(EXAMPLES / name, folder / name, ignore=shutil.ignore_patterns("data", "hello"))
    if name == "hello-c":
        subprocess.run(["make", "-s", "CFLAGS=-O2 -Wall -Wextra -Wpedantic -Werror -std=c11"], cwd=folder / name, check=True)

    def tell(story: Callable[[Example], Awaitable[None]]) -> None:
        async def told() -> None:
            hosts = Hosts(folder, dict, logging.getLogger("examples"))
            try:
                await story(Example(hosts, name, folder / name / "data"))
            finally:
                await hosts.stop()

        asyncio.run(told())

    return tell


def test_a_job_takes_effect_once(example: Callable[[Callable[[Example], Awaitable[None]]], None]) -> None:
    async def story(one: Example) -> None:
        id, body = str(uuid.uuid4()), b'{"name":"Ada"}'
        status, answer = await one.call(id, body)
        assert (status, json.loads(answer)) == (200, {"job": id, "first": True})
        assert one.kept() == {f"{id}.json": body}
        before = (one.data / f"{id}.json").stat()
        status, answer = await one.call(id, body)
        assert (status, json.loads(answer)) == (200, {"job": id, "first": False})
        at_once = str(uuid.uuid4())
        answers = await asyncio.gather(*(one.call(at_once, body) for _ in range(10)))
        assert sorted(json.loads(answer)["first"] for _, answer in answers) == [False] * 9 + [True]
        assert set(one.kept()) == {f"{id}.json", f"{at_once}.json"}
        after = (one.data / f"{id}.json").stat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)

    example(story)


def test_a_killed_process_repeats_no_job(example: Callable[[Callable[[Example], Awaitable[None]]], None]) -> None:
    async def story(one: Example) -> None:
        id = str(uuid.uuid4())
        assert (await one.call(id, b"1"))[0] == 200
        pid = one.hosts.states()[0].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: one.hosts.states()[0].state != "ready")
        status, answer = await one.call(id, b"1")
        assert (status, json.loads(answer)["first"]) == (200, False)

    example(story)


def test_a_forged_call_does_nothing(example: Callable[[Callable[[Example], Awaitable[None]]], None]) -> None:
    async def story(one: Example) -> None:
        id, body = str(uuid.uuid4()), b'{"name":"Mallory"}'
        right = signed(one.secret, id, body)
        wrong = [
            "sha256=" + "0" * 64,
            right[:-1],
            right + "0",
            right.upper(),
            right.removeprefix("sha256="),
            " ",
            "é",
            signed(one.secret, str(uuid.uuid4()), body),
            signed(one.secret, id, body + b" "),
            signed("guessed", id, body),
            signed("", id, body),
        ]
        for signature in wrong:
            assert (await one.call(id, body, signature))[0] == 401, signature
        for path in ("/jobs/", "/jobs/1", f"/jobs/{id}/", f"/jobs/../{id}", f"/jobs/{id.upper().replace('-', 'G')}"):
            assert (await one.call(id, body, path=path))[0] == 404, path
        assert one.kept() == {}
        assert (await one.call(id, body))[0] == 200

    example(story)


def test_every_secret_and_every_payload_is_signed_alike(
    example: Callable[[Callable[[Example], Awaitable[None]]], None],
) -> None:
    async def story(one: Example) -> None:
        for one.secret in SECRETS:
            for body in BODIES:
                id = str(uuid.uuid4())
                assert (await one.call(id, body))[0] == 200
                assert one.kept()[f"{id}.json"] == body

    example(story)


def test_other_requests_are_greeted(example: Callable[[Callable[[Example], Awaitable[None]]], None]) -> None:
    async def story(one: Example) -> None:
        status, body = await request(await one.hosts.place(one.name, one.secret, 30))
        assert status == 200
        assert body.startswith(b"Hello from ")

    example(story)
