"""What a client is told: where the service is, the key, and how patient to be (F16)."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import urlsplit

URL_VARIABLE, KEY_VARIABLE = "TREADLE_URL", "TREADLE_SERVICE_ROLE_KEY"
MOST_SECONDS = 86_400.0
MOST_RETRIES = 20


@dataclass(frozen=True, slots=True)
class Settings:
    """Checked. The key is in no repr."""

    url: str
    key: str = field(repr=False)
    timeout: float
    connect_timeout: float
    retries: int

    @property
    def secure(self) -> bool:
        """Whether the service is spoken to over TLS."""
        return self.url.startswith("https:")

    @property
    def headers(self) -> dict[str, str]:
        """What goes with every request."""
        return {"apikey": self.key, "accept": "application/json", "user-agent": _user_agent()}


def settings(url: str | None, key: str | None, timeout: float, connect_timeout: float, retries: int) -> Settings:
    """The settings; url and key are the environment's where they are None. Raises `ValueError`, never showing the key."""
    environment: Mapping[str, str] = os.environ
    return Settings(
        url=_url(environment.get(URL_VARIABLE) if url is None else url),
        key=_key(environment.get(KEY_VARIABLE) if key is None else key),
        timeout=seconds("timeout", timeout),
        connect_timeout=seconds("connect_timeout", connect_timeout),
        retries=_retries(retries),
    )


def seconds(what: str, value: object) -> float:
    """A duration that a call can have. Raises `ValueError`."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= MOST_SECONDS:
        raise ValueError(f"{what} must be seconds, more than 0 and at most {MOST_SECONDS:,.0f}, not {value!r}")
    return float(value)


def _retries(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_RETRIES:
        raise ValueError(f"retries must be a whole number from 0 to {MOST_RETRIES}, not {value!r}")
    return value


def _url(value: object) -> str:
    if not value:
        raise ValueError(
            f"the client has no URL: pass url=, or set {URL_VARIABLE} to where `treadle serve` listens, "
            "such as http://127.0.0.1:8700"
        )
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("the client's URL must be ASCII text without spaces")
    if "@" in value:
        raise ValueError("the client's URL must hold no user or password; the key is passed as key=")
    try:
        parts = urlsplit(value)
        _ = parts.port
        (parts.hostname or "").encode("idna")  # which a resolver would refuse with an error of its own
    except ValueError as error:
        raise ValueError(f"the client's URL {value[:80]!r} cannot be read: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError(f"the client's URL must look like http://host:port or https://host, not {value[:80]!r}")
    if "?" in value or "#" in value or not {".", ".."}.isdisjoint(parts.path.split("/")):
        raise ValueError(f"the client's URL must have no query, no fragment and no dots for segments: {value[:80]!r}")
    return value.rstrip("/")


def _key(value: object) -> str:
    if not value:
        raise ValueError(
            f"the client has no key: pass key=, or set {KEY_VARIABLE}; `treadle serve` prints it at its first start"
        )
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError(
            "the client's key must be ASCII text without spaces and line ends; was it read from a file with its newline?"
        )
    return value


def _user_agent() -> str:
    try:
        own = version("treadle")
    except PackageNotFoundError:  # copied rather than installed
        own = "unknown"
    return f"treadle-client/{own} python/{platform.python_version()}"
