"""Schema and life of a store: migrating is idempotent, closing is safe twice, and a closed store opens again (S1, S4)."""

from __future__ import annotations

import asyncio

from treadle.testing.contract import expect
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

schema = Group[Trial]("schema")


@schema
async def migrating_is_idempotent(t: Trial) -> None:
    """Migrate may be called again and again, says what it did in a sentence, and loses nothing (S4)."""
    first = await t.store.migrate()
    expect.that(first.strip() != "", "migrate answers a sentence", first)
    await t.make.pending("a", {"b": []}, idempotency_key="k")
    await t.make.dead("b")
    await t.store.put_document("ns", "k", 1, now=t.now)
    before = await t.everything()
    for _ in range(2):
        await t.store.migrate()
    await t.unchanged(before, "migrating again changes no job")
    document = await t.store.get_document("ns", "k", now=t.now)
    expect.equal(document and document.value, 1, "migrating again changes no document")


@schema
async def migrating_at_once_is_safe(t: Trial) -> None:
    """Many may migrate at the same moment (S4)."""
    answers = await asyncio.gather(*(t.store.migrate() for _ in range(5)))
    expect.equal(len(answers), 5, "each of five that migrate at once gets its answer")
    await t.make.pending()


@schema
async def closing_twice_is_safe(t: Trial) -> None:
    """Close may be called before the first use, and twice (S1)."""
    await t.store.close()
    await t.store.close()


@schema
async def a_closed_store_opens_again_at_its_next_use(t: Trial) -> None:
    """After close the store object can be used again, by any operation (S1)."""
    await t.make.pending()
    await t.store.close()
    await t.make.pending("b")
    await t.store.close()
    keeper = t.store.lease_keeper()
    keeper.close()
    keeper.close()


@schema
async def a_store_may_be_used_from_other_threads_and_loops(t: Trial) -> None:
    """One store object serves several threads, each with an event loop of its own, one after the other (S1)."""
    for number in range(3):
        new = t.new(f"n{number}")
        await asyncio.to_thread(lambda new=new: asyncio.run(t.store.enqueue([new], now=t.now)))  # type: ignore[misc]  # bound in the loop
        expect.equal((await t.job(new.id)).name, new.name, "what another thread's loop enqueued is read by this one")
