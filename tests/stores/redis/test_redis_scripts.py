"""The Lua scripts as text: each says what it takes and answers, and what it repeats of core is core's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.servers.valkey import ValkeyServer

import treadle.stores.redis.script as loader
from treadle.core.policies.limits import owned_by_a_face
from treadle.stores.redis.script import names, script

FOLDER = Path(loader.__file__).with_name("scripts")


@pytest.mark.parametrize("name", names())
def test_a_script_opens_with_what_it_takes_and_answers(name: str):
    header = "".join(re.match(r"(?:--.*\n)+", (FOLDER / f"{name}.lua").read_text())[0].replace("\n-- ", " "))
    for word in ("Keys:", "Arguments:", "Result:"):
        assert word in header, f"{name}.lua does not say its {word}"


@pytest.mark.parametrize("name", names())
def test_a_script_is_whole(name: str, server: ValkeyServer):
    source = script(name).source
    assert "--@" not in source
    assert not re.search(r"\$[A-Z_]+", source)
    assert server.client.script_load(source) == script(name).digest


@pytest.mark.parametrize("name", names())
def test_no_script_touches_a_key_without_the_tag(name: str):
    for command, key in re.findall(r"redis\.p?call\('(\w+)',? ?([^,)]*)", script(name).source):
        assert command == "TIME" or key.startswith("K ..") or re.fullmatch(r"[\w.]+|documents_of\(.*|ids_of\(.*", key), (
            command,
            key,
        )


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.lua")), ids=lambda path: path.stem)
def test_no_script_uses_what_older_servers_lack_or_json_would_bend(path: Path):
    text = path.read_text()
    assert len(text.splitlines()) <= 200
    for word in ("cjson.", "LMPOP", "ZMPOP", "redis.setresp", "server.call", "#!lua"):
        assert word not in text, f"{path.name} uses {word}"


@pytest.mark.parametrize(
    "queue", ["default", "functions", "functions2", "plugin:x", "plugin:", "plugin", "a:plugin:b", "", "pluginx:"]
)
def test_lua_knows_the_queues_of_faces_as_core_does(server: ValkeyServer, queue: str, tmp_path: Path):
    include = loader._composed(FOLDER / "include" / "face.lua", set())
    for constant, value in loader._OF_CORE.items():
        include = include.replace(f"${constant}", value)
    asked = f"{include}\nreturn owned_by_a_face(ARGV[1]) and 1 or 0"
    assert server.client.eval(asked, 1, "{x}", queue) == int(owned_by_a_face(queue))
