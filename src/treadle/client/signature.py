"""Whether a job call comes from the service, for functions written in Python (F4)."""

from __future__ import annotations

import hashlib
import hmac

SCHEME = "sha256="


def verify_signature(secret: str, job_id: str, body: bytes, header: str | bytes | None) -> bool:
    """Whether `header` (`x-treadle-signature`) is the service's signature of this job call.

    `secret` is the function's, `job_id` the last segment of the path and `body` the bytes as they came: JSON that was read
    and written anew may differ. Takes the same time wherever a wrong signature differs. A missing header (None) is False, and
    one in bytes, as ASGI has them, is good too.
    """
    if header is None:
        return False
    signed = hmac.new(secret.encode(), f"{job_id}.".encode(errors="surrogateescape") + body, hashlib.sha256).hexdigest()
    # As bytes: text that is not ASCII makes compare_digest raise, and the header is whatever somebody sent.
    given = header if isinstance(header, bytes) else header.encode(errors="surrogateescape")
    return hmac.compare_digest(f"{SCHEME}{signed}".encode(), given)
