"""The key ring: who is calling, on every store, through rotation, sessions and outages (F8)."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time

import pytest
from function_stores import Place, in_memory, on_every_store
from hypothesis import given, settings, strategies as st

from treadle.core.errors import StoreUnavailable
from treadle.engine.clock import EngineClock
from treadle.functions import key_ring as module, session_key
from treadle.functions.identity import Identity, Unauthorized
from treadle.functions.key_ring import KeyRing
from treadle.functions.keys import NAMESPACE, Keys, new_key
from treadle.functions.overrides import Overrides
from treadle.functions.tokens import user_token
from treadle.stores.memory import MemoryStore
from treadle.testing import FaultyStore

NONE = Overrides()
SERVICE, ANON, ADMIN = Identity("service_role"), Identity("anon"), Identity("admin")


async def _refused(ring: KeyRing, apikey: str | None, authorization: str | None = None) -> str:
    with pytest.raises(Unauthorized) as refused:
        await ring.identify(apikey, authorization)
    assert "\n" not in str(refused.value)
    assert refused.value.code == "unauthorized"
    return str(refused.value)


@on_every_store
async def test_keys_are_known_by_either_header(here: Place) -> None:
    keys = await Keys(here.store(), NONE, here.clock).make_absent()
    ring = KeyRing(here.store(), NONE, here.clock)
    for role, identity in (("service_role", SERVICE), ("anon", ANON), ("admin", ADMIN)):
        assert await ring.identify(keys[role], None) == identity
        assert await ring.identify(None, f"Bearer {keys[role]}") == identity
        assert await ring.identify(None, f"bearer   {keys[role]} ") == identity
        assert await ring.identify("", f"BEARER {keys[role]}") == identity


@on_every_store
async def test_of_two_headers_both_must_hold_and_the_bearer_is_the_caller(here: Place) -> None:
    maker = Keys(here.store(), NONE, here.clock)
    keys = await maker.make_absent()
    token = user_token(await maker.signing_secret(), "u1", clock=here.clock)
    ring = KeyRing(here.store(), NONE, here.clock)
    assert await ring.identify(keys["anon"], f"Bearer {token}") == Identity("user", "u1", "user")
    assert await ring.identify(None, f"Bearer {token}") == Identity("user", "u1", "user")
    assert await ring.identify(keys["service_role"], f"Bearer {keys['anon']}") == ANON
    assert "apikey" in await _refused(ring, "wrong", f"Bearer {token}")
    assert "bearer" in await _refused(ring, keys["service_role"], "Bearer wrong")
    assert "bearer" in await _refused(ring, keys["service_role"], "Bearer ")
    assert "bearer" in await _refused(ring, keys["service_role"], "Bearer")
    assert "signed" in await _refused(ring, keys["service_role"], f"Bearer {token[:-3]}AAA")
    assert "apikey" in await _refused(ring, token), "a user's token is no key"


@in_memory
async def test_other_schemes_are_left_alone_beside_a_key(here: Place) -> None:
    keys = await Keys(here.store(), NONE, here.clock).make_absent()
    ring = KeyRing(here.store(), NONE, here.clock)
    for other in ("Basic dXNlcjpwYXNz", "Digest x", "Bearerx y", "", " ", keys["anon"]):
        assert await ring.identify(keys["service_role"], other) == SERVICE
        assert "a key is wanted" in await _refused(ring, None, other)
        assert "a key is wanted" in await _refused(ring, "", other)
    assert "a key is wanted" in await _refused(ring, None, None)


@in_memory
async def test_a_user_has_the_role_of_the_token(here: Place) -> None:
    maker = Keys(here.store(), NONE, here.clock)
    await maker.make_absent()
    ring = KeyRing(here.store(), NONE, here.clock)
    token = user_token(await maker.signing_secret(), "root", "admin", clock=here.clock)
    assert await ring.identify(None, f"Bearer {token}") == Identity("user", "root", "admin")
    here.time.advance(3599)
    assert (await ring.identify(None, f"Bearer {token}")).role == "user"
    here.time.advance(1)
    assert "expired" in await _refused(ring, None, f"Bearer {token}")


@on_every_store
async def test_a_rotated_key_is_refused_after_a_second_and_the_new_one_known_at_once(here: Place) -> None:
    maker = Keys(here.store(), NONE, here.clock)
    old = (await maker.make_absent())["service_role"]
    ring = KeyRing(here.store(), NONE, here.clock)
    assert await ring.identify(old, None) == SERVICE
    new = await maker.rotate("service_role")
    assert await ring.identify(new, None) == SERVICE
    await _refused(ring, old)
    newest = await maker.rotate("service_role")
    assert await ring.identify(new, None) == SERVICE, "read less than a second ago"
    here.time.advance(1)
    await _refused(ring, new)
    assert await ring.identify(newest, None) == SERVICE


@on_every_store
async def test_a_rotated_signing_secret_ends_all_tokens(here: Place) -> None:
    maker = Keys(here.store(), NONE, here.clock)
    await maker.make_absent()
    ring = KeyRing(here.store(), NONE, here.clock)
    old = user_token(await maker.signing_secret(), "u", clock=here.clock)
    assert (await ring.identify(None, f"Bearer {old}")).role == "user"
    new = user_token(await maker.rotate("signing"), "u", clock=here.clock)
    assert (await ring.identify(None, f"Bearer {new}")).role == "user", "the secret is looked up again at once"
    await _refused(ring, None, f"Bearer {old}")


@in_memory
async def test_overrides_hold_instead_of_the_stored_keys(here: Place) -> None:
    maker = Keys(here.store(), NONE, here.clock)
    stored = await maker.make_absent()
    secret = await maker.signing_secret()
    mine = Overrides.of({"TREADLE_ANON_KEY": "a.b.c-" + "a" * 20, "TREADLE_SIGNING_SECRET": "short"})
    ring = KeyRing(here.store(), mine, here.clock)
    assert await ring.identify("a.b.c-" + "a" * 20, None) == ANON
    assert await ring.identify(None, "Bearer a.b.c-" + "a" * 20) == ANON
    await _refused(ring, stored["anon"])
    assert await ring.identify(stored["admin"], None) == ADMIN
    token = user_token("short", "u", clock=here.clock)
    assert (await ring.identify(None, f"Bearer {token}")).user_id == "u"
    await _refused(ring, None, f"Bearer {user_token(secret, 'u', clock=here.clock)}")
    await _refused(KeyRing(here.store(), NONE, here.clock), "a.b.c-" + "a" * 20)


@on_every_store
async def test_a_sessions_key_is_the_service_role_everywhere_until_the_stop(here: Place) -> None:
    await Keys(here.store(), NONE, here.clock).make_absent()
    ring, other = KeyRing(here.store(), NONE, here.clock), KeyRing(here.store(), NONE, here.clock)
    await _refused(other, "treadle_session_unknown")
    key = await ring.open_session()
    assert key.startswith("treadle_session_")
    assert await ring.open_session() == key
    assert await ring.identify(key, None) == SERVICE
    assert await other.identify(key, None) == SERVICE
    await ring.close()
    await ring.close()
    here.time.advance(1)
    await _refused(ring, key)
    await _refused(other, key)
    assert await ring.open_session() != key
    await ring.close()


@on_every_store
async def test_a_sessions_key_expires_where_its_service_was_killed(here: Place) -> None:
    ring = KeyRing(here.store(), NONE, here.clock)
    key = await ring.open_session()
    assert ring._session
    await _rounds_over(ring)
    here.time.advance(299)
    other = KeyRing(here.store(), NONE, here.clock)
    assert await other.identify(key, None) == SERVICE
    here.time.advance(1)
    await _refused(other, key)
    assert await ring.identify(key, None) == SERVICE, "its own service knows it while it runs"
    await ring._session.run_once()
    assert await other.identify(key, None) == SERVICE, "a service that was frozen is renewed"
    await ring.close()


async def _rounds_over(ring: KeyRing) -> None:
    """End the renewals, as a kill does, without taking the key back."""
    assert ring._session
    task, ring._session._task = ring._session._task, None
    assert task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@in_memory
async def test_a_session_is_renewed(here: Place) -> None:
    store = FaultyStore(here.store())
    ring = KeyRing(store, NONE, here.clock)
    await ring.open_session()
    for _ in range(5):
        before = store.calls["put_document"]
        here.time.advance(299)  # the moving of the clock begins a round
        async with asyncio.timeout(10):
            while store.calls["put_document"] == before:
                await asyncio.sleep(0)
    [document] = await here.store().list_documents(NAMESPACE, now=here.clock.for_store())
    assert document.revision > 1
    await ring.close()
    assert await here.store().list_documents(NAMESPACE, now=here.clock.for_store()) == []


def test_a_session_outlives_some_renewals_that_fail() -> None:
    assert session_key.RENEWED_EVERY * 3 <= session_key.LIFE <= 600


@in_memory
async def test_a_stop_does_not_hang_on_a_store_that_is_away(here: Place) -> None:
    store = FaultyStore(here.store())
    ring = KeyRing(store, NONE, here.clock)
    await ring.open_session()
    store.fail_before("delete_document")
    await ring.close()


# -- how often the store is read


@in_memory
async def test_the_store_is_read_once_a_second_however_many_ask(here: Place) -> None:
    keys = await Keys(here.store(), NONE, here.clock).make_absent()
    store = FaultyStore(here.store())
    ring = KeyRing(store, NONE, here.clock)
    for second in range(1, 4):
        for _ in range(5):
            answers = await asyncio.gather(*(ring.identify(keys["anon"], None) for _ in range(50)))
            assert set(answers) == {ANON}
        assert store.calls["list_documents"] == second
        here.time.advance(1)


@in_memory
async def test_unknown_keys_do_not_make_the_ring_read_without_end(here: Place) -> None:
    keys = await Keys(here.store(), NONE, here.clock).make_absent()
    store = FaultyStore(here.store())
    ring = KeyRing(store, NONE, EngineClock())
    begun = time.monotonic()
    for size in (1, 200, 1, 1, 200):
        wrong = [new_key("service_role") for _ in range(size)]
        answers = await asyncio.gather(*(ring.identify(key, None) for key in wrong), return_exceptions=True)
        assert all(isinstance(answer, Unauthorized) for answer in answers)
        assert await ring.identify(keys["anon"], None) == ANON
    reads, seconds = store.calls["list_documents"], time.monotonic() - begun
    assert 6 <= reads <= 1 + seconds / 0.25


@in_memory
async def test_what_can_be_no_stored_key_costs_no_read(here: Place) -> None:
    await Keys(here.store(), NONE, here.clock).make_absent()
    store = FaultyStore(here.store())
    ring = KeyRing(store, NONE, here.clock)
    for _ in range(3):
        for junk in ("x", "treadle_anon_short", "x" * 100_000, "é" * 60, "treadle_anon_" + "é" * 43, "a.b.c", "\ud800", "\x00"):
            await _refused(ring, junk)
            await _refused(ring, None, f"Bearer {junk}")
    assert store.calls["list_documents"] == 1


@in_memory
async def test_a_token_of_another_secret_is_looked_up_again_unless_the_secret_is_given(here: Place) -> None:
    await Keys(here.store(), NONE, here.clock).make_absent()
    token = user_token("x" * 40, "u", clock=here.clock)
    for overrides, reads in ((NONE, 4), (Overrides(signing="s" * 40), 1)):
        store = FaultyStore(here.store())
        ring = KeyRing(store, overrides, here.clock)
        for _ in range(3):
            await _refused(ring, None, f"Bearer {token}")
        assert store.calls["list_documents"] == reads


@in_memory
async def test_a_new_key_is_known_at_its_first_use_although_others_ask_with_wrong_ones(here: Place) -> None:
    maker = Keys(here.store(), NONE)
    await maker.make_absent()
    ring = KeyRing(here.store(), NONE, EngineClock())
    for _ in range(3):
        wrong = asyncio.gather(*(ring.identify(new_key("anon"), None) for _ in range(20)), return_exceptions=True)
        await asyncio.sleep(0)
        key = await maker.rotate("service_role")
        assert await ring.identify(key, None) == SERVICE
        await wrong


# -- outages


@in_memory
async def test_known_keys_are_accepted_for_a_minute_without_the_store(here: Place) -> None:
    keys = await Keys(here.store(), NONE, here.clock).make_absent()
    store = FaultyStore(here.store())
    logger = logging.getLogger("treadle.test_key_ring")
    records: list[str] = []
    logger.addFilter(lambda record: records.append(record.getMessage()) or False)
    ring = KeyRing(store, NONE, here.clock, logger)
    assert await ring.identify(keys["anon"], None) == ANON
    store.fail_before("list_documents")
    for _ in range(59):
        here.time.advance(1)
        assert await ring.identify(keys["anon"], None) == ANON
    assert len([text for text in records if text.startswith("the keys: the store failed")]) == 1
    with pytest.raises(StoreUnavailable):
        await ring.identify(new_key("anon"), None)  # it may be a good one
    here.time.advance(1)
    with pytest.raises(StoreUnavailable):
        await ring.identify(keys["anon"], None)
    store.heal()
    assert await ring.identify(keys["anon"], None) == ANON
    assert records[-1].startswith("the keys: the store is back")


@in_memory
async def test_without_the_store_and_without_known_keys_the_outage_goes_up(here: Place) -> None:
    keys = await Keys(here.store(), NONE, here.clock).make_absent()
    store = FaultyStore(here.store())
    store.fail_before("list_documents")
    ring = KeyRing(store, NONE, here.clock)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await ring.identify(keys["anon"], None)
    store.heal()
    assert await ring.identify(keys["anon"], None) == ANON


@in_memory
async def test_keys_that_the_environment_gives_need_no_store(here: Place) -> None:
    store = FaultyStore(here.store())
    store.fail_before("list_documents")
    own = {"TREADLE_SERVICE_ROLE_KEY": "a.key.of-my-own-that-is-long-enough"}
    ring = KeyRing(store, Overrides.of(own), here.clock)
    for headers in ((own["TREADLE_SERVICE_ROLE_KEY"], None), (None, f"Bearer {own['TREADLE_SERVICE_ROLE_KEY']}")):
        assert await ring.identify(*headers) == SERVICE
    with pytest.raises(StoreUnavailable):
        await ring.identify("another", None)


@in_memory
async def test_a_silent_store_holds_callers_up_for_two_seconds_once(here: Place) -> None:
    keys = await Keys(here.store(), NONE, here.clock).make_absent()
    store = FaultyStore(here.store())
    ring = KeyRing(store, NONE, here.clock, logging.getLogger("treadle.silent"))
    assert await ring.identify(keys["anon"], None) == ANON
    here.time.advance(1)
    release = store.hold("list_documents")
    begun = time.monotonic()
    assert await ring.identify(keys["anon"], None) == ANON
    assert 1.5 < time.monotonic() - begun < 10
    begun = time.monotonic()
    for _ in range(20):
        assert await ring.identify(keys["anon"], None) == ANON
    assert time.monotonic() - begun < 1
    release.set()
    here.time.advance(59)
    assert await ring.identify(keys["anon"], None) == ANON


@in_memory
async def test_a_caller_that_goes_away_does_not_take_the_read_with_it(here: Place) -> None:
    keys = await Keys(here.store(), NONE, here.clock).make_absent()
    ring = KeyRing(here.store(), NONE, here.clock)
    first = asyncio.ensure_future(ring.identify(keys["anon"], None))
    second = asyncio.ensure_future(ring.identify(keys["admin"], None))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == ADMIN


# -- garbage, time


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.none(), st.text(), st.text().map("Bearer {}".format)), st.one_of(st.none(), st.text()))
def test_garbage_is_refused(authorization: str | None, apikey: str | None) -> None:
    async def test() -> None:
        await _refused(_RING, apikey, authorization)

    asyncio.run(test())


_RING = KeyRing(MemoryStore(), Overrides(anon="k" * 30))


def test_every_key_is_compared_and_none_by_equality(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def counted(presented: bytes, kept: bytes) -> bool:
        compared.append(kept)
        return hmac.compare_digest(presented, kept)

    async def test() -> None:
        store = MemoryStore()
        keys = await Keys(store, NONE).make_absent()
        ring = KeyRing(store, NONE)
        await ring.open_session()
        monkeypatch.setattr(module, "compare_digest", counted)
        for key in (*keys.values(), "x" * 30):
            compared.clear()
            try:
                await ring.identify(key, None)
            except Unauthorized:
                pass
            assert len(compared) == 5, "the session's own twice"
        await ring.close()

    asyncio.run(test())


def test_a_known_key_is_identified_in_microseconds() -> None:
    async def test() -> float:
        store = MemoryStore()
        keys = await Keys(store, NONE).make_absent()
        ring = KeyRing(store, NONE)
        await ring.open_session()
        best = 1.0
        for _ in range(20):
            begun = time.perf_counter()
            for _ in range(200):
                await ring.identify(keys["service_role"], None)
            best = min(best, (time.perf_counter() - begun) / 200)
        await ring.close()
        return best

    best = asyncio.run(test())
    print(f"{best * 1e6:.1f} us")
    assert best < 40e-6
