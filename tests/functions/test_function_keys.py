"""Keys: made once for a store, kept as hashes, replaced at once, and overridden by the environment (F8)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import subprocess
import sys

import pytest
from function_stores import Place, in_memory, on_every_store

from treadle.core.errors import Conflict, InvalidArgument, StoreError, StoreUnavailable
from treadle.functions.keys import NAMES, NAMESPACE, ROLES, Keys, new_key
from treadle.functions.overrides import Overrides
from treadle.testing import FaultyStore

NONE = Overrides()
ALL = {
    "TREADLE_SERVICE_ROLE_KEY": "service-" + "s" * 30,
    "TREADLE_ANON_KEY": "anon-" + "a" * 30,
    "TREADLE_ADMIN_KEY": "admin-" + "d" * 30,
    "TREADLE_SIGNING_SECRET": "secret-" + "x" * 30,
}


@on_every_store
async def test_the_first_start_makes_the_keys_and_the_second_makes_none(here: Place) -> None:
    made = await Keys(here.store(), NONE, here.clock).make_absent()
    assert list(made) == list(ROLES)
    for role, key in made.items():
        assert re.fullmatch(rf"treadle_{role}_[A-Za-z0-9_-]{{43}}", key)
    assert len(set(made.values())) == 3
    assert await Keys(here.store(), NONE, here.clock).make_absent() == {}


@on_every_store
async def test_keys_are_stored_as_hashes_and_the_secret_in_clear(here: Place) -> None:
    store = here.store()
    keys = Keys(store, NONE, here.clock)
    made = await keys.make_absent()
    documents = {one.key: one.value for one in await store.list_documents(NAMESPACE, now=here.clock.for_store())}
    assert documents == {
        **{role: {"sha256": hashlib.sha256(key.encode()).hexdigest()} for role, key in made.items()},
        "signing": {"secret": await keys.signing_secret()},
    }


@on_every_store
async def test_of_many_that_start_at_once_exactly_one_makes_each_key(here: Place) -> None:
    starting = [Keys(here.store(), NONE, here.clock) for _ in range(6)]
    answers = await asyncio.gather(*(keys.make_absent() for keys in starting))
    made = [(role, key) for answer in answers for role, key in answer.items()]
    assert sorted(role for role, _ in made) == sorted(ROLES)
    store = here.store()
    for role, key in made:
        document = await store.get_document(NAMESPACE, role, now=here.clock.for_store())
        assert document.value == {"sha256": hashlib.sha256(key.encode()).hexdigest()}
    assert len({await keys.signing_secret() for keys in starting}) == 1


def test_of_many_processes_that_start_at_once_exactly_one_makes_each_key(tmp_path) -> None:
    program = (
        "import asyncio, json, sys\n"
        "from treadle.stores.sqlite import SQLiteStore\n"
        "from treadle.functions.keys import Keys\n"
        "from treadle.functions.overrides import Overrides\n"
        "async def main():\n"
        "    store = SQLiteStore(sys.argv[1])\n"
        "    sys.stdin.read()\n"
        "    print(json.dumps(await Keys(store, Overrides()).make_absent()))\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "tasks.db")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdin
        process.stdin.close()  # they are all ready now, or nearly so
        process.stdin = None
    made = [name for process in processes for name in json.loads(process.communicate(timeout=60)[0])]
    assert sorted(made) == sorted(ROLES)


@on_every_store
async def test_a_key_whose_storing_lost_its_answer_is_answered_by_the_repetition(here: Place) -> None:
    store = FaultyStore(here.store())
    store.fail_after("put_document", times=1)
    keys = Keys(store, NONE, here.clock)
    with pytest.raises(StoreUnavailable):
        await keys.make_absent()
    assert list(await keys.make_absent()) == list(ROLES)


@on_every_store
async def test_rotating_replaces_one_key_and_answers_it(here: Place) -> None:
    store = here.store()
    keys = Keys(store, NONE, here.clock)
    made = await keys.make_absent()
    secret = await keys.signing_secret()
    for name in NAMES:
        new = await keys.rotate(name)
        assert new.startswith(f"treadle_{name}_")
        assert new not in made.values()
    assert await keys.signing_secret() == new
    assert new != secret
    assert await Keys(here.store(), NONE, here.clock).make_absent() == {}


@on_every_store
async def test_of_two_that_rotate_at_once_both_hold_a_key_that_was_in_force(here: Place) -> None:
    await Keys(here.store(), NONE, here.clock).make_absent()
    both = [Keys(here.store(), NONE, here.clock) for _ in range(2)]
    answers = await asyncio.gather(*(keys.rotate("anon") for keys in both), return_exceptions=True)
    won = [answer for answer in answers if isinstance(answer, str)]
    assert won
    assert all(isinstance(answer, Conflict) for answer in answers if not isinstance(answer, str))
    document = await here.store().get_document(NAMESPACE, "anon", now=here.clock.for_store())
    assert document.value in [{"sha256": hashlib.sha256(key.encode()).hexdigest()} for key in won]


@in_memory
async def test_rotating_before_the_first_start_makes_the_key(here: Place) -> None:
    keys = Keys(here.store(), NONE, here.clock)
    await keys.rotate("admin")
    assert list(await keys.make_absent()) == ["service_role", "anon"]


@in_memory
async def test_rotating_refuses_unknown_names_and_overridden_keys(here: Place) -> None:
    keys = Keys(here.store(), Overrides.of(ALL), here.clock)
    with pytest.raises(InvalidArgument, match="'service-role' is no key; they are service_role, anon, admin, signing"):
        await keys.rotate("service-role")
    with pytest.raises(Conflict, match="TREADLE_ANON_KEY is set, and holds instead of the stored key"):
        await keys.rotate("anon")


@in_memory
async def test_what_the_environment_gives_is_not_made(here: Place) -> None:
    store = here.store()
    given = Overrides.of({"TREADLE_ANON_KEY": ALL["TREADLE_ANON_KEY"], "TREADLE_ADMIN_KEY": ""})
    assert list(await Keys(store, given, here.clock).make_absent()) == ["service_role", "admin"]
    assert await store.get_document(NAMESPACE, "anon", now=here.clock.for_store()) is None
    assert await Keys(store, Overrides.of(ALL), here.clock).make_absent() == {}
    assert await Keys(store, Overrides.of(ALL), here.clock).signing_secret() == ALL["TREADLE_SIGNING_SECRET"]


@in_memory
async def test_with_all_keys_given_nothing_is_stored(here: Place) -> None:
    store = here.store()
    assert await Keys(store, Overrides.of(ALL), here.clock).make_absent() == {}
    assert await store.list_documents(NAMESPACE, now=here.clock.for_store()) == []


@in_memory
async def test_a_token_can_be_made_before_the_first_start(here: Place) -> None:
    store = here.store()
    secret = await Keys(store, NONE, here.clock).signing_secret()
    assert secret.startswith("treadle_signing_")
    assert await Keys(store, NONE, here.clock).signing_secret() == secret
    assert list(await Keys(store, NONE, here.clock).make_absent()) == list(ROLES)


@in_memory
async def test_equal_keys_are_refused_at_start(here: Place) -> None:
    store = here.store()
    made = await Keys(store, NONE, here.clock).make_absent()
    for variable, key, what in (
        ("TREADLE_ANON_KEY", made["service_role"], "service_role and anon are equal"),
        ("TREADLE_SIGNING_SECRET", made["anon"], "anon and signing are equal"),
        ("TREADLE_ANON_KEY", await Keys(store, NONE, here.clock).signing_secret(), "anon and signing are equal"),
    ):
        with pytest.raises(InvalidArgument, match=what) as refused:
            await Keys(store, Overrides.of({variable: key}), here.clock).make_absent()
        assert key not in str(refused.value)
    same = {"TREADLE_SERVICE_ROLE_KEY": made["service_role"]}  # the stored one by the same name is no other
    assert await Keys(store, Overrides.of(same), here.clock).make_absent() == {}


@pytest.mark.parametrize("value", [None, "x", {}, {"sha256": "zz" * 32}, {"sha256": "ab"}, {"secret": ""}, {"sha256": 7}])
@pytest.mark.parametrize("name", NAMES)
def test_a_document_that_is_no_key_is_told_at_start(name: str, value: object) -> None:
    async def test(here: Place) -> None:
        store = here.store()
        await store.put_document(NAMESPACE, name, value, now=here.clock.for_store())
        keys = Keys(store, NONE, here.clock)
        with pytest.raises(StoreError, match=f"as the key {name} is none: run `treadle config rotate-key {name}`"):
            await keys.make_absent()
        await keys.rotate(name)
        await keys.make_absent()

    from function_stores import run

    run("memory", test)


# -- overrides


@pytest.mark.parametrize("one", ALL)
@pytest.mark.parametrize("other", ALL)
def test_two_equal_variables_are_refused(one: str, other: str) -> None:
    if one != other:
        with pytest.raises(InvalidArgument, match="are equal; each must be a secret of its own") as refused:
            Overrides.of({one: "k" * 40, other: "k" * 40})
        assert one in str(refused.value)
        assert other in str(refused.value)
        assert "kkk" not in str(refused.value)


def test_short_keys_are_warned_of_without_showing_them(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "treadle"):
        Overrides.of(ALL)
        assert not caplog.records
        Overrides.of({"TREADLE_ANON_KEY": "k" * 15, "TREADLE_ADMIN_KEY": "a" * 16, "TREADLE_SIGNING_SECRET": "s" * 31})
    assert [record.getMessage() for record in caplog.records] == [
        "TREADLE_ANON_KEY has 15 characters, which can be guessed: give it at least 16",
        "TREADLE_SIGNING_SECRET has 31 characters, which can be guessed: give it at least 32",
    ]


@pytest.mark.parametrize("key", ["with space", "line\nbreak", "clé-" + "x" * 20, "k" * 5000, "\x00" * 20])
def test_keys_that_no_header_carries_are_refused(key: str) -> None:
    with pytest.raises(InvalidArgument, match="TREADLE_ANON_KEY"):
        Overrides.of({"TREADLE_ANON_KEY": key})


PEM = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n"


@pytest.mark.parametrize("secret", [PEM, "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ", '{"kty": "oct", "k": "AAAA"}'])
def test_a_secret_that_others_may_know_is_refused(secret: str) -> None:
    with pytest.raises(InvalidArgument, match="TREADLE_SIGNING_SECRET: the signing secret cannot be used"):
        Overrides.of({"TREADLE_SIGNING_SECRET": secret})


def test_overrides_do_not_show_their_keys() -> None:
    shown = repr(Overrides.of(ALL))
    assert not any(key in shown for key in ALL.values())


def test_keys_never_repeat() -> None:
    assert len({new_key("anon") for _ in range(1000)}) == 1000


@in_memory
async def test_a_key_that_was_made_before_a_failure_can_still_be_shown(here: Place) -> None:
    store = FaultyStore(here.store())
    keys = Keys(store, NONE, here.clock)
    put, calls = store.put_document, 0

    async def first_only(*arguments: object, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise StoreUnavailable("gone")
        return await put(*arguments, **options)

    store.put_document = first_only
    with pytest.raises(StoreUnavailable):
        await keys.make_absent()
    assert list(keys.made) == ["service_role"]
    store.put_document = put
    assert set(await keys.make_absent()) == {"service_role", "anon", "admin"}
