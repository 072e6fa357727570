"""Documents: small values that are no jobs, with compare-and-set and expiry (S12)."""

from __future__ import annotations

from datetime import datetime

from treadle.core.payload import JSON, decode, encode
from treadle.core.store import Document
from treadle.stores.redis.link import Link
from treadle.stores.redis.moment import at, present, span
from treadle.stores.redis.wire import beginning

LISTED_AT_ONCE = 200
MOST_BYTES = 268_435_456  # half of what one value of a server may be


class Documents:
    """The part of the store that keeps documents."""

    _link: Link

    async def get_document(self, namespace: str, key: str, *, now: datetime | None = None) -> Document | None:
        """The document, unless it is absent or has expired."""
        found = await self._link.call("document_get", present(now), namespace, key)
        return None if found is None else document_of(key, *found)

    async def put_document(
        self,
        namespace: str,
        key: str,
        value: JSON,
        *,
        expect: int | None = None,
        expires_in: float | None = None,
        now: datetime | None = None,
    ) -> Document | None:
        """Write the value, by compare-and-set where `expect` is given. Raises `InvalidArgument` if it is not JSON."""
        text = encode(value, MOST_BYTES)
        stored = await self._link.call(
            "document_put",
            present(now),
            namespace,
            key,
            text,
            "" if expect is None else expect,
            "" if expires_in is None else span(expires_in),
        )
        return None if stored is None else document_of(key, stored[0], stored[1], text)

    async def delete_document(
        self, namespace: str, key: str, *, expect: int | None = None, now: datetime | None = None
    ) -> bool:
        """Delete the document; whether it was there."""
        found = await self._link.call("document_delete", present(now), namespace, key, "" if expect is None else expect)
        return bool(found)

    async def list_documents(
        self, namespace: str, *, prefix: str = "", after: str = "", limit: int = 1000, now: datetime | None = None
    ) -> list[Document]:
        """Documents by key, in code-point order."""
        found: list[Document] = []
        begin = beginning(prefix, after)
        while len(found) < limit:
            most = min(LISTED_AT_ONCE, limit - len(found))
            last, documents = await self._link.call("document_list", present(now), namespace, prefix, begin, most)
            found += [document_of(*document) for document in documents]
            if last is None:
                break
            begin = f"({last}"
        return found


def document_of(key: str, revision: int, expires_at: str | None, text: str) -> Document:
    """The document of an answer."""
    return Document(key, decode(text), revision, None if expires_at is None else at(expires_at))
