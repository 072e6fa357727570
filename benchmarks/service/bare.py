"""What the service stands on, without it: a Starlette application on uvicorn that answers, and stores nothing."""

from __future__ import annotations

import socket
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def answer(request: Request) -> JSONResponse:
    """Read the body, and answer something as long as a job."""
    body = await request.json()
    return JSONResponse({"data": {"payload": body["payload"], "rest": "x" * 300}, "meta": None}, status_code=201)


class Server(uvicorn.Server):
    """Prints its port once it listens."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)


def main() -> None:
    """Serve on a free port."""
    app = Starlette(routes=[Route("/v1/functions/{name}/jobs", answer, methods=["POST"])])
    Server(uvicorn.Config(app, port=0, http="httptools", loop="asyncio", log_level="error", access_log=False)).run()


if __name__ == "__main__":
    sys.exit(main())
