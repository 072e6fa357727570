"""Keys that the environment gives instead of the stored ones, for this process alone (F8)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from treadle.core.errors import InvalidArgument

VARIABLES = {
    "service_role": "TREADLE_SERVICE_ROLE_KEY",
    "anon": "TREADLE_ANON_KEY",
    "admin": "TREADLE_ADMIN_KEY",
    "signing": "TREADLE_SIGNING_SECRET",
}
SHORT_KEY = 16
SHORT_SECRET = 32
MAX_KEY = 4096

_logger = logging.getLogger("treadle")


@dataclass(frozen=True, slots=True)
class Overrides:
    """The keys given, None for those that the store keeps."""

    service_role: str | None = field(default=None, repr=False)
    anon: str | None = field(default=None, repr=False)
    admin: str | None = field(default=None, repr=False)
    signing: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, environment: Mapping[str, str], logger: logging.Logger = _logger) -> Overrides:
        """What the environment gives; an empty variable counts as not set. Warns of what is short enough to be guessed.

        Raises `InvalidArgument` for a key that no header can carry, for equal ones, and for a secret that is no secret.
        """
        given = {name: text for name, variable in VARIABLES.items() if (text := environment.get(variable))}
        holders: dict[str, str] = {}
        for name, text in given.items():
            variable = VARIABLES[name]
            _check(name, variable, text)
            other = holders.setdefault(text, variable)
            if other != variable:
                raise InvalidArgument(f"{other} and {variable} are equal; each must be a secret of its own")
            least = SHORT_SECRET if name == "signing" else SHORT_KEY
            if len(text) < least:
                logger.warning("%s has %d characters, which can be guessed: give it at least %d", variable, len(text), least)
        return cls(**given)

    def get(self, name: str) -> str | None:
        """The key of that name, if it is given."""
        found: str | None = getattr(self, name) if name in VARIABLES else None
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    @staticmethod
    def variable(name: str) -> str:
        """Where the key of that name is given."""
        return VARIABLES[name]


def _check(name: str, variable: str, text: str) -> None:
    if len(text) > MAX_KEY:
        raise InvalidArgument(f"{variable} has {len(text):,} characters; the limit is {MAX_KEY:,}")
    if name == "signing":
        from treadle.functions.tokens import checked_secret  # needs PyJWT, which commands do without

        try:
            checked_secret(text)
        except InvalidArgument as error:
            raise InvalidArgument(f"{variable}: {error}") from None
    elif not text.isascii() or not text.isprintable() or " " in text:
        raise InvalidArgument(f"{variable} must be printable ASCII without spaces, so that an HTTP header can carry it")
