"""A place: what the URL of a function says of where and how it is called."""

from __future__ import annotations

import functools
import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from treadle import __version__

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Place:
    """A URL taken apart. `key` is the same for all URLs that one connection serves; `lines` never changes between calls."""

    key: str
    host: str
    port: int
    tls: bool
    literal: bool  # an address rather than a name: there is nothing to look up
    base: str  # of the path
    lines: str  # the end of the request line, and the headers that are always the same

    @property
    def where(self) -> str:
        """Host and port, for people."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@functools.lru_cache(maxsize=4096)
def place(url: str) -> Place:
    """The place of a URL. Raises `ValueError` for one that is none."""
    parts = urlsplit(url)
    host, port = parts.hostname, parts.port
    if parts.scheme not in _PORTS or not host or port == 0:
        raise ValueError("no http or https, no host, or port 0")
    bracketed = f"[{host}]" if ":" in host else host
    named = bracketed if port is None or port == _PORTS[parts.scheme] else f"{bracketed}:{port}"
    port = port or _PORTS[parts.scheme]
    return Place(
        key=f"{parts.scheme}://{bracketed}:{port}",
        host=host,
        port=port,
        tls=parts.scheme == "https",
        literal=_is_literal(host),
        base=parts.path.rstrip("/"),
        lines=f" HTTP/1.1\r\nhost: {named}\r\nuser-agent: treadle/{__version__}\r\naccept: */*\r\n",
    )


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
