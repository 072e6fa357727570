"""The URL of a Redis store, taken apart (S1, S7)."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import redis

from treadle.core.errors import InvalidArgument
from treadle.core.policies.limits import checked_duration
from treadle.stores.redis.address import Address

SCHEMES = {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss", "unix": "unix"}
SENTINEL_SCHEMES = {"redis+sentinel": False, "rediss+sentinel": True, "valkey+sentinel": False, "valkeys+sentinel": True}
# What treadle sets on each connection: with other values it would not understand answers, or would repeat commands.
OWN_OPTIONS = frozenset({"decode_responses", "protocol", "retry_on_timeout", "retry_on_error", "socket_timeout", "encoding"})
_ENCODED = "a / # ? or % in a password is written %2F %23 %3F or %25"
_TRUE, _FALSE = ("1", "true", "yes"), ("", "0", "false", "no")


def address(url: str, timeout: float = 10.0) -> Address:
    """The address that the URL means. Raises `InvalidArgument`, without showing a password.

    `?cluster=true` takes the server for a node of a cluster, `?prefix=` names the store in it, `?timeout=` is in seconds;
    what else stands there is the driver's. `redis+sentinel://host:port,host:port/service/db` asks sentinels for the
    primary of the service.
    """
    try:
        parts = urlsplit(url)
        scheme, query = parts.scheme, dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError as error:
        raise InvalidArgument(f"the URL of the Redis store cannot be read: {error}") from None
    prefix, cluster = query.pop("prefix", None), _flag(query.pop("cluster", ""))
    if "timeout" in query:
        timeout = _seconds(query.pop("timeout"))
    if own := OWN_OPTIONS & query.keys():
        raise InvalidArgument(
            f"{min(own)}= cannot be set in the URL of the Redis store; timeout= is how long an answer may take"
        )
    hosts = parts.netloc.rpartition("@")[2]
    if scheme in SENTINEL_SCHEMES:
        if query:
            raise InvalidArgument(f"the URL of the Redis store has the unknown option {min(query)!r}")
        return _behind_sentinels(url, prefix, timeout)
    if scheme not in SCHEMES:
        known = ", ".join(f"{name}://" for name in (*SCHEMES, *SENTINEL_SCHEMES))
        raise InvalidArgument(f"a Redis store's URL begins with one of {known}, not {scheme or url[:20]!r}")
    database = parts.path.strip("/") or "0"
    if scheme != "unix" and not database.isdecimal():
        raise InvalidArgument(f"the path in the URL of the Redis store must be the number of a database; {_ENCODED}")
    if cluster and database != "0":
        raise InvalidArgument(f"a Redis cluster has no database but 0; leave {parts.path} out of the URL")
    # Not urlunsplit, which leaves out the slashes of a URL without a host.
    plain = f"{SCHEMES[scheme]}://{parts.netloc}{parts.path}{'?' if query else ''}{urlencode(query)}"
    try:
        # Only to have the driver read it: a port that is no number, an option that it does not know.
        redis.ConnectionPool.from_url(plain).make_connection()
    except TypeError as error:
        raise InvalidArgument(f"the URL of the Redis store has an unknown option: {str(error).rpartition(' ')[2]}") from None
    except ValueError as error:
        # What stands before an @ that is beyond the host is a piece of a password.
        reason = _ENCODED if "@" in url and "@" not in parts.netloc else error
        raise InvalidArgument(f"the URL of the Redis store cannot be read: {reason}") from None
    return Address(plain, hosts or parts.path or "localhost", prefix, cluster, timeout=timeout)


def _behind_sentinels(url: str, prefix: str | None, timeout: float) -> Address:
    parts = urlsplit(url)
    user, _, hosts = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/")
    form = "redis+sentinel://host:port,host:port/service/db"
    try:
        sentinels = tuple(_host_and_port(host) for host in hosts.split(","))
        number = int(database or 0)
    except ValueError:
        raise InvalidArgument(
            f"the URL of the Redis store must look like {form}; a host, port or database in it does not"
        ) from None
    if not service:
        raise InvalidArgument(f"the URL of the Redis store names no service: it must look like {form}")
    extra: dict[str, Any] = {"db": number}
    if user:
        name, colon, password = user.partition(":")
        extra |= {"username": unquote(name) or None, "password": unquote(password) if colon else None}
    if SENTINEL_SCHEMES[parts.scheme]:
        extra["ssl"] = True
    return Address(
        url,
        f"{service} at {hosts}",
        prefix,
        sentinels=sentinels,
        service=unquote(service),
        timeout=timeout,
        extra=tuple(extra.items()),
    )


def _host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon:
        host, port = text, "26379"
    if not host:
        raise ValueError(text)
    return host.strip("[]"), int(port)


def _seconds(text: str) -> float:
    try:
        return checked_duration(float(text), "timeout= in the URL of the Redis store")
    except ValueError:
        raise InvalidArgument(f"timeout= in the URL of the Redis store must be seconds above zero, not {text!r}") from None


def _flag(text: str) -> bool:
    if text.lower() not in _TRUE + _FALSE:
        raise InvalidArgument(f"cluster= in the URL of the Redis store must be true or false, not {text!r}")
    return text.lower() in _TRUE
