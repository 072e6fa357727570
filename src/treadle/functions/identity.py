"""Who is calling the service, and the error for those who cannot say (F8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from treadle.core.errors import TreadleError

KeyRole = Literal["service_role", "anon", "admin"]
UserRole = Literal["user", "admin"]


class Unauthorized(TreadleError):
    """No key or token was given, or one that this service does not accept: a 401 (F8)."""

    code = "unauthorized"


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller. `role` is that of the key, or `user` for a signed-in user, who alone has `user_id` and `user_role`.

    `user_role` is the token's claim. A user with the claim `admin` is still a user: only the admin key opens the console.
    """

    role: KeyRole | Literal["user"]
    user_id: str | None = None
    user_role: UserRole | None = None
