"""The values of the functions service: names, URLs, methods, `fail_on`, and the signature of a call (F1, F4, F5)."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from treadle.core.errors import InvalidArgument
from treadle.functions.fail_on import MOST, FailOn
from treadle.functions.function import (
    Function,
    checked_concurrency,
    checked_function_name,
    checked_method,
    checked_url,
)
from treadle.functions.signature import signature

# -- names


@pytest.mark.parametrize("name", ["a", "0", "send-report", "a-b-c", "a" * 64, "job", "crons", "dlq", "1-2"])
def test_names_that_fit(name: str) -> None:
    assert checked_function_name(name) == name


BAD_NAMES = [
    *(
        "",
        "-",
        "a-",
        "-a",
        "a--b",
        "A",
        "a_b",
        "a b",
        "a.b",
        "a/b",
        "é",
        "a\n",
        "\na",
        "a" * 65,
        "jobs",
        "cron",
        "a\0",
        "٣",
        "ａ",
    ),
    *(None, 7, b"a", ["a"], True, "../x", "%61"),
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_do_not(name: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        checked_function_name(name)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_long_name_is_refused_at_once() -> None:
    with pytest.raises(InvalidArgument):
        checked_function_name("a-" * 500_000)


# -- URLs


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
        ("http://127.0.0.1:9000/", "http://127.0.0.1:9000"),
        ("https://example.com/functions/send//", "https://example.com/functions/send"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ("http://[fe80::1%25eth0]/x", "http://[fe80::1%25eth0]/x"),
        ("http://my_service-1:80/a%20b/~x/c;d=1/e,f/(g)/*", "http://my_service-1:80/a%20b/~x/c;d=1/e,f/(g)/*"),
        ("HTTPS://Example.com.", "HTTPS://Example.com."),
        ("http://h/" + "x" * 1991, "http://h/" + "x" * 1991),
    ],
)
def test_urls_that_fit(url: str, kept: str) -> None:
    assert checked_url(url) == kept


BAD_URLS = [
    *(
        "",
        "x",
        "example.com",
        "//example.com",
        "/path",
        "http:",
        "http://",
        "http:///x",
        "http://:80",
        "ftp://x",
        "file:///etc",
    ),
    *(
        "http://x:0",
        "http://x:65536",
        "http://x:y",
        "http://x:-1",
        "http://x:80:90",
        "http://[::1",
        "http://::1/",
        "http://[x]/",
    ),
    *(
        "http://x?",
        "http://x?a=b",
        "http://x#",
        "http://x#f",
        "http://u@x",
        "http://u:p@x",
        "http://@x",
        "http://a b",
        "http://a\tb",
    ),
    *("http://a\nb", "http://x\r\nHost: y", " http://x", "http://x ", "http://é", "http://x/é", "http://x\\y", "http://x/\\y"),
    *(
        'http://x/"',
        "http://x/<y>",
        "http://x/{y}",
        "http://x/|",
        "http://x/^",
        "http://x/`",
        "http://x;y/",
        "http://x,y",
        "http://*",
    ),
    *("http://x%00y", "http://x/\0", "http://h/" + "x" * 1992, "javascript:alert(1)", "unix:/run/x", "http+unix://x"),
    *(None, 7, b"http://x", ["http://x"]),
]


@pytest.mark.parametrize("url", BAD_URLS)
def test_urls_that_do_not(url: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        checked_url(url)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("rest", ["", "/x", "/x?y", ":x/", ":99999", "/ ", "/é", "/\\", "]"])
def test_a_password_in_a_url_is_not_repeated(rest: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        checked_url(f"http://me:hunter2@example.com{rest}")
    assert "hunter2" not in str(refused.value)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.text("http:/[]@?#%.-0a\\ ").map("http://{}".format)))
def test_any_url_is_kept_or_refused_and_what_is_kept_is_stable(url: str) -> None:
    try:
        kept = checked_url(url)
    except InvalidArgument:
        return
    assert checked_url(kept) == kept
    assert kept.isascii()


# -- methods, concurrency, functions


def test_methods() -> None:
    assert [checked_method("JOB"), checked_method("POST")] == ["JOB", "POST"]
    for wrong in ("", "job", "GET", "POST ", None, 7, ["JOB"]):
        with pytest.raises(InvalidArgument, match="the method must be JOB, or POST"):
            checked_method(wrong)


def test_concurrency() -> None:
    assert [checked_concurrency(1), checked_concurrency(10_000)] == [1, 10_000]
    for wrong in (0, -1, 10_001, 1.0, "1", None, True):
        with pytest.raises(InvalidArgument, match="the function's concurrency must be"):
            checked_concurrency(wrong)


def test_a_function_does_not_show_its_secret() -> None:
    function = Function("x", "the-secret")
    assert "the-secret" not in repr(function)
    assert function.job_name == "function:x"
    assert function.active


# -- fail_on


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        (">=500", lambda status: status >= 500),
        ("> 499", lambda status: status > 499),
        ("<200", lambda status: status < 200),
        ("<=199", lambda status: status <= 199),
        ("!=200", lambda status: status != 200),
        ("==404", lambda status: status == 404),
        ("=404", lambda status: status == 404),
        ("404", lambda status: status == 404),
        ("429, >=500", lambda status: status == 429 or status >= 500),
        ("400-499", lambda status: 400 <= status <= 499),
        (" 400 - 403 ,  429 ", lambda status: 400 <= status <= 403 or status == 429),
        ("404-404", lambda status: status == 404),
        ("408,429,500-599", lambda status: status in (408, 429) or 500 <= status <= 599),
    ],
)
def test_what_fails(text: str, fails: Any) -> None:
    fail_on = FailOn(text)
    assert [status for status in range(100, 1000) if fail_on(status)] == [s for s in range(100, 1000) if fails(s)]
    assert fail_on.text == text


BAD_TERMS = [
    *(
        "",
        " ",
        ",",
        "500,",
        ",500",
        "500,,501",
        "5xx",
        "50",
        "5000",
        "600",
        "099",
        ">=",
        ">= =500",
        "=>500",
        "<>500",
        ">500-510",
    ),
    *(
        "500-400",
        "400--499",
        "400-",
        "-499",
        "500 501",
        "500;501",
        ">=５００",
        "500\n\n501",
        "500 or 501",
        "not 200",
        "*",
        "x" * 300,
    ),
    *(None, 500, 500.0, True, ["500"], b"500", {"500": 1}),
]


@pytest.mark.parametrize("text", BAD_TERMS)
def test_what_cannot_be_read(text: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^fail_on ") as refused:
        FailOn(text)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_the_longest_fail_on() -> None:
    longest = ",".join(["500"] * (MOST // 4)) + " "
    assert len(longest) == MOST
    assert FailOn(longest)(500)
    with pytest.raises(InvalidArgument):
        FailOn(longest + " ")


@settings(max_examples=300, deadline=None)
@given(st.text("0123456789<>=!-, ", max_size=30))
def test_any_fail_on_is_read_or_refused(text: str) -> None:
    try:
        fail_on = FailOn(text)
    except InvalidArgument:
        return
    assert isinstance(fail_on(500), bool)


# -- the signature


def test_the_signature_is_over_the_id_and_the_body() -> None:
    body = b'{"order":42}'
    expected = hmac.new(b"secret", b"0192-id." + body, hashlib.sha256).hexdigest()
    assert signature("secret", "0192-id", body) == f"sha256={expected}"
    assert signature("s", "i", b"") == "sha256=" + hmac.new(b"s", b"i.", hashlib.sha256).hexdigest()
    different = {signature(*one) for one in (("s", "i", b"x"), ("t", "i", b"x"), ("s", "j", b"x"), ("s", "i", b"y"))}
    assert len(different) == 4
    assert signature("é", "i", "名".encode()).startswith("sha256=")
