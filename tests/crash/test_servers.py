"""What happens to jobs when the server under the workers dies, goes away, or when workers come and go (S10, E24, E26)."""

import random
import signal
import threading

import psutil
import pytest

pytestmark = [pytest.mark.timeout(180), pytest.mark.slow]
moment = threading.Event()


def enqueue(fleet, count: int, payload: int = 3) -> list[str]:
    jobs = [{"name": "fails" if number % 25 == 0 else "quick", "payload": payload} for number in range(count)]
    return [one.id for one in fleet.tasks.sync.enqueue_many(jobs)]


def test_kill_9_of_the_server_in_the_middle_of_the_load(served):
    """Three times: nothing is lost, nothing runs after it was done, every job ends done or dead."""
    ids = enqueue(served, 600)
    for _ in range(2):
        served.worker(LEASE="3")
    for number in range(3):
        served.started(100 * (number + 1))
        served.server.kill9()
        served.server.start()
    served.all_finished(90)
    served.account(ids)
    assert served.tasks.sync.stats().dead == 24


@pytest.mark.parametrize("seconds", [3, pytest.param(20, marks=pytest.mark.soak)])
def test_a_server_that_is_away_costs_few_words_little_work_and_no_attempt(served, seconds):
    """The work goes on within five seconds of its return, and the idle workers' attempts are not spent."""
    worker = served.worker(LEASE="30")
    first = served.tasks.sync.enqueue("quick", 1).id
    served.all_finished()
    served.server.stop()
    process = psutil.Process(worker.pid)
    before, words = sum(process.cpu_times()[:2]), len(worker.output.read_text().splitlines())
    moment.wait(seconds)  # how long it is away is what is tested
    used = sum(process.cpu_times()[:2]) - before
    served.server.start()
    second = served.tasks.sync.enqueue("quick", 1).id
    served.until(lambda: served.job(second).state == "done", "the work goes on", 5)
    told = worker.output.read_text().splitlines()[words:]
    print(f"away for {seconds} s: {used:.2f} s of CPU, {len(told)} lines")
    assert used < seconds / 5
    assert len(told) < 30
    assert [served.job(id).attempts for id in (first, second)] == [1, 1]


def test_a_result_that_could_not_be_written_is_written_when_the_server_is_back(served):
    """The job runs once: its result waits in the worker, and its lease outlasts the outage."""
    served.worker(LEASE="60")
    id = served.tasks.sync.enqueue("waits").id
    served.started()
    served.server.stop()
    served.go()
    served.until(lambda: served.lines("end"), "the handler ends while the server is away")
    served.server.start()
    served.until(lambda: served.job(id).state == "done", "the result is written")
    assert served.job(id).attempts == 1
    assert len(served.lines()) == 1


def test_workers_that_are_stopped_and_started_all_the_time_leave_nothing_running(fleet):
    """Scenario 123: after each clean stop no job runs under the stopped worker, and no attempt is lost to a stop."""
    chance = random.Random(5)
    ids = [one.id for one in fleet.tasks.sync.enqueue_many([{"name": "quick", "payload": 5}] * 300)]
    workers = [fleet.worker(LEASE="20") for _ in range(2)]
    fleet.started(5)
    for number in range(8):
        stopped = workers[number % 2]
        fleet.until(lambda one=stopped: one.output.read_text(), "the worker says that it works")
        moment.wait(chance.uniform(0, 0.3))  # a random moment is what is tested
        stopped.signal(signal.SIGTERM)
        assert stopped.ended() == 0, stopped.output.read_text()
        running = fleet.tasks.sync.list(states=["running"])
        assert not [job for job in running if f":{stopped.pid}:" in (job.worker or "")]
        workers[number % 2] = fleet.worker(LEASE="20")
    fleet.all_finished()
    assert fleet.account(ids).startswith("enqueued 300, done 300, dead 0, lost 0")
    assert max(fleet.job(id).attempts for id in ids) == 1
