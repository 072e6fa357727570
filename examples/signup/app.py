"""A sign-up web app. A registration stores the person and a job in one transaction, and the job sends the welcome mail.

This file is the part to copy from. It knows nothing of the mail catcher (mail.py) and the story (run.py) around it, and
runs by itself too: `uvicorn app:app`, with SIGNUP_DATA and SIGNUP_SMTP_PORT in the environment.
"""

import os
import re
import smtplib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from treadle import Context, Enqueued, Exponential, InvalidArgument, Snooze, Tasks

DATABASE = Path(os.environ.get("SIGNUP_DATA", "data")) / "signup.db"
MAIL_SERVER = ("127.0.0.1", int(os.environ.get("SIGNUP_SMTP_PORT", "2525")))
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+", re.ASCII)

# A lease of 5 s lets a killed worker's jobs be taken up soon; the default of 60 s is kinder to a loaded server.
tasks = Tasks(f"sqlite:{DATABASE}", concurrency=4, lease=5, grace=2)


# -- the jobs


@tasks.handler("welcome-mail", max_attempts=3, retry=Exponential(base=0.5, cap=60))
def welcome_mail(person: dict[str, Any]) -> None:
    send(f"welcome:{person['id']}", person, "Welcome", f"Dear {person['name']},\n\nyour account is ready.\n")


@tasks.handler("newsletter")
def newsletter(payload: dict[str, Any], ctx: Context) -> None:
    issue, people = payload["issue"], readers()
    for number, reader in enumerate(people, 1):
        if send(f"newsletter:{issue}:{reader['id']}", reader, f"Newsletter {issue}", f"Dear {reader['name']}, ...\n"):
            ctx.log.info("newsletter %s: %d of %d sent", issue, number, len(people))
            if ctx.aborted.wait(1.0):  # one mail a second, unless the worker is stopping
                raise Snooze(0)  # give the job back: the next worker goes on where this one stopped


def send(key: str, person: dict[str, Any], subject: str, text: str) -> bool:
    """Send a mail, unless the log says that it was sent: a job may run twice, and people should not notice.

    A crash between the server's yes and the note in the log repeats that one mail, with the same Message-ID.
    """
    with closing(connect()) as database:
        if database.execute("select 1 from sent where key = ?", (key,)).fetchone():
            return False
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = "hello@signup.example", person["email"], subject
        message["Message-ID"] = f"<{key.replace(':', '.')}@signup.example>"
        message.set_content(text)
        with smtplib.SMTP(*MAIL_SERVER, timeout=10) as server:
            server.send_message(message)
        with database:
            database.execute("insert or ignore into sent (key) values (?)", (key,))
        return True


# -- the people


def connect() -> sqlite3.Connection:
    database = sqlite3.connect(DATABASE, timeout=10)
    database.row_factory = sqlite3.Row
    return database


def register(email: str, name: str) -> Enqueued:
    """Store the person and the job: both or neither. Registered again, the person has the same id, and the job is there."""
    with closing(connect()) as database, database:
        database.execute("insert into people (email, name) values (?, ?) on conflict (email) do nothing", (email, name))
        person = dict(database.execute("select id, email, name from people where email = ?", (email,)).fetchone())
        return welcome_mail.enqueue_sync(person, idempotency_key=f"welcome:{person['id']}", connection=database)


def readers() -> list[dict[str, Any]]:
    """The people whose welcome mail went out."""
    with closing(connect()) as database:
        query = "select id, email, name from people where 'welcome:' || id in (select key from sent) order by id"
        return [dict(row) for row in database.execute(query)]


# -- the web app


async def post_person(request: Request) -> JSONResponse:
    form = await form_of(request)
    email, name = form.get("email", "").strip(), form.get("name", "").strip()
    if not ADDRESS.fullmatch(email):
        return JSONResponse({"error": f"email must be an address such as ada@example.com, not {email[:100]!r}"}, 400)
    welcome = await run_in_threadpool(register, email, name or email.partition("@")[0])
    return JSONResponse({"job": welcome.id, "created": welcome.created}, 201 if welcome.created else 200)


async def post_newsletter(request: Request) -> JSONResponse:
    issue = (await form_of(request)).get("issue", "1")
    try:
        stored = await newsletter.enqueue({"issue": issue}, idempotency_key=f"newsletter:{issue}")
    except InvalidArgument as error:
        return JSONResponse({"error": str(error)}, 400)
    return JSONResponse({"job": stored.id, "created": stored.created}, 202)


async def form_of(request: Request) -> dict[str, str]:
    return dict(parse_qsl((await request.body()).decode(errors="replace")))


async def front_page(request: Request) -> HTMLResponse:
    return HTMLResponse(PAGE.format(jobs=await tasks.stats()))


PAGE = """<!doctype html>
<title>Sign up</title>
<h1>Sign up</h1>
<form method="post" action="/people">
  <input name="email" type="email" placeholder="ada@example.com" required>
  <input name="name" placeholder="Ada">
  <button>Register</button>
</form>
<p>Jobs: {jobs.pending} pending, {jobs.running} running, {jobs.done} done, {jobs.dead} dead.</p>
"""


@asynccontextmanager
async def tables(app: Starlette) -> AsyncIterator[None]:
    DATABASE.parent.mkdir(parents=True, exist_ok=True)
    with closing(connect()) as database:
        database.execute("create table if not exists people (id integer primary key, email text unique, name text)")
        database.execute("create table if not exists sent (key text primary key)")
    yield


app = Starlette(
    routes=[
        Route("/", front_page),
        Route("/people", post_person, methods=["POST"]),
        Route("/newsletters", post_newsletter, methods=["POST"]),
    ],
    lifespan=tables,
)
tasks.install(app)
