"""The key ring of a process: who sends the keys and tokens that requests carry (F8)."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import NoReturn, TypeAlias

from treadle.core.store import Document, Documents
from treadle.engine.clock import EngineClock
from treadle.functions.documents import every_document
from treadle.functions.identity import Identity, KeyRole, Unauthorized
from treadle.functions.keys import (
    NAMESPACE,
    PREFIX,
    RANDOM,
    ROLES,
    SESSION,
    SIGNING,
    digest,
    kept_digest,
    kept_secret,
)
from treadle.functions.overrides import Overrides
from treadle.functions.reading import Reading
from treadle.functions.session_key import SessionKey
from treadle.functions.tokens import MAX_TOKEN, WrongSignature, user_of

_logger = logging.getLogger("treadle")
_IDENTITIES: dict[KeyRole, Identity] = {role: Identity(role) for role in ROLES}
# What a read may find. Another text can become known by no read, and costs none.
_STORED = re.compile(rf"{PREFIX}({'|'.join(ROLES)}|session)_[\w-]{{{RANDOM}}}\Z", re.ASCII)


_Holders: TypeAlias = tuple[tuple[bytes, Identity], ...]


@dataclass(frozen=True, slots=True)
class _Known:
    keys: _Holders
    secret: str | None = field(repr=False)


class KeyRing:
    """Tells callers apart, from one event loop. The stored keys are read about once a second, and only while requests come.

    An unknown key that may be a new one waits for a read that begins after its arrival, of which there are at most four a
    second. While the store is away, the keys last read are accepted for a minute.
    """

    def __init__(
        self,
        store: Documents,
        overrides: Overrides | None = None,
        clock: EngineClock | None = None,
        logger: logging.Logger = _logger,
    ) -> None:
        self._store = store
        self._overrides = overrides or Overrides()
        self._clock = clock or EngineClock()
        self._logger = logger
        self._session: SessionKey | None = None
        self._fixed = self._given()
        self._reading: Reading[_Known] = Reading("the keys", self._read, self._clock, logger)

    async def identify(self, apikey: str | None, authorization: str | None) -> Identity:
        """Who sends these headers. Both may be given, and then both must hold; the bearer says who is calling.

        Other schemes than `Bearer` are left alone. Raises `Unauthorized`, and `StoreUnavailable` where no stored key is known
        yet, or an unknown one cannot be looked up.
        """
        bearer = None if authorization is None else _bearer(authorization)
        caller = None
        if apikey:
            caller = await self._of_key(apikey) or _refuse("the header apikey has no key that this service knows")
        if bearer is not None:
            return await self._of_bearer(bearer)
        return caller or _refuse("a key is wanted, in the header apikey or as Authorization: Bearer")

    async def open_session(self) -> str:
        """Make a service-role key for this process's functions, accepted by every service on the store until `close`."""
        if self._session is None:
            session = SessionKey(self._store, self._clock, self._logger)
            await session.run_once()
            session.start()
            self._session = session
            self._fixed = self._given()  # at once, and also while the store is away
        return self._session.key

    async def close(self) -> None:
        """Take the session's key back; safe twice."""
        session, self._session = self._session, None
        self._fixed = self._given()
        if session is not None:
            await session.stop()

    async def _of_key(self, key: str) -> Identity | None:
        if len(key) > MAX_TOKEN or not key.isascii():
            return None
        presented = digest(key)
        found = _match(presented, self._fixed)  # which need no store
        if found is None:
            found = _match(presented, (self._reading.fresh() or await self._reading.value()).keys)
        if found is None and _STORED.match(key):
            found = _match(presented, (await self._reading.newer()).keys)
        return found

    async def _of_bearer(self, token: str) -> Identity:
        found = await self._of_key(token)  # one's own may have dots
        if found is not None:
            return found
        if token.count(".") != 2 or len(token) > MAX_TOKEN or not token.isascii():
            _refuse("the bearer has no key and no token that this service knows")
        known = self._reading.fresh() or await self._reading.value()
        try:
            return self._user(known, token)
        except WrongSignature:
            if self._overrides.signing is not None:
                raise
        return self._user(await self._reading.newer(), token)

    def _user(self, known: _Known, token: str) -> Identity:
        if known.secret is None:
            raise WrongSignature("this service has no signing secret, so that it knows no users")
        return user_of(known.secret, token, self._clock.now())

    def _given(self) -> _Holders:
        """What is accepted whatever the store says."""
        given = [(digest(key), _IDENTITIES[role]) for role in ROLES if (key := self._overrides.get(role)) is not None]
        if self._session is not None:
            given.append((digest(self._session.key), _IDENTITIES["service_role"]))
        return tuple(given)

    async def _read(self) -> _Known:
        documents = await every_document(self._store, NAMESPACE, self._clock)
        kept = [(found, identity) for one in documents if (found := kept_digest(one)) and (identity := self._holder(one))]
        secret = self._overrides.signing
        for document in documents:
            if secret is None and document.key == SIGNING:
                secret = kept_secret(document)
        return _Known(tuple(kept), secret)

    def _holder(self, document: Document) -> Identity | None:
        if document.key.startswith(SESSION):
            return _IDENTITIES["service_role"]
        for role in ROLES:
            if document.key == role and role not in self._overrides:
                return _IDENTITIES[role]
        return None


def _match(presented: bytes, holders: _Holders) -> Identity | None:
    """Who has the key: compared with every one in the same time, whichever it is (F8)."""
    found = None
    for kept, identity in holders:
        if compare_digest(presented, kept):
            found = identity
    return found


def _bearer(authorization: str) -> str | None:
    """What the header carries; None where it is of another scheme."""
    scheme, _, rest = authorization.strip(" \t").partition(" ")
    return rest.strip(" \t") if scheme.lower() == "bearer" else None


def _refuse(why: str) -> NoReturn:
    raise Unauthorized(why)
