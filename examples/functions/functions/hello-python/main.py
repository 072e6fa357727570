"""A function in Python: checks that a job call is genuine, and keeps its payload once, under the job's id."""

import asyncio
import hashlib
import hmac
import os
import re
import secrets
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

DATA = Path(os.environ.get("EXAMPLE_DATA", "data"))
SECRET = os.environ["TREADLE_FUNCTION_SECRET"].encode()
JOB = re.compile(r"/jobs/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z", re.ASCII)


async def handle(request: Request) -> Response | str:
    if request.method != "JOB":
        return "Hello from Python\n"
    match = JOB.match(request.url.path)
    if match is None:
        return JSONResponse({"error": "a job is called at /jobs/ID"}, 404)
    job, body = match[1], await request.body()
    if not genuine(job, body, request.headers.get("x-treadle-signature", "")):
        return JSONResponse({"error": "the signature is wrong"}, 401)
    return JSONResponse({"job": job, "first": await asyncio.to_thread(keep, job, body)})


def genuine(job: str, body: bytes, signature: str) -> bool:
    """Whether the service signed this call: only it and this function know the secret."""
    right = "sha256=" + hmac.new(SECRET, job.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(right.encode(), signature.encode())


def keep(job: str, body: bytes) -> bool:
    """Keep the payload unless this job has done so: True the first time.

    A job may be called twice, since an answer can get lost. The link is made whole or not at all, and only once: a crash of
    this program before it leaves nothing done, and after it the job is done.
    """
    DATA.mkdir(parents=True, exist_ok=True)
    draft = DATA / f".{secrets.token_hex(8)}"
    with draft.open("xb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    try:
        (DATA / f"{job}.json").hardlink_to(draft)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True
