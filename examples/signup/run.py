"""The sign-up example: a web app whose jobs send mail, the mail server it talks to, and a story that shows what they do.

All in this one process: the web app and its worker in one thread, the mail server in another, the story in this one.
"""

import argparse
import logging
import os
import signal
import socket
import sys
import threading
from pathlib import Path

import uvicorn
from mail import MailCatcher
from story import Story, Transcript, say, step

from treadle import Job, State, Tasks, TreadleError


def main() -> None:
    options = arguments()
    database, mails = options.data / "signup.db", options.data / "mails"
    catcher = MailCatcher(mails, lambda text: say("mail", text))
    os.environ["SIGNUP_DATA"], os.environ["SIGNUP_SMTP_PORT"] = str(options.data), str(catcher.port)
    from app import app, tasks  # only now that its settings are known

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that both signals raise KeyboardInterrupt here
    log = logging.getLogger("treadle")
    log.setLevel(logging.INFO)
    log.addHandler(Transcript())
    listener = listen(options.port)
    port = listener.getsockname()[1]
    taken = f" (port {options.port} is taken)" if options.port not in (0, port) else ""
    print(f"treadle sign-up example, process {os.getpid()}\n")
    print(f"   web app      http://127.0.0.1:{port}{taken}")
    print(f"   mail server  127.0.0.1:{catcher.port}, started here; it keeps each mail as a file in {mails}")
    print(f"   jobs         {database}", flush=True)

    left: list[Job] = []
    if database.exists():
        left = tasks.sync.list(states=[State.PENDING, State.RUNNING])[::-1]
        step(f"Found {database} of an earlier run: {counts(tasks)}; {catcher.caught()} mails.")
        say("", "Its unfinished jobs are taken up:" if left else "None is unfinished.")

    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="web")
    catcher.start()
    thread.start()
    try:
        story = Story(tasks, port)
        story.go_on(left)
        story.tell()
        look_at(options.data, port, counts(tasks), catcher.caught())
        if not options.once:
            story.watch()
    except KeyboardInterrupt:
        print("\nStopping: running jobs get 2 s to finish, the rest is given back. A second time stops at once.", flush=True)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        server.should_exit = True
        thread.join()
        print(f"Stopped: {counts(tasks)}. Nothing was lost; start again to go on.", flush=True)
        tasks.sync.close()
        catcher.stop()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A sign-up web app whose jobs send mail, and a story that shows it.")
    parser.add_argument("--data", type=Path, default=Path("data"), metavar="DIR", help="where everything is kept (data)")
    parser.add_argument("--port", type=int, default=8000, help="of the web app; a free one if it is taken (8000)")
    parser.add_argument("--once", action="store_true", help="stop when the story is told")
    return parser.parse_args()


def listen(port: int) -> socket.socket:
    """A listening socket at that port of this machine, or at a free one."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return socket.create_server(("127.0.0.1", 0))


def look_at(data: Path, port: int, jobs: str, mails: int) -> None:
    treadle = os.path.relpath(Path(sys.executable).with_name("treadle"))
    step("What to look at")
    for what, where in (
        ("jobs", f"{jobs}:  {treadle} list --store sqlite:{data / 'signup.db'}"),
        ("mails", f"{mails} files in {data / 'mails'}"),
        ("register", f"curl -d email=you@example.com -d name=You http://127.0.0.1:{port}/people"),
        ("", "busy-you@example.com is put off once, gone-you@example.com is always refused"),
        ("newsletter", f"curl -d issue=2 http://127.0.0.1:{port}/newsletters"),
        ("stop", f"Ctrl+C; or with no warning at all: kill -9 {os.getpid()}"),
        ("start again", f"it goes on with the same file; without {data}, from the beginning"),
    ):
        print(f"   {what:<13}{where}", flush=True)
    print(flush=True)


def counts(tasks: Tasks) -> str:
    stats = tasks.sync.stats()
    return f"{stats.done} jobs done, {stats.pending} pending, {stats.running} running, {stats.dead} dead"


if __name__ == "__main__":
    try:
        main()
    except TreadleError as error:
        sys.exit(f"signup: {error}")
