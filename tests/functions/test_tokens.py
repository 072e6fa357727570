"""Users' tokens: what is made is known, and everything else is refused in one way (F8)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import subprocess
import sys
from datetime import timedelta
from typing import Any

import jwt
import pytest
from hypothesis import given, settings, strategies as st

from treadle.core.errors import InvalidArgument
from treadle.engine.clock import EngineClock
from treadle.functions.identity import Identity, Unauthorized
from treadle.functions.tokens import MAX_TOKEN, WrongSignature, user_of, user_token
from treadle.testing import ManualClock

SECRET = "a secret of this service, that nobody knows"
TIME = ManualClock()
CLOCK = EngineClock(TIME)
NOW = TIME.now()
SECOND = int(NOW.timestamp())
GOOD: dict[str, Any] = {"sub": "u1", "role": "user", "exp": SECOND + 60}


def _part(value: object) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _signed(claims: object, header: object = None, secret: str = SECRET, how: Any = hashlib.sha256) -> str:
    """A token with any claims and header, signed as HS256 would."""
    body = f"{_part({'alg': 'HS256', 'typ': 'JWT'} if header is None else header)}.{_part(claims)}"
    return f"{body}.{_part(hmac.new(secret.encode(), body.encode(), how).digest())}"


def _refused(token: str) -> Unauthorized:
    with pytest.raises(Unauthorized) as refused:
        user_of(SECRET, token, NOW)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300
    assert SECRET not in str(refused.value)
    return refused.value


def test_a_token_says_who_and_in_which_role() -> None:
    assert user_of(SECRET, user_token(SECRET, "u1", clock=CLOCK), NOW) == Identity("user", "u1", "user")
    assert user_of(SECRET, user_token(SECRET, "boss", "admin", clock=CLOCK), NOW) == Identity("user", "boss", "admin")
    assert user_of(SECRET, _signed(GOOD), NOW) == Identity("user", "u1", "user")


def test_a_token_is_a_plain_jwt_that_any_library_reads() -> None:
    claims = jwt.decode(user_token(SECRET, "u1", seconds=90), SECRET, algorithms=["HS256"])
    assert claims["sub"] == "u1"
    assert claims["role"] == "user"
    assert set(claims) == {"sub", "role", "exp"}
    assert user_of(SECRET, jwt.encode(GOOD | {"iat": SECOND + 30, "name": "Ann"}, SECRET, "HS256"), NOW).user_id == "u1"


@pytest.mark.parametrize("secret", ["s", "short", "é" * 10, "x" * 31, "x" * 32, "x" * 64, "x" * 65, "x" * 4096])
def test_a_secret_of_any_length_signs_as_hs256_does(secret: str) -> None:
    assert user_of(secret, _signed(GOOD, secret=secret), NOW).user_id == "u1"
    token = user_token(secret, "u1", clock=CLOCK)
    body, _, signed = token.rpartition(".")
    assert signed == _part(hmac.digest(secret.encode(), body.encode(), "sha256"))


def test_a_token_expires_at_its_second_without_leeway() -> None:
    token = user_token(SECRET, "u1", seconds=10, clock=CLOCK)
    assert user_of(SECRET, token, NOW + timedelta(seconds=9.999999))
    with pytest.raises(Unauthorized, match="expired"):
        user_of(SECRET, token, NOW + timedelta(seconds=10))
    half = user_token(SECRET, "u1", seconds=0.5, clock=CLOCK)
    assert user_of(SECRET, half, NOW + timedelta(seconds=0.5)), "it lives no shorter than it was asked to"
    assert user_of(SECRET, _signed(GOOD | {"exp": SECOND + 0.5}), NOW)


@pytest.mark.parametrize("sub", ["x", "u" * 255, "ann@example.com", "auth0|5f7c", "a b", "{}", "~", "0" * 8])
def test_ids_that_fit_a_header_are_taken(sub: str) -> None:
    assert user_of(SECRET, user_token(SECRET, sub, clock=CLOCK), NOW).user_id == sub


BAD_SUBS = [
    "",
    "u" * 256,
    " x",
    "x ",
    "a\nb",
    "a\r\nx-treadle-role: admin",
    "\0",
    "\x7f",
    "é",
    "名",
    "\ud800",
    "a\tb",
    "\u200b",
]


@pytest.mark.parametrize("sub", [*BAD_SUBS, None, 7, True, ["u"], {"u": 1}, 1.5])
def test_other_ids_are_refused_on_both_sides(sub: Any) -> None:
    with pytest.raises(InvalidArgument, match="the user's id must be"):
        user_token(SECRET, sub, clock=CLOCK)
    _refused(_signed(GOOD | {"sub": sub}))


@pytest.mark.parametrize("role", ["", "User", "root", "anon", "service_role", None, 1, True, ["admin"], {}, "admin "])
def test_other_roles_are_refused_on_both_sides(role: Any) -> None:
    with pytest.raises(InvalidArgument, match="the user's role must be user or admin"):
        user_token(SECRET, "u1", role, clock=CLOCK)
    _refused(_signed(GOOD | {"role": role}))


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "3600", True, None, 10**400])
def test_a_life_that_is_none_is_refused(seconds: Any) -> None:
    with pytest.raises(InvalidArgument, match="the token's life"):
        user_token(SECRET, "u1", seconds=seconds, clock=CLOCK)


@pytest.mark.parametrize(
    "exp",
    [str(SECOND + 60), "later", None, True, [], {}, SECOND, SECOND - 60, -1, 0, float("nan"), float("inf"), -1e308, 10**400],
)
def test_other_times_of_expiry_are_refused(exp: Any) -> None:
    _refused(_signed(GOOD | {"exp": exp}))


@pytest.mark.parametrize("nbf", [SECOND + 1, "0", None, True, float("nan")])
def test_a_token_that_is_not_valid_yet_is_refused(nbf: Any) -> None:
    assert user_of(SECRET, _signed(GOOD | {"nbf": SECOND}), NOW)
    _refused(_signed(GOOD | {"nbf": nbf}))


@pytest.mark.parametrize("claim", ["sub", "role", "exp"])
def test_missing_claims_are_refused(claim: str) -> None:
    _refused(_signed({name: value for name, value in GOOD.items() if name != claim}))


def test_a_token_for_somebody_else_is_refused() -> None:
    _refused(_signed(GOOD | {"aud": "another-service"}))


@pytest.mark.parametrize("claims", [[], "x", 7, None, True, b"", b"{", b"\xff\xfe", b"[" * 3000, b'{"a":' * 900, b"1" * 5000])
def test_claims_that_are_no_object_are_refused(claims: Any) -> None:
    _refused(_signed(claims))


HEADERS = [
    {"alg": "none"},
    {"alg": "None"},
    {"alg": "nOnE"},
    {"alg": "HS512"},
    {"alg": "HS384"},
    {"alg": "RS256"},
    {"alg": "ES256"},
    {"alg": "EdDSA"},
    {"alg": ""},
    {"alg": None},
    {"alg": 7},
    {"alg": ["HS256"]},
    {"alg": {"HS256": 1}},
    {},
    [],
    None,
    "HS256",
    b"{",
    b"[" * 3000,
    {"alg": "HS256", "crit": ["exp"]},
    {"alg": "HS256", "b64": False, "crit": ["b64"]},
    {"alg": "HS256", "kid": 7},
    {"alg": "hs256"},
]


@pytest.mark.parametrize("header", HEADERS)
def test_other_algorithms_and_headers_are_refused(header: Any) -> None:
    for how in (hashlib.sha256, hashlib.sha384, hashlib.sha512):
        _refused(_signed(GOOD, header if header is not None else b"null", how=how))


@pytest.mark.parametrize(("name", "how"), [("HS384", hashlib.sha384), ("HS512", hashlib.sha512)])
def test_a_longer_hash_is_refused_also_where_the_secret_is_long_enough_for_it(name: str, how: Any) -> None:
    secret = "x" * 128
    token = _signed(GOOD, {"alg": name}, secret, how)
    assert jwt.decode(token, secret, algorithms=[name], options={"verify_exp": False})["sub"] == "u1"
    with pytest.raises(Unauthorized, match="alg"):
        user_of(secret, token, NOW)


def test_a_token_without_a_signature_is_refused() -> None:
    for header in ({"alg": "none"}, {"alg": "HS256"}):
        body = f"{_part(header)}.{_part(GOOD)}"
        for token in (body, f"{body}.", f"{body}..", f".{body}", f"{body}.{_part(b'x')}"):
            _refused(token)
    _refused(jwt.encode(GOOD, "", "none"))
    _refused(jwt.encode(GOOD, SECRET + "x" * 32, "HS512"))


def test_a_token_signed_with_a_public_key_is_refused() -> None:
    """The confusion of RS256: who takes the algorithm from the token would verify with a public key as the secret."""
    public = "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAK\n-----END PUBLIC KEY-----\n"
    _refused(_signed(GOOD, {"alg": "HS256"}, secret=public))
    _refused(_signed(GOOD, {"alg": "RS256"}, secret=public))


def test_a_wrong_secret_is_told_apart_since_it_may_be_in_force_by_now() -> None:
    for wrong in ("x" * 40, SECRET + "x", SECRET[:-1], "x"):
        assert isinstance(_refused(_signed(GOOD, secret=wrong)), WrongSignature)
    assert not isinstance(_refused(_signed(GOOD | {"exp": 1})), WrongSignature)
    assert not isinstance(_refused("x"), WrongSignature)


def test_a_changed_token_is_refused() -> None:
    token = user_token(SECRET, "u1", clock=CLOCK)
    for at in range(len(token)):
        changed = "A" if token[at] != "A" else "B"
        _refused(token[:at] + changed + token[at + 1 :])
        _refused(token[:at] + token[at + 1 :])


def test_a_huge_token_is_refused_before_it_is_read() -> None:
    huge = _signed(GOOD | {"more": "x" * 10_000})
    assert len(huge) > MAX_TOKEN
    assert str(MAX_TOKEN // 1000) in str(_refused(huge))
    _refused("a." * 1_000_000)
    assert user_of(SECRET, _signed(GOOD | {"more": "x" * 5000}), NOW)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.text("abcAB0-_.=", min_size=5), st.binary().map(lambda raw: raw.decode("latin-1"))))
def test_garbage_is_refused(token: str) -> None:
    _refused(token)


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(_JSON, st.fixed_dictionaries({"sub": _JSON, "role": _JSON, "exp": _JSON}, optional={"nbf": _JSON, "aud": _JSON})),
    st.one_of(st.none(), _JSON, st.fixed_dictionaries({"alg": st.just("HS256")}, optional={"crit": _JSON, "b64": _JSON})),
)
def test_signed_garbage_is_refused_or_is_a_whole_user(claims: Any, header: Any) -> None:
    try:
        found = user_of(SECRET, _signed(claims, header), NOW)
    except Unauthorized:
        return
    assert found.role == "user"
    assert found.user_id == claims["sub"]
    assert found.user_role in ("user", "admin")


def test_without_pyjwt_only_tokens_are_missing_and_the_extra_is_named() -> None:
    program = (
        "import sys\n"
        "sys.modules['jwt'] = None\n"
        "from treadle.core.errors import MissingExtra\n"
        "from treadle.functions import directory, keys, settings_watch\n"
        "try:\n"
        "    from treadle.functions import tokens\n"
        "except MissingExtra as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("users' tokens need PyJWT: install treadle[service]\n", "")
