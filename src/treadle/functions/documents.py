"""Reading all documents of a namespace, and changing one that others may be changing too (S12)."""

from __future__ import annotations

from collections.abc import Callable

from treadle.core.errors import Conflict
from treadle.core.payload import JSON
from treadle.core.store import Document, Documents
from treadle.engine.clock import EngineClock

PAGE = 1000
TRIES = 20


async def every_document(store: Documents, namespace: str, clock: EngineClock) -> list[Document]:
    """All documents of the namespace, by key; one read, as long as there are fewer than `PAGE`."""
    found: list[Document] = []
    while True:
        after = found[-1].key if found else ""
        page = await store.list_documents(namespace, after=after, limit=PAGE, now=clock.for_store())
        found += page
        if len(page) < PAGE:
            return found


async def change_document(
    store: Documents, namespace: str, key: str, change: Callable[[Document | None], JSON], clock: EngineClock
) -> JSON:
    """Write what `change` makes of the document, again from the start where somebody else wrote meanwhile.

    Answers what was written. What `change` raises goes up, and nothing is written. Raises `Conflict` where others were
    quicker `TRIES` times.
    """
    for _ in range(TRIES):
        document = await store.get_document(namespace, key, now=clock.for_store())
        value = change(document)
        expect = 0 if document is None else document.revision
        if await store.put_document(namespace, key, value, expect=expect, now=clock.for_store()) is not None:
            return value
    raise Conflict(f"{key!r} is being changed by others all the time; nothing was changed, try again")
