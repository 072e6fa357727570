"""Users' tokens: JWTs signed with HMAC-SHA256 that say who the user is, in which role, and until when (F8)."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any, cast, get_args

from treadle.core.errors import InvalidArgument, MissingExtra
from treadle.core.policies.limits import checked_duration
from treadle.engine.clock import EngineClock
from treadle.functions.identity import Identity, Unauthorized, UserRole

try:
    import jwt
    from jwt.algorithms import HMACAlgorithm
except ModuleNotFoundError:
    raise MissingExtra("users' tokens need PyJWT: install treadle[service]") from None

ALGORITHM = "HS256"
MAX_TOKEN = 8192
MAX_SUB = 255
ROLES: tuple[UserRole, ...] = get_args(UserRole)

# Times are checked below: PyJWT would take a text for a number, and reads a clock of its own.
_OPTIONS: Any = {"require": ["sub", "role", "exp"], "verify_exp": False, "verify_nbf": False, "verify_iat": False}


class WrongSignature(Unauthorized):
    """The token is signed with another secret, which may be the one that is in force by now."""


def user_token(secret: str, sub: str, role: str = "user", seconds: float = 3600, *, clock: EngineClock | None = None) -> str:
    """A token for the user `sub`, valid for so many seconds from now. Raises `InvalidArgument`."""
    if not _is_sub(sub):
        raise InvalidArgument(
            f"the user's id must be 1 to {MAX_SUB} printable ASCII characters, since it becomes an HTTP header, "
            f"without a space at either end; not {str(sub)[:80]!r}"
        )
    if role not in ROLES:
        raise InvalidArgument(f"the user's role must be user or admin, not {str(role)[:40]!r}")
    now = (clock or EngineClock()).now().timestamp()
    until = math.ceil(now + checked_duration(seconds, "the token's life"))
    return jwt.encode({"sub": sub, "role": role, "exp": until}, _key(secret), algorithm=ALGORITHM)


def user_of(secret: str, token: str, now: datetime) -> Identity:
    """The user whose token this is. Raises `Unauthorized`, whatever the token is made of; `WrongSignature` for that alone."""
    if len(token) > MAX_TOKEN:
        raise Unauthorized(f"the token has {len(token):,} characters; the limit is {MAX_TOKEN:,}")
    try:
        claims = jwt.decode(token, _key(secret), algorithms=[ALGORITHM], options=_OPTIONS)
    except jwt.InvalidSignatureError:
        raise WrongSignature("the token is not signed with the signing secret of this service") from None
    except Exception as error:  # the token is anybody's text: whatever a library does with it, it is no token
        raise Unauthorized(f"the token is refused: {' '.join(str(error).split())[:200] or type(error).__name__}") from None
    sub, role = claims["sub"], claims["role"]
    until, since = _moment(claims, "exp"), _moment(claims, "nbf") if "nbf" in claims else -math.inf
    if not _is_sub(sub):
        raise Unauthorized(f"the token's sub must be 1 to {MAX_SUB} printable ASCII characters")
    if role not in ROLES:
        raise Unauthorized("the token's role must be user or admin")
    if until <= now.timestamp():
        raise Unauthorized("the token has expired; sign in again")
    if since > now.timestamp():
        raise Unauthorized("the token is not valid yet")
    return Identity("user", cast("str", sub), cast("UserRole", role))


def checked_secret(secret: str) -> str:
    """A secret that tokens can be signed with: refuses public and private keys, which may be known to others."""
    try:
        HMACAlgorithm(HMACAlgorithm.SHA256).prepare_key(secret.encode())
    except (jwt.PyJWTError, ValueError) as error:
        raise InvalidArgument(f"the signing secret cannot be used: {' '.join(str(error).split())}") from None
    return secret


def _key(secret: str) -> bytes:
    """The secret as HMAC takes it: filled up with zeros, as HMAC itself would do, so that PyJWT does not warn each time.

    The service warns of a short one once, when it starts.
    """
    return secret.encode().ljust(32, b"\0")


def _is_sub(value: object) -> bool:
    return (
        isinstance(value, str)
        and 1 <= len(value) <= MAX_SUB
        and value.isascii()
        and value.isprintable()
        and value.strip() == value
    )


def _moment(claims: dict[str, Any], name: str) -> float:
    """A claim that must be a number of seconds since 1970."""
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Unauthorized(f"the token's {name} must be a number of seconds since 1970")
    try:
        moment = float(value)
    except OverflowError:
        moment = math.inf
    if not math.isfinite(moment):
        raise Unauthorized(f"the token's {name} must be a number of seconds since 1970")
    return moment
