"""What is not a job (Documents, S12)."""

from __future__ import annotations

from datetime import datetime

from treadle.core.errors import InvalidArgument
from treadle.core.payload import JSON, encode
from treadle.core.store import Document
from treadle.stores.postgres import rows
from treadle.stores.postgres.part import Part

_NO_LIMIT = 1 << 62


class PostgresDocuments(Part):
    """Documents by namespace and key; an expired one counts as none."""

    async def get_document(self, namespace: str, key: str, *, now: datetime | None = None) -> Document | None:
        """The document, unless it is absent or has expired (S12)."""
        if not _storable(namespace, key):
            return None
        found = await self._read("get_document", now, namespace, key)
        return rows.document(found[0]) if found else None

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
        """Write the value, by compare-and-set where `expect` is given (S12). Raises `InvalidArgument` for what is not JSON."""
        if not _storable(namespace, key):
            raise InvalidArgument(f"a document's namespace and key must not contain NUL or an unpaired surrogate: {key!r}")
        text = encode(value, _NO_LIMIT)
        seconds = None if expires_in is None else rows.bounded(expires_in)
        if expect:
            found = await self._write("swap_document", now, namespace, key, text, seconds, expect)
        else:
            found = await self._write("put_document", now, namespace, key, text, seconds, expect == 0)
        if expires_in is not None:
            await self._read("sweep_documents", now)
        return rows.document(found[0]) if found else None

    async def delete_document(
        self, namespace: str, key: str, *, expect: int | None = None, now: datetime | None = None
    ) -> bool:
        """Delete the document; whether it was there (S12)."""
        if not _storable(namespace, key):
            return False
        return bool(await self._write("delete_document", now, namespace, key, expect))

    async def list_documents(
        self, namespace: str, *, prefix: str = "", after: str = "", limit: int = 1000, now: datetime | None = None
    ) -> list[Document]:
        """Documents by key, in code-point order (S12)."""
        if not _storable(namespace, prefix):
            return []
        beyond, above = rows.beyond(prefix), rows.storable(after) or None
        found = await self._read("list_documents", now, namespace, prefix, above, beyond, max(limit, 0))
        return [rows.document(row) for row in found]


def _storable(*texts: str) -> bool:
    return all(rows.storable(text) == text for text in texts)
