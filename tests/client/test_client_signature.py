"""A function knows a job call by its signature."""

import hashlib
import hmac

import pytest

from treadle.client import verify_signature

SECRET, JOB, BODY = "sec\u00fcret", "0199c1de-0000-7000-8000-000000000001", b'{"a":1}'
GOOD = "sha256=" + hmac.new(SECRET.encode(), JOB.encode() + b"." + BODY, hashlib.sha256).hexdigest()


def test_the_signature_of_the_service_is_good() -> None:
    assert verify_signature(SECRET, JOB, BODY, GOOD)
    assert verify_signature(SECRET, JOB, BODY, GOOD.encode())


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "sha256=",
        GOOD[:-1],
        GOOD + "0",
        GOOD.upper(),
        GOOD.removeprefix("sha256="),
        "sha1" + GOOD[6:],
        "sha256=\u00e9" + GOOD[8:],
        "\udcff",
        b"\xff",
    ],
)
def test_any_other_is_not(header: str | bytes | None) -> None:
    assert not verify_signature(SECRET, JOB, BODY, header)


def test_nor_is_that_of_another_call() -> None:
    assert not verify_signature("other", JOB, BODY, GOOD)
    assert not verify_signature(SECRET, "other", BODY, GOOD)
    assert not verify_signature(SECRET, "\udcff", BODY, GOOD)
    assert not verify_signature(SECRET, JOB, BODY + b" ", GOOD)
    assert not verify_signature(SECRET, JOB, b"", GOOD)
