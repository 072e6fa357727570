"""Documents: small stored values that are no jobs, with compare-and-set and expiry (S12)."""

from __future__ import annotations

from treadle.core.clock import from_micros
from treadle.core.payload import JSON, decode, encode
from treadle.core.store import Document
from treadle.stores.sqlite.moments import later
from treadle.stores.sqlite.session import Session

_LAST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def get(session: Session, namespace: str, key: str, now: int) -> Document | None:
    """The document that is there at `now`."""
    rows = session.rows("document_get", namespace=namespace, key=key, now=now)
    return document_of(key, *rows[0]) if rows else None


def put(
    session: Session, namespace: str, key: str, value: JSON, expect: int | None, expires_in: float | None, now: int
) -> Document | None:
    """Write the document, if the expected revision is there."""
    text = encode(value)
    rows = session.rows("document_get", namespace=namespace, key=key, now=now)
    revision = rows[0][1] if rows else 0
    if expect is not None and expect != revision:
        return None
    session.rows("documents_sweep", now=now)
    expires_at = None if expires_in is None else later(now, expires_in)
    session.rows("document_put", namespace=namespace, key=key, value=text, revision=revision + 1, expires_at=expires_at)
    return document_of(key, text, revision + 1, expires_at)


def delete(session: Session, namespace: str, key: str, expect: int | None, now: int) -> bool:
    """Delete the document; whether it was there at the expected revision."""
    rows = session.rows("document_get", namespace=namespace, key=key, now=now)
    if not rows or (expect is not None and expect != rows[0][1]):
        return False
    session.rows("document_delete", namespace=namespace, key=key)
    return True


def listed(session: Session, namespace: str, prefix: str, after: str, limit: int, now: int) -> list[Document]:
    """Documents by key, in code-point order."""
    start = max(prefix, f"{after}\0") if after else prefix  # the least text above `after`; NUL is below all others
    rows = session.rows("documents_list", namespace=namespace, start=start, stop=above(prefix), limit=limit, now=now)
    return [document_of(*row) for row in rows]


def above(prefix: str) -> str | None:
    """The least text that is greater than everything which begins with `prefix`; None where there is none."""
    while prefix:
        following = ord(prefix[-1]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _LAST_CHARACTER:
            return prefix[:-1] + chr(following)
        prefix = prefix[:-1]
    return None


def document_of(key: str, value: str, revision: int, expires_at: int | None) -> Document:
    """The document of a row."""
    return Document(key, decode(value), revision, None if expires_at is None else from_micros(expires_at))
