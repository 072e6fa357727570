"""The settings of the service: their checks, their sources, and how a running service follows them (F6, F7)."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from typing import Any

import pytest
from function_stores import Place, in_memory, on_every_store

from treadle.core.errors import InvalidArgument, StoreUnavailable
from treadle.core.policies.retry import Fixed
from treadle.functions.profile import FUNCTIONS
from treadle.functions.settings import SETTINGS, ServiceSettings, profile
from treadle.functions.settings_watch import SettingsWatch
from treadle.functions.stored_settings import KEY, NAMESPACE, Settings, SettingValue
from treadle.testing import FaultyStore

LEASE, TIMEOUT = "JOB_LEASE_SECS", "JOB_TIMEOUT_SECS"


def test_the_defaults_are_those_of_the_rule_and_of_the_profile() -> None:
    assert {name: setting.default for name, setting in SETTINGS.items()} == {
        "JOB_RETRY_DELAY_SECS": 5,
        "JOB_MAX_RETRIES": 3,
        "JOB_LEASE_SECS": 450,
        "JOB_TIMEOUT_SECS": 400,
        "JOB_RETENTION_DAYS": 14,
        "METRICS": "open",
        "MAX_PAYLOAD_BYTES": 1_048_576,
    }
    assert profile(ServiceSettings()) == FUNCTIONS


def test_every_field_is_a_setting_with_the_same_default() -> None:
    fields = {field.name: field.default for field in dataclasses.fields(ServiceSettings)}
    assert fields == {setting.field: setting.default for setting in SETTINGS.values()}


def test_the_profile_follows_the_settings() -> None:
    made = profile(ServiceSettings(retry_delay=0.5, max_attempts=7, lease=90, timeout=60, retention_days=0.5))
    assert (made.retry, made.max_attempts, made.lease, made.timeout, made.max_run) == (Fixed(0.5), 7, 90, 60, 90)
    assert (made.retention.done, made.retention.dead, made.retention.keyed) == (43_200, None, 43_200)
    assert (made.name, made.renews) == (FUNCTIONS.name, False)


GOOD = [
    ("JOB_RETRY_DELAY_SECS", "0", 0),
    ("JOB_RETRY_DELAY_SECS", "0.25", 0.25),
    ("JOB_RETRY_DELAY_SECS", "2592000", 2_592_000),
    ("JOB_RETRY_DELAY_SECS", 5.0, 5),
    ("JOB_MAX_RETRIES", "1", 1),
    ("JOB_MAX_RETRIES", " 100 ", 100),
    ("JOB_MAX_RETRIES", 3.0, 3),
    (LEASE, "450.5", 450.5),
    (TIMEOUT, "0.001", 0.001),
    ("JOB_RETENTION_DAYS", "0.5", 0.5),
    ("JOB_RETENTION_DAYS", "007", 7),
    ("METRICS", "keyed", "keyed"),
    ("MAX_PAYLOAD_BYTES", "1", 1),
    ("MAX_PAYLOAD_BYTES", "1073741824", 1_073_741_824),
]
BAD = [
    *[
        (name, value)
        for name in SETTINGS
        for value in ("", "x", "-1", "1e1", "1_0", "٣", "nan", "inf", "0x1", "1,5", "1 0", "+1")
    ],
    *[(name, value) for name in SETTINGS for value in (None, True, [], {}, float("nan"), float("inf"), -1, 10**400)],
    ("JOB_RETRY_DELAY_SECS", "2592001"),
    ("JOB_MAX_RETRIES", "0"),
    ("JOB_MAX_RETRIES", "101"),
    ("JOB_MAX_RETRIES", "1.5"),
    (LEASE, "0"),
    (TIMEOUT, "0.0"),
    (TIMEOUT, "1" * 400),
    ("JOB_RETENTION_DAYS", "0"),
    ("JOB_RETENTION_DAYS", "36501"),
    ("METRICS", "Open"),
    ("METRICS", "openkeyed"),
    ("MAX_PAYLOAD_BYTES", "0"),
    ("MAX_PAYLOAD_BYTES", "1073741825"),
]


@pytest.mark.parametrize(("name", "value", "stored"), GOOD)
def test_good_values_are_normalised(name: str, value: Any, stored: object) -> None:
    checked = SETTINGS[name].checked(value)
    assert checked == stored
    assert type(checked) is type(stored)


@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_values_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"^{name} must be ") as refused:
        SETTINGS[name].checked(value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 250


def test_a_value_out_of_place_is_refused_in_the_settings_too() -> None:
    for wrong in ({"max_attempts": 0}, {"metrics": "shut"}, {"lease": -1}, {"retention_days": 0}):
        with pytest.raises(InvalidArgument):
            ServiceSettings(**wrong)


@pytest.mark.parametrize(("timeout", "lease"), [(450, 450), (451, 450), (400, 0.5), (2_592_000, 450.5)])
def test_a_timeout_that_is_not_less_than_the_lease_is_refused(timeout: float, lease: float) -> None:
    with pytest.raises(InvalidArgument) as refused:
        ServiceSettings(timeout=timeout, lease=lease)
    assert f"JOB_TIMEOUT_SECS={timeout} must be less than JOB_LEASE_SECS={lease}" in str(refused.value)
    assert "\n" not in str(refused.value)


# -- sources


@on_every_store
async def test_the_environment_goes_over_the_stored_over_the_default(here: Place) -> None:
    store = here.store()
    await Settings(store, {}, here.clock).set("JOB_MAX_RETRIES", "5")
    await Settings(store, {}, here.clock).set("JOB_RETRY_DELAY_SECS", "1.5")
    mine = Settings(here.store(), {"JOB_MAX_RETRIES": "7", "METRICS": "", "OTHER": "x"}, here.clock)
    assert await mine.read() == ServiceSettings(max_attempts=7, retry_delay=1.5)
    assert await Settings(here.store(), {}, here.clock).read() == ServiceSettings(max_attempts=5, retry_delay=1.5)
    values = {one.name: one for one in await mine.all()}
    assert list(values) == list(SETTINGS)
    assert values["JOB_MAX_RETRIES"] == SettingValue("JOB_MAX_RETRIES", 7, "environment")
    assert values["JOB_RETRY_DELAY_SECS"] == SettingValue("JOB_RETRY_DELAY_SECS", 1.5, "stored")
    assert values["METRICS"] == await mine.get("METRICS") == SettingValue("METRICS", "open", "default")


@in_memory
async def test_a_name_with_the_prefix_goes_first(here: Place) -> None:
    mine = Settings(here.store(), {"METRICS": "/usr/bin/metrics", "TREADLE_METRICS": "keyed"}, here.clock)
    assert (await mine.read()).metrics == "keyed"


@on_every_store
async def test_setting_and_unsetting(here: Place) -> None:
    one, other = Settings(here.store(), {}, here.clock), Settings(here.store(), {}, here.clock)
    assert await one.set("METRICS", "keyed") == SettingValue("METRICS", "keyed", "stored")
    assert await one.set("JOB_MAX_RETRIES", "9") == SettingValue("JOB_MAX_RETRIES", 9, "stored")
    assert await other.stored() == {"METRICS": "keyed", "JOB_MAX_RETRIES": 9}
    assert await other.unset("METRICS") == SettingValue("METRICS", "open", "default")
    assert await other.unset("METRICS") == SettingValue("METRICS", "open", "default")
    assert await one.stored() == {"JOB_MAX_RETRIES": 9}


@in_memory
async def test_setting_answers_what_holds_here(here: Place) -> None:
    mine = Settings(here.store(), {"METRICS": "open"}, here.clock)
    assert await mine.set("METRICS", "keyed") == SettingValue("METRICS", "open", "environment")
    assert await mine.stored() == {"METRICS": "keyed"}


@in_memory
async def test_unknown_names_and_bad_values_store_nothing(here: Place) -> None:
    mine = Settings(here.store(), {}, here.clock)
    for name in ("", "metrics", "JOB_LEASE", "x" * 1000):
        for refused in (mine.get(name), mine.set(name, "1"), mine.unset(name)):
            with pytest.raises(InvalidArgument, match="is no setting; they are JOB_RETRY_DELAY_SECS, "):
                await refused
    with pytest.raises(InvalidArgument):
        await mine.set("METRICS", "ajar")
    assert await here.store().get_document(NAMESPACE, KEY, now=here.clock.for_store()) is None


@on_every_store
async def test_lease_and_timeout_are_changed_one_after_the_other_only_as_they_fit(here: Place) -> None:
    mine = Settings(here.store(), {}, here.clock)
    with pytest.raises(InvalidArgument) as refused:
        await mine.set(TIMEOUT, "450")
    assert "JOB_TIMEOUT_SECS=450 must be less than JOB_LEASE_SECS=450" in str(refused.value)
    assert "JOB_LEASE_SECS is the default" in str(refused.value)
    await mine.set(LEASE, "900")
    await mine.set(TIMEOUT, "800")
    for change in (mine.set(LEASE, "800"), mine.unset(LEASE)):
        with pytest.raises(InvalidArgument, match="JOB_TIMEOUT_SECS=800 must be less than JOB_LEASE_SECS="):
            await change
    assert await mine.stored() == {LEASE: 900, TIMEOUT: 800}
    await mine.unset(TIMEOUT)
    await mine.unset(LEASE)


@on_every_store
async def test_two_commands_at_once_never_store_what_does_not_fit(here: Place) -> None:
    both = [Settings(here.store(), {}, here.clock) for _ in range(2)]
    for _ in range(5):
        await both[0].set(TIMEOUT, "100")
        await both[0].set(LEASE, "900")
        answers = await asyncio.gather(both[0].set(TIMEOUT, "700"), both[1].set(LEASE, "300"), return_exceptions=True)
        assert [type(one) for one in answers].count(InvalidArgument) == 1
        await both[1].read()


@on_every_store
async def test_settings_of_others_are_not_lost_at_the_same_time(here: Place) -> None:
    changes = [("METRICS", "keyed"), ("JOB_MAX_RETRIES", "4"), ("JOB_RETENTION_DAYS", "2"), ("MAX_PAYLOAD_BYTES", "99")]
    await asyncio.gather(*(Settings(here.store(), {}, here.clock).set(name, value) for name, value in changes))
    stored = await Settings(here.store(), {}, here.clock).stored()
    assert stored == {"METRICS": "keyed", "JOB_MAX_RETRIES": 4, "JOB_RETENTION_DAYS": 2, "MAX_PAYLOAD_BYTES": 99}


@pytest.mark.parametrize(
    ("environment", "stored", "names"),
    [
        ({"JOB_MAX_RETRIES": "many"}, {}, ["JOB_MAX_RETRIES must be", "'many'", "from the environment"]),
        ({}, {"METRICS": 7}, ["METRICS must be open or keyed, not '7' (stored)"]),
        ({TIMEOUT: "500"}, {}, ["JOB_TIMEOUT_SECS=500", "JOB_LEASE_SECS=450", f"{TIMEOUT} is from the environment"]),
        ({LEASE: "60"}, {TIMEOUT: 100}, ["JOB_TIMEOUT_SECS=100", f"{LEASE} is from the environment", f"{TIMEOUT} is stored"]),
    ],
)
def test_bad_settings_are_told_at_start_with_their_source(environment: Any, stored: Any, names: list[str]) -> None:
    @in_memory
    async def test(here: Place) -> None:
        store = here.store()
        await store.put_document(NAMESPACE, KEY, stored, now=here.clock.for_store())
        with pytest.raises(InvalidArgument) as refused:
            await Settings(store, environment, here.clock).read()
        assert all(name in str(refused.value) for name in names), str(refused.value)
        assert "\n" not in str(refused.value)

    test()


@in_memory
async def test_a_bad_stored_value_is_shown_and_can_be_mended(here: Place) -> None:
    store = here.store()
    await store.put_document(NAMESPACE, KEY, {LEASE: "soon", "NEWER": 1}, now=here.clock.for_store())
    mine = Settings(store, {}, here.clock)
    shown = await mine.get(LEASE)
    assert (shown.value, shown.source) == ("soon", "stored")
    assert shown.problem
    await mine.set("METRICS", "keyed")
    await mine.set(TIMEOUT, "100")
    await mine.set(LEASE, "200")
    assert await mine.stored() == {LEASE: 200, "NEWER": 1, "METRICS": "keyed", TIMEOUT: 100}
    assert await mine.read() == ServiceSettings(lease=200, timeout=100, metrics="keyed")
    await store.put_document(NAMESPACE, KEY, [1], now=here.clock.for_store())
    assert await mine.read() == ServiceSettings()


# -- following


@on_every_store
async def test_a_running_service_sees_a_change_within_a_second_and_reads_no_more_often(here: Place) -> None:
    store = FaultyStore(here.store())
    watch = SettingsWatch(Settings(store, {"METRICS": "keyed"}, here.clock), here.clock)
    assert await watch.read() == ServiceSettings(metrics="keyed")
    await Settings(here.store(), {}, here.clock).set("JOB_MAX_RETRIES", "8")
    for _ in range(20):
        assert (await watch.read()).max_attempts == 3
    here.time.advance(1)
    both = await asyncio.gather(watch.read(), watch.read())
    assert both == [ServiceSettings(metrics="keyed", max_attempts=8)] * 2
    assert watch.latest == both[0]
    assert store.calls["get_document"] == 2


def _heard(name: str) -> tuple[logging.Logger, list[str]]:
    logger, heard = logging.getLogger(name), []
    logger.filters.clear()
    logger.addFilter(lambda record: bool(heard.append(record.getMessage())))
    return logger, heard


@in_memory
async def test_settings_that_go_bad_are_told_once_and_the_last_good_ones_stay(here: Place) -> None:
    logger, heard = _heard("treadle.watch")
    store = here.store()
    watch = SettingsWatch(Settings(store, {LEASE: "60", TIMEOUT: "50"}, here.clock), here.clock, logger)
    good = await watch.read()
    for value in ("many", "many", 5, "many", "lots"):
        await store.put_document(NAMESPACE, KEY, {"JOB_MAX_RETRIES": value}, now=here.clock.for_store())
        for _ in range(3):
            here.time.advance(1)
            assert (await watch.read()).lease == good.lease
    assert [text.split("'")[1] for text in heard] == ["many", "many", "lots"]
    assert (await watch.read()).max_attempts == 5
    await store.delete_document(NAMESPACE, KEY, now=here.clock.for_store())
    here.time.advance(1)
    assert await watch.read() == good


@in_memory
async def test_bad_settings_at_start_go_up(here: Place) -> None:
    watch = SettingsWatch(Settings(here.store(), {TIMEOUT: "450"}, here.clock), here.clock)
    with pytest.raises(InvalidArgument):
        await watch.read()


@in_memory
async def test_the_last_settings_stay_as_long_as_the_store_is_away(here: Place) -> None:
    logger, heard = _heard("treadle.watch.outage")
    store = FaultyStore(here.store())
    watch = SettingsWatch(Settings(store, {}, here.clock), here.clock, logger)
    store.fail_before("get_document")
    with pytest.raises(StoreUnavailable):
        await watch.read()
    store.heal()
    good = await watch.read()
    store.fail_before("get_document")
    for _ in range(10):
        here.time.advance(3600)
        assert await watch.read() == good
    assert heard[-1].startswith("the settings: the store failed")
