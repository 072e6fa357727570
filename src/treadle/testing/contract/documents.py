"""Documents: small stored values, written by compare-and-set, listed in order, gone when they expire (S12)."""

from __future__ import annotations

import asyncio

from treadle.core.payload import JSON, encode
from treadle.core.store import Document
from treadle.testing.contract import expect
from treadle.testing.contract.payloads import CASES
from treadle.testing.contract.trial import Trial
from treadle.testing.suite import Group

documents = Group[Trial]("documents")


async def _put(
    t: Trial, key: str, value: JSON = 1, *, expect: int | None = None, expires_in: float | None = None, namespace: str = "ns"
) -> Document | None:
    return await t.store.put_document(namespace, key, value, expect=expect, expires_in=expires_in, now=t.now)


async def _get(t: Trial, key: str, namespace: str = "ns") -> Document | None:
    return await t.store.get_document(namespace, key, now=t.now)


async def _keys(t: Trial, **options: str | int) -> list[str]:
    found = await t.store.list_documents("ns", now=t.now, **options)  # type: ignore[arg-type]  # prefix, after and limit
    return [document.key for document in found]


@documents
async def what_was_put_is_got(t: Trial) -> None:
    """A document comes back with its value, its revision and no expiry; an absent one is None (S12)."""
    expect.equal(await _get(t, "k"), None, "an absent document is None")
    expect.equal(
        await _put(t, "k", {"a": 1}), Document("k", {"a": 1}, 1), "put answers the document as it is stored, revision 1"
    )
    expect.equal(await _get(t, "k"), Document("k", {"a": 1}, 1), "get answers what was put")


@documents
async def each_write_raises_the_revision(t: Trial) -> None:
    """The revision goes up by one with each write, also of the same value (S12)."""
    for revision in (1, 2, 3):
        written = await _put(t, "k", "same")
        expect.equal(written and written.revision, revision, f"write {revision} makes revision {revision}")


@documents
async def compare_and_set_writes_only_over_what_was_expected(t: Trial) -> None:
    """`expect` names the revision that must be there; another one, and nothing is written (S12)."""
    expect.equal(await _put(t, "k", "a", expect=1), None, "a revision is expected, none is there: refused")
    expect.equal(await _get(t, "k"), None, "a refused write stores nothing")
    first = await _put(t, "k", "b", expect=0)
    expect.equal(first and first.revision, 1, "none is expected, none is there: written")
    expect.equal(await _put(t, "k", "c", expect=0), None, "none is expected, one is there: refused")
    expect.equal(await _put(t, "k", "c", expect=2), None, "another revision is there: refused")
    second = await _put(t, "k", "c", expect=1)
    expect.equal(second and second.revision, 2, "the expected revision is there: written")
    expect.equal(await _get(t, "k"), Document("k", "c", 2), "the document is that of the last write that was not refused")


@documents
async def of_many_writers_that_expect_the_same_one_wins(t: Trial) -> None:
    """Compare-and-set holds under concurrency (S12)."""
    await _put(t, "k", 0)
    for revision in (1, 2, 3):
        answers = await asyncio.gather(*(_put(t, "k", number, expect=revision) for number in range(10)))
        won = [one for one in answers if one is not None]
        expect.equal(len(won), 1, "of ten writers that expect one revision one writes")
        expect.equal(await _get(t, "k"), won[0], "what is stored is what the one wrote")


@documents
async def counters_lose_no_step(t: Trial) -> None:
    """Read, compare and set, again until it holds: concurrent counters add up (S12)."""

    async def count_up() -> None:
        while True:
            document = await _get(t, "n")
            value, revision = (document.value, document.revision) if document is not None else (0, 0)
            await asyncio.sleep(0)  # so that others come between reading and writing on every store
            if await _put(t, "n", int(str(value)) + 1, expect=revision) is not None:
                return

    await asyncio.gather(*(count_up() for _ in range(12)))
    document = await _get(t, "n")
    expect.equal(document and document.value, 12, "twelve concurrent steps make twelve")


@documents
async def a_deleted_document_is_gone(t: Trial) -> None:
    """Delete answers whether it was there, and a new one begins at revision 1 (S12)."""
    await _put(t, "k")
    await _put(t, "k")
    expect.equal(await t.store.delete_document("ns", "k", now=t.now), True, "deleting a document answers True")
    expect.equal(await _get(t, "k"), None, "a deleted document is gone")
    expect.equal(await t.store.delete_document("ns", "k", now=t.now), False, "deleting an absent document answers False")
    again = await _put(t, "k", expect=0)
    expect.equal(again and again.revision, 1, "a document put anew begins at revision 1")


@documents
async def deleting_may_expect_a_revision(t: Trial) -> None:
    """Delete with `expect` leaves a document of another revision alone (S12)."""
    await _put(t, "k")
    await _put(t, "k")
    expect.equal(await t.store.delete_document("ns", "k", expect=1, now=t.now), False, "another revision is not deleted")
    expect.that(await _get(t, "k") is not None, "a refused deletion leaves the document")
    expect.equal(await t.store.delete_document("ns", "k", expect=2, now=t.now), True, "the expected revision is deleted")


@documents
async def a_document_expires(t: Trial) -> None:
    """At expires_at a document is as absent as if it had been deleted (S12)."""
    written = await _put(t, "k", "v", expires_in=10.0)
    expect.equal(written and written.expires_at, t.at(10.0), "expires_at is so many seconds from now")
    t.advance(9.999999)
    expect.equal(await _get(t, "k"), written, "a document is there until it expires")
    t.advance(0.000001)
    expect.equal(await _get(t, "k"), None, "an expired document is not answered")
    expect.equal(await _keys(t), [], "an expired document is not listed")
    expect.equal(await t.store.delete_document("ns", "k", now=t.now), False, "an expired document is not there to be deleted")
    expect.equal(await _put(t, "k", expect=1), None, "an expired document is not the revision that is expected")
    again = await _put(t, "k", "w", expect=0)
    expect.equal(again, Document("k", "w", 1), "in the place of an expired document a new one begins")


@documents
async def a_write_sets_the_expiry_anew(t: Trial) -> None:
    """Each write decides over expiry: later, or not at all (S12)."""
    await _put(t, "later", expires_in=10.0)
    await _put(t, "never", expires_in=10.0)
    t.advance(5)
    await _put(t, "later", expires_in=10.0)
    await _put(t, "never")
    t.advance(9)
    expect.equal(await _keys(t), ["later", "never"], "a later expiry and none replace the first one")
    t.advance(1)
    expect.equal(await _keys(t), ["never"], "a document that was written without an expiry stays")


@documents
async def values_come_back_exactly(t: Trial) -> None:
    """A value is any JSON, and comes back as such, like a payload (E5, S12)."""
    for number, (words, value) in enumerate(CASES.items()):
        await _put(t, str(number), value)
        document = await _get(t, str(number))
        expect.that(document is not None, "a document that was put is there")
        expect.same_json(encode(document and document.value), encode(value), f"{words} comes back as it was")


@documents
async def namespaces_are_apart(t: Trial) -> None:
    """A key belongs to its namespace, and the two never run together into another pair (S12)."""
    pairs = [("a", "b:c"), ("a:b", "c"), ("a", "b/c"), ("a/b", "c"), ("a", "c"), ("b", "c"), ("A", "c"), ("plugin:x", "c")]
    for number, (namespace, key) in enumerate(pairs):
        written = await _put(t, key, number, expect=0, namespace=namespace)
        expect.that(written is not None, f"the document {key!r} of namespace {namespace!r} is no other")
    for number, (namespace, key) in enumerate(pairs):
        document = await _get(t, key, namespace)
        expect.equal(document and document.value, number, f"the document {key!r} of namespace {namespace!r} has its own value")
    listed = await t.store.list_documents("a", now=t.now)
    expect.equal([document.key for document in listed], ["b/c", "b:c", "c"], "a list has the keys of its namespace alone")


@documents
async def a_list_is_in_code_point_order(t: Trial) -> None:
    """Keys come by their code points: capitals first, accents and emoji last, whatever a database's language (S12)."""
    keys = [
        "b",
        "a",
        "B",
        "é",
        "e\u0301",
        "z",
        "10",
        "9",
        "_",
        "%",
        "-",
        "a b",
        "a-b",
        "ab",
        "\uffee",
        "\U0001f600",
        "\U0001f9f5",
    ]
    for key in keys:
        await _put(t, key)
    expect.equal(await _keys(t), sorted(keys), "list answers keys in code-point order")


@documents
async def a_prefix_means_itself(t: Trial) -> None:
    """A prefix is plain text: percent sign, underline, backslash, star and emoji are no wildcards (S12)."""
    keys = ["a%1", "a%2", "a_1", "a1", "ab", "a\\1", "a*1", "a\U0001f6001", "a\U0001f9f51", "A%1", "b", "", "a"]
    for key in keys:
        await _put(t, key)
    for prefix in ("a%", "a_", "a\\", "a*", "a\U0001f600", "a", "A", "", "c", "a%1", "\U0001f600"):
        expected = sorted(key for key in keys if key.startswith(prefix))
        expect.equal(await _keys(t, prefix=prefix), expected, f"the prefix {prefix!r} means keys that begin with it")


@documents
async def pages_follow_on_each_other(t: Trial) -> None:
    """`after` and `limit` cut a list into pages, with a prefix too (S12)."""
    keys = [f"a{number:02}" for number in range(7)]
    for key in [*keys, "b", "0"]:
        await _put(t, key)
    pages: list[str] = []
    for size in (3, 3, 1, 0):
        page = await _keys(t, prefix="a", after=pages[-1] if pages else "", limit=3)
        expect.equal(len(page), size, "a page has as many documents as there are, up to its limit")
        pages += page
    expect.equal(pages, keys, "the pages together are the whole list")
    expect.equal(await _keys(t, after="a05x"), ["a06", "b"], "`after` may be a key that does not exist")


@documents
async def expired_documents_do_not_fill_a_page(t: Trial) -> None:
    """A page has `limit` documents where so many are there, however many have expired before them (S12)."""
    for number in range(10):
        await _put(t, f"a{number}", expires_in=1.0)
    await _put(t, "b1")
    await _put(t, "b2")
    t.advance(2)
    expect.equal(await _keys(t, limit=2), ["b1", "b2"], "expired documents take no place in a page")


@documents
async def the_stores_own_clock_expires_nothing_early(t: Trial) -> None:
    """With now=None the store's own clock counts (S9)."""
    written = await t.store.put_document("ns", "k", 1, expires_in=3600.0)
    expect.that(written is not None and written.expires_at is not None, "expires_at is set by the store's own clock")
    expect.equal(await t.store.get_document("ns", "k"), written, "a document that expires in an hour is there")
