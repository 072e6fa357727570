"""The signature of a job call, by which a function knows that its service is calling (F4)."""

from __future__ import annotations

import hmac

HEADER = "x-treadle-signature"


def signature(secret: str, job_id: str, body: bytes) -> str:
    """`sha256=` and the HMAC-SHA256, in hex, over the job's id, a dot and the body, keyed with the function's secret."""
    return "sha256=" + hmac.digest(secret.encode(), job_id.encode() + b"." + body, "sha256").hex()
