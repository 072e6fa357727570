"""Documents in memory: values kept as JSON text, so that nobody holds a part of what is stored (S12)."""

from __future__ import annotations

import builtins
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heappush

from treadle.core.payload import JSON, decode, encode
from treadle.core.store import Document
from treadle.core.transfer import KeptDocument
from treadle.stores.memory.moments import later

SLACK = 64
_NO_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True)
class _Kept:
    text: str
    revision: int
    expires_at: datetime | None

    def holds(self, now: datetime) -> bool:
        return self.expires_at is None or self.expires_at > now

    def document(self, key: str) -> Document:
        return Document(key, decode(self.text), self.revision, self.expires_at)


class DocumentShelf:
    """Documents by namespace and key, the keys of a namespace in order; expired ones are thrown out at each write."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, _Kept]] = {}
        self._keys: dict[str, list[str]] = {}
        self._expiries: list[tuple[datetime, str, str]] = []
        self._expiring = 0

    def get(self, namespace: str, key: str, now: datetime) -> Document | None:
        """The document, if it is there and has not expired."""
        kept = self._current(namespace, key, now)
        return None if kept is None else kept.document(key)

    def put(
        self, namespace: str, key: str, value: JSON, expect: int | None, expires_in: float | None, now: datetime
    ) -> Document | None:
        """Write it, if the expected revision is there."""
        text = encode(value, _NO_LIMIT)
        self._expire(now)
        current = self._current(namespace, key, now)
        revision = current.revision if current is not None else 0
        if expect is not None and expect != revision:
            return None
        self._drop(namespace, key)
        expires_at = None if expires_in is None else later(now, expires_in)
        kept = _Kept(text, revision + 1, expires_at)
        self._keep(namespace, key, kept)
        return kept.document(key)

    def delete(self, namespace: str, key: str, expect: int | None, now: datetime) -> bool:
        """Delete it, if it is there at the expected revision."""
        current = self._current(namespace, key, now)
        if current is None or expect not in (None, current.revision):
            return False
        self._drop(namespace, key)
        return True

    def list(self, namespace: str, prefix: str, after: str, limit: int, now: datetime) -> list[Document]:
        """Documents by key."""
        keys = self._keys.get(namespace, [])
        found: list[Document] = []
        for at in range(max(bisect_left(keys, prefix), bisect_right(keys, after) if after else 0), len(keys)):
            if len(found) >= limit or not keys[at].startswith(prefix):
                break
            document = self.get(namespace, keys[at], now)
            if document is not None:
                found.append(document)
        return found

    # -- moving between stores (S13)

    def all(self, after: tuple[str, str] | None, limit: int) -> builtins.list[KeptDocument]:
        """Documents beyond that place, in order, expired ones too."""
        places = sorted((namespace, key) for namespace, keys in self._keys.items() for key in keys)
        if after is not None:
            places = places[bisect_right(places, after) :]
        return [KeptDocument(namespace, self._kept[namespace][key].document(key)) for namespace, key in places[:limit]]

    def restore(self, kept: KeptDocument) -> None:
        """Keep it as it was, with revision and expiry, unless there is one in its place."""
        document = kept.document
        if document.key not in self._kept.get(kept.namespace, {}):
            text = encode(document.value, _NO_LIMIT)
            self._keep(kept.namespace, document.key, _Kept(text, document.revision, document.expires_at))

    def remove(self, kept: KeptDocument) -> None:
        """Drop the one in its place."""
        self._drop(kept.namespace, kept.document.key)

    def __len__(self) -> int:
        """How many there are, expired ones too."""
        return sum(map(len, self._kept.values()))

    def _keep(self, namespace: str, key: str, kept: _Kept) -> None:
        self._kept.setdefault(namespace, {})[key] = kept
        insort(self._keys.setdefault(namespace, []), key)
        if kept.expires_at is not None:
            self._expiring += 1
            heappush(self._expiries, (kept.expires_at, namespace, key))
            self._sweep()

    def _current(self, namespace: str, key: str, now: datetime) -> _Kept | None:
        kept = self._kept.get(namespace, {}).get(key)
        return kept if kept is not None and kept.holds(now) else None

    def _drop(self, namespace: str, key: str) -> None:
        kept = self._kept.get(namespace, {}).pop(key, None)
        if kept is None:
            return
        keys = self._keys[namespace]
        del keys[bisect_left(keys, key)]
        if kept.expires_at is not None:
            self._expiring -= 1
        if not keys:
            del self._kept[namespace], self._keys[namespace]

    def _expire(self, now: datetime) -> None:
        expiries = self._expiries
        while expiries and expiries[0][0] <= now:
            at, namespace, key = heappop(expiries)
            kept = self._kept.get(namespace, {}).get(key)
            if kept is not None and kept.expires_at == at:
                self._drop(namespace, key)

    def _sweep(self) -> None:
        """A document that is written over and over leaves a past expiry each time: drop them once they are most."""
        if len(self._expiries) > 2 * self._expiring + SLACK:
            self._expiries = [
                (kept.expires_at, namespace, key)
                for namespace, documents in self._kept.items()
                for key, kept in documents.items()
                if kept.expires_at is not None
            ]
            heapify(self._expiries)
