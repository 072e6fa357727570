"""What a Redis store's URL may be, and what is said of one that cannot be meant."""

from __future__ import annotations

import pytest

from treadle.core.errors import InvalidArgument
from treadle.stores.redis import RedisStore
from treadle.stores.redis.url import address


@pytest.mark.parametrize("scheme", ["redis", "valkey", "rediss", "valkeys"])
def test_a_server(scheme: str):
    there = address(f"{scheme}://user:secret@db.example:6380/3")
    assert there.url.startswith("rediss://" if scheme.endswith("s") and scheme != "redis" else "redis://")
    assert there.shown == "db.example:6380"
    assert "secret" not in repr(there)


def test_options_of_the_store_are_not_the_drivers():
    there = address("redis://localhost?prefix=mine&cluster=true&health_check_interval=3&timeout=2.5")
    assert (there.prefix, there.cluster, there.timeout) == ("mine", True, 2.5)
    assert there.url == "redis://localhost?health_check_interval=3"


def test_a_socket():
    there = address("unix:///run/redis.sock?db=2&prefix=mine")
    assert (there.url, there.shown, there.prefix) == ("unix:///run/redis.sock?db=2", "/run/redis.sock", "mine")


def test_sentinels():
    there = address("redis+sentinel://me:pass%40word@one:26379,two/main/2")
    assert there.sentinels == (("one", 26379), ("two", 26379))
    assert there.service == "main"
    assert dict(there.extra) == {"db": 2, "username": "me", "password": "pass@word"}
    assert dict(address("valkeys+sentinel://one/main").extra)["ssl"] is True


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost",
        "redis://localhost:port",
        "redis://localhost?cluster=perhaps",
        "redis+sentinel://one:26379",
        "redis+sentinel://one:x/main",
        "redis+sentinel://one/main/x",
        "redis+sentinel:///main",
        "redis://[half",
        "redis://localhost?no_such_option=1",
        "redis://localhost?decode_responses=false",
        "redis://localhost?socket_timeout=3",
        "redis://localhost?timeout=soon",
        "redis://localhost?timeout=0",
        "redis://localhost?timeout=nan",
        "redis://localhost/jobs",
        "redis://localhost/1?cluster=true",
        "redis+sentinel://one/main?no_such_option=1",
        "redis:localhost",
    ],
)
def test_a_url_that_cannot_be_meant_is_refused(url: str):
    with pytest.raises(InvalidArgument) as refused:
        RedisStore(url)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("password", ["hidden/", "hidden#", "hidden?", "hidden%zz/", "1/hidden"])
def test_a_password_that_is_not_encoded_is_not_shown(password: str):
    with pytest.raises(InvalidArgument, match="%2F") as refused:
        RedisStore(f"redis://:{password}@localhost/0")
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("prefix", ["", "a{b", "a}b", "a\0b"])
def test_a_prefix_that_would_break_the_tag_is_refused(prefix: str):
    with pytest.raises(InvalidArgument, match="prefix"):
        RedisStore("redis://localhost", prefix=prefix)


def test_a_store_shows_where_it_is_and_no_password():
    assert repr(RedisStore("redis://:secret@localhost:1/0?prefix=p")) == "RedisStore(localhost:1, prefix='p')"
