"""The same small application three times, for the tests of `tasks.install` under a real server."""

import asyncio
import os
from contextlib import asynccontextmanager
from pathlib import Path

from treadle import Tasks

tasks = Tasks(os.environ["STORE"], autostart=os.environ["AUTOSTART"] == "1", grace=10)
log = os.environ["LOG"]


def note(line: str) -> None:
    with Path(log).open("a") as file:
        file.write(line + "\n")


@tasks.handler("job")
async def job(payload: str) -> None:
    note(f"start {payload}")
    while not Path(os.environ["GO"]).exists():
        await asyncio.sleep(0.005)
    note(f"end {payload}")


@asynccontextmanager
async def lifespan(app):
    note("the app's own start")
    yield {"own": "state"}
    note("the app's own end")


def starlette():
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def enqueue(request):
        assert request.state.own == "state"
        return PlainTextResponse((await tasks.enqueue("job", request.query_params["what"])).id)

    app = Starlette(routes=[Route("/enqueue", enqueue)], lifespan=lifespan)
    tasks.install(app)
    return app


def fastapi():
    from fastapi import FastAPI
    from fastapi.responses import PlainTextResponse

    app = FastAPI(lifespan=lifespan)

    @app.get("/enqueue", response_class=PlainTextResponse)
    async def enqueue(what: str) -> str:
        return (await tasks.enqueue("job", what)).id

    tasks.install(app)
    return app


def litestar():
    from litestar import Litestar, MediaType, get

    @get("/enqueue", media_type=MediaType.TEXT)
    async def enqueue(what: str) -> str:
        return (await tasks.enqueue("job", what)).id

    @asynccontextmanager
    async def own(app):
        note("the app's own start")
        yield
        note("the app's own end")

    app = Litestar([enqueue], lifespan=[own])
    tasks.install(app)
    return app
