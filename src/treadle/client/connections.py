"""How both faces of the client connect: what they trust, keep and refuse."""

from __future__ import annotations

import ssl
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2

# Well under the 5 s after which servers of Python and Node close an idle connection: a request that crosses with the closing
# is lost, and may not be repeated.
LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=2.0)


def trust(secure: bool, given: ssl.SSLContext | None) -> ssl.SSLContext:
    """Whose certificates are good: those of the system, or of the context that was given."""
    if given is not None:
        return given
    if not secure:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # never used, and without authorities, which take long to load
    return httpx2.create_ssl_context(trust_env=False)


def no_cookies() -> CookieJar:
    """A jar that takes none: what one function sets must not be shown to another, nor to another thread's call."""
    return CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
