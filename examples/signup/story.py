"""The story: people register over HTTP, and each step is told as it happens."""

import http.client
import json
import logging
import os
import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from treadle import Job, State, Tasks

STEPS = [
    (
        "Ada, Ben and Cleo register. Person and job are stored in one transaction; the job sends the mail.",
        ["ada@example.com", "ben@example.com", "cleo@example.com"],
    ),
    (
        "Dora registers while her mail server is busy. The job waits, and tries again.",
        ["busy-dora@example.com"],
    ),
    (
        "Emil registers with an address that does not exist. After three attempts the job is a dead letter.",
        ["gone-emil@example.com"],
    ),
    (
        "Fay's registration is delivered twice. Its idempotency key is the same, so there is one job, and one mail.",
        ["fay@example.com", "fay@example.com"],
    ),
]


class Story:
    def __init__(self, tasks: Tasks, port: int) -> None:
        self.tasks = tasks
        self.port = port

    def tell(self) -> None:
        """Tell the steps that no earlier run has told."""
        told = {subject(job) for job in self.tasks.sync.list()}
        for number, (title, people) in enumerate(STEPS, 1):
            if not told.issuperset(people):
                step(f"{number}. {title}")
                for job_id in dict.fromkeys([self.register(email) for email in people]):
                    self.follow(job_id)
        if "1" not in told:
            step("5. A newsletter goes to the five whose welcome arrived: one slow job, a mail a second.")
            say("", f"Kill it now if you like, and start it again; it goes on where it was:  kill -9 {os.getpid()}")
            self.follow(self.post("/newsletters", issue="1"))

    def go_on(self, left: list[Job]) -> None:
        """Tell what becomes of the jobs that an earlier run left unfinished."""
        for job in left:
            if job.state is State.RUNNING and job.lease_until is not None:
                wait = max(0.0, (job.lease_until - datetime.now(UTC)).total_seconds())
                say("job", f"{shown(job)} was running when its process ended; its lease is over in {wait:.1f} s")
            else:
                say("job", f"{shown(job)} was waiting")
        for job in left:
            self.follow(job.id, known=len(job.failures))

    def watch(self) -> None:
        """Tell of every job that is stored from now on, one after the other, until Ctrl+C."""
        seen = self.newest()
        while True:
            for job in reversed(self.tasks.sync.list(limit=100)):
                if job.id > seen:  # ids sort by creation
                    self.follow(job.id)
                    seen = job.id
            time.sleep(0.5)

    def newest(self) -> str:
        return "".join(job.id for job in self.tasks.sync.list(limit=1))

    def register(self, email: str) -> str:
        return self.post("/people", email=email, name=email.partition("@")[0].rpartition("-")[2].capitalize())

    def post(self, path: str, **form: str) -> str:
        """Send a form to the web app; answers the id of the job that it stored, or found stored."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("POST", path, urlencode(form))
        response = connection.getresponse()
        answer: dict[str, Any] = json.load(response)
        connection.close()
        stored = "is stored" if answer["created"] else "was there already (created=False)"
        say("web", f"POST {path} {next(iter(form.values()))}: {response.status}, the job {stored}")
        return str(answer["job"])

    def follow(self, job_id: str, known: int = 0) -> None:
        """Wait until the job is done or dead, and say how its attempts ended; the first `known` failures are old."""
        while True:
            job = self.tasks.sync.get(job_id)
            assert job is not None
            for failure in job.failures[known:]:
                say("job", f"{shown(job)}: attempt {failure.attempt} failed: {failure.error}")
            if len(job.failures) > known and job.state is State.PENDING:
                wait = (job.run_at - job.failures[-1].ended_at).total_seconds()
                say("job", f"{shown(job)}: the next attempt comes {f'{wait:.1f} s later' if wait else 'now'}")
            known = len(job.failures)
            if job.state is State.DONE:
                return say("job", f"{shown(job)}: done at attempt {job.attempts}")
            if job.state is State.DEAD:
                return say("job", f"{shown(job)}: dead after {job.attempts} attempts; it stays, with its last error")
            time.sleep(0.05)


def subject(job: Job) -> str:
    """Whom or what the job is about."""
    payload = job.payload
    assert isinstance(payload, dict)
    return str(payload.get("email") or payload.get("issue"))


def shown(job: Job) -> str:
    return f"{job.name} {subject(job)}"


class Transcript(logging.Handler):
    """What treadle and the handlers log, as lines of the story."""

    def emit(self, record: logging.LogRecord) -> None:
        say("job", record.getMessage())


def step(text: str) -> None:
    print(f"\n{text}", flush=True)


def say(source: str, text: str) -> None:
    print(f"   {source:<5}{text}", flush=True)
