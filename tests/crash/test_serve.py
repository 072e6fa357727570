"""`treadle serve` as real processes: stopped, killed, several at once, and with its store away (F, E24, S10)."""

import random
import shutil
import signal
import subprocess
import threading
from collections import Counter
from pathlib import Path

import psutil
import pytest
from serving import DEADLINE, Load, Services, repeated, services, until
from tests.servers import postgres, valkey

from treadle.core.job import State

pytestmark = pytest.mark.timeout(240)
moment = threading.Event()
SHORT = {"JOB_LEASE_SECS": "2", "JOB_TIMEOUT_SECS": "1", "JOB_RETRY_DELAY_SECS": "0.1"}


def place(kind: str, folder: Path) -> str:
    """The URL of an empty store of that kind; its tables are made."""
    match kind:
        case "sqlite":
            return f"sqlite:{folder}/jobs.db"
        case "postgres":
            server = postgres.shared_server()
            return server.url_of(server.fresh_database())
        case _:
            server = valkey.shared()
            return f"{server.url}?prefix={server.fresh_prefix()}"


@pytest.fixture
def on_sqlite(tmp_path):
    with services(place("sqlite", tmp_path), tmp_path) as one:
        yield one


@pytest.fixture
def shared(request, tmp_path):
    """Services on the store that the test names as this fixture's parameter."""
    with services(place(request.param, tmp_path), tmp_path) as one:
        if request.param == "postgres":
            one.treadle("migrate")
        yield one


# -- a graceful stop


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl+C"])
def test_a_stop_lets_calls_end_answers_until_then_and_claims_nothing_more(on_sqlite, number):
    """A function that enqueues at the end of its call can do so: the API is there as long as calls run."""
    served = on_sqlite.start("--concurrency", "1")
    on_sqlite.register("first")
    go, late = threading.Event(), []

    def enqueues(call):
        assert go.wait(DEADLINE)
        late.append(served.enqueue("second"))
        return 200

    on_sqlite.functions.answering["first"] = enqueues
    id = served.enqueue("first")
    on_sqlite.functions.called("first")
    waiting = served.enqueue("first")
    assert served.status("/readyz") == 200
    served.signal(number)
    assert served.wait_for("stopping within 30 s; a second signal stops at once")["level"] == "info"
    until(lambda: served.status("/readyz") == 503, "it is not ready")
    assert served.status("/healthz") == 200
    assert served.job(id)["status"] == "running"
    go.set()
    assert served.ended() == 0
    jobs = on_sqlite.stored()
    assert (jobs[id].state, jobs[id].attempts, jobs[id].note) == (State.DONE, 1, "200")
    assert [(jobs[one].state, jobs[one].attempts) for one in (waiting, *late)] == [(State.PENDING, 0)] * 2
    assert len(on_sqlite.functions.calls) == 1 and len(late) == 1
    assert served.lines()[-1]["message"] == "stopped"


@pytest.mark.parametrize("shared", ["postgres", "valkey"], indirect=True)
def test_calls_that_outlast_the_grace_are_given_back_and_made_again_by_the_next_process(shared):
    served = shared.start("--grace", "0s")
    shared.register("slow")
    held = shared.functions.hold("slow")
    id = served.enqueue("slow")
    shared.functions.called("slow")
    served.stop()
    job = shared.stored()[id]
    assert (job.state, job.attempts, job.interruptions, job.last_error) == (State.PENDING, 0, 1, None)
    held.set()
    done = shared.start().until(id, "completed")
    assert done["attempts"] == 1
    assert [call.id for call in shared.functions.calls] == [id, id]


def test_a_second_signal_stops_at_once_with_1_and_the_next_process_goes_on(on_sqlite):
    served = on_sqlite.start("--grace", "500s")
    on_sqlite.register("slow")
    held = on_sqlite.functions.hold("slow")
    id = served.enqueue("slow")
    on_sqlite.functions.called("slow")
    served.signal(signal.SIGINT)
    served.wait_for("stopping within 500 s")
    served.signal(signal.SIGTERM)
    assert served.ended(10) == 1
    assert [line["message"] for line in served.lines()][-2:] == ["stopping at once", "stopped at once"]
    job = on_sqlite.stored()[id]
    assert (job.state, job.attempts, job.interruptions) == (State.PENDING, 0, 1)
    held.set()
    assert on_sqlite.start().until(id, "completed")["attempts"] == 1


def test_from_the_third_interruption_on_the_attempt_counts(on_sqlite):
    """So that a function which a service never survives does not go round for ever (E24)."""
    on_sqlite.register("slow")
    held = on_sqlite.functions.hold("slow")
    id, counted = "", []
    for number in range(1, 4):
        served = on_sqlite.start("--grace", "0s")
        id = id or served.enqueue("slow", max_attempts=2)
        on_sqlite.functions.called("slow", number)
        served.stop()
        job = on_sqlite.stored()[id]
        counted.append((job.state, job.attempts, job.interruptions))
    assert counted == [(State.PENDING, 0, 1), (State.PENDING, 0, 2), (State.PENDING, 1, 2)]
    assert on_sqlite.stored()[id].last_error.startswith("interrupted 3 times")
    held.set()
    assert on_sqlite.start().until(id, "completed")["attempts"] == 2


# -- functions of the folder

HELLO = """
async def app(scope, receive, send):
    assert scope["type"] in ("http", "lifespan")
    if scope["type"] == "lifespan":
        return
    await send({"type": "http.response.start", "status": 201, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})
"""
CHAIN = """
import asyncio, os, sys
from treadle.client import create_client

async def handle(request):
    payload = await request.json()
    print("asked for", payload["left"])
    print("and said so", file=sys.stderr)
    if payload["left"]:
        with create_client() as client:
            await asyncio.to_thread(client.functions.enqueue_job, "chain", {"left": payload["left"] - 1})
    return {"url": os.environ["TREADLE_URL"]}
"""
CRASHES = """
import os
from pathlib import Path

async def handle(request):
    first = Path("crashed")
    if not first.exists():
        first.touch()
        os._exit(3)
    return "ok"
"""
PLAIN = """
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_JOB(self):
        self.send_response(202)
        self.send_header("content-length", "0")
        self.end_headers()

HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""
PIDS = """
import os

async def handle(request):
    return str(os.getpid())
"""


def test_functions_of_the_folder_run_enqueue_crash_and_are_heard(on_sqlite):
    on_sqlite.program("hello", HELLO)
    on_sqlite.program("chain", CHAIN)
    on_sqlite.program("crashes", CRASHES)
    plain = on_sqlite.program("plain", "", 'command = ["python3", "server.py"]\n')
    (plain / "server.py").write_text(PLAIN)
    served = on_sqlite.start(JOB_RETRY_DELAY_SECS="0.1")
    ids = {
        name: served.enqueue(name, payload)
        for name, payload in {"hello": None, "chain": {"left": 2}, "crashes": None, "plain": 1}.items()
    }
    assert served.until(ids["hello"], "completed")["response_status"] == 201
    assert served.until(ids["plain"], "completed")["response_status"] == 202
    crashed = served.until(ids["crashes"], "completed")
    assert crashed["attempts"] == 2
    failed = served.wait_for(f"crashes {ids['crashes']} failed at attempt 1 of 3, again in 0.1 s: ")
    assert failed["message"].endswith("Function 'crashes' cannot be reached: it closed the connection without an answer")
    assert (failed["level"], failed["function"], failed["job_id"]) == ("warning", "crashes", ids["crashes"])
    assert failed["attempt"] == 1

    def chained():
        jobs = [job for job in served.ask("GET", "/v1/functions/jobs") if job["function"] == "chain"]
        return [job["payload"]["left"] for job in jobs if job["status"] == "completed"] == [0, 1, 2]

    until(chained, "the function has enqueued its followers", told=served.logged)
    for text in ("asked for 2", "asked for 0", "and said so"):
        line = served.wait_for(text)
        assert (line["logger"], line["level"], line["message"]) == ("treadle.functions.chain", "info", text)
    assert served.status("/healthz") == 200
    served.stop()
    assert served.lines()  # every line of it is JSON


# -- as PID 1 of a container

LEAVES = """
import os, subprocess

async def handle(request):
    subprocess.Popen(["sleep", "0.05"], start_new_session=True)  # a daemon, left to process 1 when this one ends
    subprocess.Popen(["sleep", "600"])
    os._exit(0)
"""


def is_zombie(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it was reaped just now
        return False


def test_as_pid_1_it_stops_at_a_signal_and_leaves_no_zombies(on_sqlite):
    unshare = shutil.which("unshare")
    prefix = [unshare or "", "--pid", "--fork", "--mount-proc", "--kill-child"]
    probe = subprocess.run([*prefix, "true"], capture_output=True, check=False, timeout=DEADLINE) if unshare else None
    if probe is None or probe.returncode:
        pytest.skip("a PID namespace cannot be made here" + (f": {probe.stderr.decode().strip()}" if probe else ": no unshare"))
    on_sqlite.program("hello", HELLO)
    on_sqlite.program("leaves", LEAVES)
    served = on_sqlite.begin(prefix=prefix, JOB_RETRY_DELAY_SECS="0.1").wait_until_started()
    (inner,) = psutil.Process(served.pid).children()
    assert Path(f"/proc/{inner.pid}/status").read_text().split("NSpid:")[1].splitlines()[0].split()[-1] == "1"
    served.until(served.enqueue("hello"), "completed")
    served.until(served.enqueue("leaves", max_attempts=2), "dead")

    def zombies():
        return [child for child in inner.children(recursive=True) if is_zombie(child)]

    until(lambda: not zombies(), "no zombies are left", told=lambda: str(zombies()))
    inner.send_signal(signal.SIGTERM)
    assert served.ended() == 0
    assert served.lines()[-1]["message"] == "stopped"


# -- kill -9


def pid_of(served):
    """The process of the function `pids` that this service runs."""

    def answered():
        status, text, _ = served.answer("GET", "/v1/functions/pids/invoke/")
        return int(text) if status == 200 else None  # its process takes more than the second that a call has here

    return until(answered, "the function runs", told=served.logged)


def brief(call):
    """Take some milliseconds, so that a kill comes in the middle of calls."""
    moment.wait(0.01)
    return 200


def kill_and_account(one: Services, rounds: int, seconds: float) -> None:
    """Kill the service under load, again and again; then hold the books."""
    chance = random.Random(11)
    one.register("real")
    one.functions.answering["real"] = brief
    one.program("pids", PIDS)
    accepted: list[str] = []
    recorded: list[tuple[int, set[str]]] = []
    gone = 0
    for number in range(rounds):
        served = one.start("--concurrency", "20", **SHORT)
        load = Load(served, "real", max_attempts=100)
        enough = len(one.functions.calls) + chance.randint(20, 120)
        until(lambda enough=enough: len(one.functions.calls) >= enough, "calls are made", told=one.logs)
        child = psutil.Process(pid_of(served)) if number % 7 == 0 else None
        served.kill9()
        accepted += load.end()
        recorded.append((len(one.functions.calls), {id for id, job in one.stored().items() if job.state is State.DONE}))
        if child is not None:
            until(lambda child=child: not child.is_running(), "the functions of the killed service are gone")
            gone += 1
    last = one.start("--concurrency", "20", **SHORT)
    until(lambda: not pending(last), "every job is done", seconds, one.logs)
    assert psutil.pid_exists(pid_of(last)) and gone
    jobs, calls = one.stored(), list(one.functions.calls)
    called = Counter(call.id for call in calls)
    told = (
        f"{one.store.partition(':')[0]}: {rounds} kills, {len(accepted)} accepted, {len(jobs)} stored, "
        f"{sum(job.state is State.DONE for job in jobs.values())} completed, {repeated(calls)} calls repeated"
    )
    print(told)
    assert len(accepted) >= rounds and set(accepted) <= set(jobs), told
    assert {job.state for job in jobs.values()} == {State.DONE}, told
    assert [id for id in jobs if not called[id]] == [], told
    assert [id for id, job in jobs.items() if called[id] > job.attempts + job.interruptions] == [], told
    for count, done in recorded:
        assert [call.id for call in calls[count:] if call.id in done] == [], told
    last.stop()
    assert "Traceback" not in one.logs()


def pending(served):
    """Some of the jobs that are not over."""
    return [
        job for status in ("pending", "running") for job in served.ask("GET", f"/v1/functions/jobs?limit=1&status={status}")
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "rounds"), [("sqlite", 20), ("postgres", 2), ("valkey", 2)], indirect=["shared"])
def test_kill_9_under_load_loses_no_job_and_repeats_none_whose_end_was_recorded(shared, rounds):
    kill_and_account(shared, rounds, 60)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("shared", "rounds"), [("sqlite", 200), ("postgres", 60), ("valkey", 60)], indirect=["shared"])
def test_two_hundred_kills(shared, rounds):
    kill_and_account(shared, rounds, 300)


# -- several processes


@pytest.mark.parametrize("shared", ["sqlite", "postgres"], indirect=True)
def test_two_apis_and_two_workers_run_each_job_once_and_fire_each_cron_once(shared):
    begun = [shared.begin("--role", role, "--log-level", "debug") for role in ("api", "worker", "api", "worker")]
    first, one, second, other = [served.wait_until_started() for served in begun]
    made = [served.started["keys"] for served in begun]
    assert sorted(role for keys in made for role in keys) == ["admin", "anon", "service_role"], "each by exactly one"
    assert one.started["url"] is other.started["url"] is None
    shared.register("real")
    shared.register("ticked")
    for number in range(5):
        entry = {"name": f"each-second-{number}", "schedule": "* * * * * *", "function": "ticked", "payload": number}
        (first, second)[number % 2].ask("POST", "/v1/functions/cron", entry, 201)
    ids = [(first, second)[number % 2].enqueue("real", number) for number in range(100)]
    for number, id in enumerate(ids):
        (second, first)[number % 2].until(id, "completed")
    until(lambda: all(count >= 3 for count in ticks(shared).values()) and len(ticks(shared)) == 5, "cron entries fire")
    for served in begun:
        served.stop()
    assert repeated(shared.functions.of("real")) == 0 and len(shared.functions.of("real")) == 100
    fired = [job for job in shared.stored().values() if job.schedule is not None]
    moments = Counter((job.schedule, int(job.run_at.timestamp())) for job in fired)
    assert set(moments.values()) == {1}, "one job for each second"
    assert repeated(shared.functions.of("ticked")) == 0
    made = [sum("was answered with 200" in line["message"] for line in served.lines()) for served in begun]
    print(f"{shared.store.partition(':')[0]}: {len(fired)} firings; calls made by the four: {made}")
    assert made[0] == made[2] == 0 and sum(made) == len(shared.functions.calls)
    assert {job.attempts for job in shared.stored().values() if job.state is State.DONE} == {1}


def ticks(one: Services):
    return Counter(call.body for call in one.functions.of("ticked"))


# -- the store goes away


@pytest.mark.slow
def test_while_postgres_is_away_the_api_says_so_and_all_goes_on_when_it_is_back(tmp_path):
    with postgres.own_server() as server, services(server.url_of(server.fresh_database()), tmp_path) as one:
        one.treadle("migrate")
        one.register("real")
        one.register("slow")
        held = one.functions.hold("slow")
        served = one.start()
        before, slow = served.enqueue("real"), served.enqueue("slow")
        served.until(before, "completed")
        one.functions.called("slow")
        server.stop()
        until(lambda: served.status("/readyz") == 503, "it is not ready")
        status, error, headers = served.answer("POST", "/v1/functions/real/jobs", {})
        assert (status, error["code"]) == (503, "store_unavailable") and int(headers["retry-after"]) >= 1
        assert served.status("/healthz") == 200
        assert served.process.poll() is None
        held.set()  # it is answered while nobody can write that down
        server.start()
        until(lambda: served.status("/readyz") == 200, "it is ready again")
        after = served.enqueue("real")
        assert [served.until(id, "completed")["attempts"] for id in (after, slow)] == [1, 1]
        served.stop()
        assert "Traceback" not in served.logged() and not [line for line in served.lines() if "exception" in line]
        assert [call.id for call in one.functions.of("real")] == [before, after]
        assert [call.id for call in one.functions.of("slow")] == [slow]
