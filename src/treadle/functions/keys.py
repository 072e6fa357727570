"""The keys of the service, and the secret that users' tokens are signed with: made once for a store, kept in it (F8).

A key is 256 random bits, which nobody can guess, so that its plain SHA-256 tells nothing about it: the slow, salted hashes
that passwords need would only slow down each request. The signing secret is kept in clear, because HMAC computes with it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Literal, get_args

from treadle.core.errors import Conflict, InvalidArgument, StoreError
from treadle.core.payload import JSON
from treadle.core.store import Document, Documents
from treadle.engine.clock import EngineClock
from treadle.functions.documents import every_document
from treadle.functions.identity import KeyRole
from treadle.functions.overrides import Overrides

NAMESPACE = "functions/keys"
SESSION = "session:"  # how the keys begin under which running services keep keys for their functions
SIGNING: Literal["signing"] = "signing"
ROLES: tuple[KeyRole, ...] = get_args(KeyRole)
NAMES: tuple[str, ...] = (*ROLES, SIGNING)
PREFIX = "treadle_"
RANDOM = 43  # characters of a key behind its prefix: 256 bits


def new_key(kind: str) -> str:
    """A key that no other is equal to, and that says what it is for."""
    return f"{PREFIX}{kind}_{secrets.token_urlsafe(32)}"


def digest(key: str) -> bytes:
    """What is kept of a key."""
    return hashlib.sha256(key.encode()).digest()


def as_stored(name: str, key: str) -> JSON:
    """The value of the document that keeps the key."""
    return {"secret": key} if name == SIGNING else {"sha256": digest(key).hex()}


def kept_digest(document: Document) -> bytes | None:
    """The hash that a document keeps; None where it is not one of ours."""
    match document.value:
        case {"sha256": str(text)} if len(text) == 64:
            try:
                return bytes.fromhex(text)
            except ValueError:
                return None
        case _:
            return None


def kept_secret(document: Document) -> str | None:
    """The signing secret that a document keeps; None where it is not one of ours."""
    match document.value:
        case {"secret": str(text)} if text:
            return text
        case _:
            return None


class Keys:
    """Makes and replaces what is kept. `overrides` is what this process takes instead of it."""

    def __init__(self, store: Documents, overrides: Overrides, clock: EngineClock | None = None) -> None:
        self._store = store
        self._overrides = overrides
        self._clock = clock or EngineClock()
        self._candidates = {name: new_key(name) for name in NAMES}
        self.made: dict[KeyRole, str] = {}  # so far, also where `make_absent` failed halfway: nobody else can ever show them

    async def make_absent(self) -> dict[KeyRole, str]:
        """Make what is missing and not overridden; answers the keys that this very call made, to be shown once.

        Of many services that start together one makes each. May be called again after a `StoreUnavailable`: a key that was
        stored while its answer was lost is answered then. Raises `InvalidArgument` where two keys are equal.
        """
        for role in ROLES:
            if role not in self._overrides and await self._make(role):
                self.made[role] = self._candidates[role]
        if SIGNING not in self._overrides:
            await self._make(SIGNING)
        self._check(await every_document(self._store, NAMESPACE, self._clock))
        return self.made

    async def rotate(self, name: str) -> str:
        """Replace a key, or the signing secret; answers the new one. The old one is refused everywhere within about a second.

        Raises `Conflict` where the environment of this process has the key, or somebody else replaces it just now.
        """
        if name not in NAMES:
            raise InvalidArgument(f"{name[:40]!r} is no key; they are {', '.join(NAMES)}")
        if name in self._overrides:
            raise Conflict(f"{self._overrides.variable(name)} is set, and holds instead of the stored key: change it there")
        document = await self._store.get_document(NAMESPACE, name, now=self._clock.for_store())
        key = new_key(name)
        if not await self._put(name, key, 0 if document is None else document.revision):
            raise Conflict(f"the key {name} is being replaced by somebody else just now: use that one, or try again")
        return key

    async def signing_secret(self) -> str:
        """What users' tokens are signed with; made if there is none yet."""
        if self._overrides.signing is not None:
            return self._overrides.signing
        await self._make(SIGNING)
        document = await self._store.get_document(NAMESPACE, SIGNING, now=self._clock.for_store())
        secret = None if document is None else kept_secret(document)
        if secret is None:
            raise _unreadable(SIGNING)
        return secret

    async def _make(self, name: str) -> bool:
        """Put the candidate where there is none; whether it is what is stored."""
        document = await self._store.get_document(NAMESPACE, name, now=self._clock.for_store())
        if document is None:
            return await self._put(name, self._candidates[name], 0)
        return document.value == as_stored(name, self._candidates[name])

    async def _put(self, name: str, key: str, expect: int) -> bool:
        value = as_stored(name, key)
        return await self._store.put_document(NAMESPACE, name, value, expect=expect, now=self._clock.for_store()) is not None

    def _check(self, documents: Sequence[Document]) -> None:
        """Refuse a document that is no key, and equal keys: whoever holds one of them would hold the other."""
        kept = {document.key: _fingerprint(document) for document in documents}
        holders: dict[bytes, str] = {}
        for name in NAMES:
            given = self._overrides.get(name)
            found = kept.get(name) if given is None else digest(given)
            if found is None:
                raise _unreadable(name)
            other = holders.setdefault(found, name)
            if other != name:
                raise InvalidArgument(f"the keys {other} and {name} are equal; each must be a secret of its own")


def _fingerprint(document: Document) -> bytes | None:
    """What equal keys and secrets have in common."""
    secret = kept_secret(document)
    return kept_digest(document) if secret is None else digest(secret)


def _unreadable(name: str) -> StoreError:
    return StoreError(f"what the store has as the key {name} is none: run `treadle config rotate-key {name}`")
