"""What happens to jobs when workers die, stop, freeze or exit: real processes, real signals (S10, E3, E20 to E24)."""

import signal

import pytest

pytestmark = pytest.mark.timeout(120)


def test_kill_9_in_the_middle_of_a_job_and_the_next_worker_takes_it_up(fleet):
    """Scenario 57: the job of the killed worker, and those that waited behind it, are all done."""
    first = fleet.worker(CONCURRENCY="1")
    ids = [fleet.tasks.sync.enqueue("waits").id for _ in range(3)]
    fleet.started()
    first.kill9()
    fleet.go()
    fleet.worker(CONCURRENCY="1")
    fleet.all_finished()
    fleet.account(ids)
    assert [fleet.job(id).attempts for id in ids] == [2, 1, 1]
    assert fleet.job(ids[0]).failures[0].error == "visibility timeout exceeded"


def test_sigterm_lets_the_running_job_finish_and_claims_nothing_more(fleet):
    worker = fleet.worker(CONCURRENCY="1")
    ids = [fleet.tasks.sync.enqueue("waits").id for _ in range(2)]
    fleet.started()
    worker.signal(signal.SIGTERM)
    fleet.go()
    assert worker.ended() == 0
    assert [fleet.job(id).state for id in ids] == ["done", "pending"]
    assert fleet.job(ids[0]).attempts == 1


def test_sigint_stops_gracefully_too(fleet):
    worker = fleet.worker()
    id = fleet.tasks.sync.enqueue("waits").id
    fleet.started()
    worker.signal(signal.SIGINT)
    fleet.go()
    assert worker.ended() == 0
    assert fleet.job(id).state == "done"


def test_sigterm_with_no_grace_gives_the_job_back_at_once(fleet):
    worker = fleet.worker(GRACE="0")
    id = fleet.tasks.sync.enqueue("waits").id
    fleet.started()
    worker.signal(signal.SIGTERM)
    assert worker.ended() == 0
    job = fleet.job(id)
    assert (job.state, job.attempts, job.interruptions) == ("pending", 0, 1)


def test_a_second_sigterm_stops_at_once_and_nothing_is_lost(fleet):
    worker = fleet.worker(GRACE="60")
    id = fleet.tasks.sync.enqueue("waits").id
    fleet.started()
    worker.signal(signal.SIGTERM)
    fleet.until(lambda: "stopping" in worker.output.read_text().lower(), "the worker says that it is stopping")
    worker.signal(signal.SIGTERM)
    worker.ended(10)
    fleet.go()
    fleet.worker()
    fleet.all_finished()
    fleet.account([id])
    assert fleet.job(id).state == "done"


def test_a_worker_frozen_past_its_lease_changes_nothing_when_it_goes_on(fleet):
    """SIGSTOP, the lease runs out, another worker does the job, SIGCONT: the late result is refused."""
    frozen = fleet.worker()
    id = fleet.tasks.sync.enqueue("waits").id
    fleet.started()
    frozen.signal(signal.SIGSTOP)
    second = fleet.worker()
    fleet.started(2)
    fleet.go()
    fleet.all_finished()
    before = fleet.job(id)
    frozen.signal(signal.SIGCONT)
    fleet.until(lambda: len(fleet.lines("end")) == 2, "the frozen handler ends too")
    frozen.signal(signal.SIGTERM)
    assert frozen.ended() == 0
    after = fleet.job(id)
    assert after == before
    assert (after.state, after.attempts) == ("done", 2)
    assert {line.pid for line in fleet.lines()} == {frozen.pid, second.pid}
    fleet.account([id])


def test_a_handler_that_exits_the_process_ends_as_a_dead_letter_and_the_others_are_done(fleet):
    """A supervisor starts the worker again each time; the poisonous job runs out of attempts (E3)."""
    poison = fleet.tasks.sync.enqueue("exits", priority=5).id
    ids = [fleet.tasks.sync.enqueue("quick", 1).id for _ in range(20)]
    worker, restarts = fleet.worker(CONCURRENCY="1"), 0

    def finished() -> bool:
        nonlocal worker, restarts
        if worker.process.poll() is not None:
            assert worker.process.returncode == 7
            worker, restarts = fleet.worker(CONCURRENCY="1"), restarts + 1
        stats = fleet.tasks.sync.stats()
        return stats.pending == stats.running == 0

    fleet.until(finished, "every job done or dead", 60)
    assert restarts == 3
    job = fleet.job(poison)
    assert (job.state, job.attempts, job.last_error) == ("dead", 3, "visibility timeout exceeded")
    assert all(fleet.job(id).state == "done" for id in ids)
    fleet.account([poison, *ids])


def test_a_worker_that_does_not_know_the_job_gives_it_back_and_never_kills_it(fleet, tmp_path):
    """Scenario 60."""
    (tmp_path / "other.py").write_text(
        "import os\nfrom treadle import Tasks\ntasks = Tasks(os.environ['STORE'], poll_interval=0.1)\n"
        "@tasks.handler('another')\nasync def another(payload): pass\n"
    )
    knows = fleet.worker()
    id = fleet.tasks.sync.enqueue("waits").id
    fleet.started()
    fleet.worker(APP="other:tasks", PYTHONPATH=str(tmp_path))
    knows.kill9()
    fleet.until(lambda: fleet.job(id).state == "pending", "the job is given back by a worker that does not know it")
    assert fleet.job(id).attempts == 1
    fleet.go()
    fleet.worker()
    fleet.all_finished()
    assert (fleet.job(id).state, fleet.job(id).attempts) == ("done", 2)


def test_eight_processes_hammer_one_store_and_each_job_runs_once(fleet):
    for _ in range(8):
        fleet.worker(LEASE="60")
    ids = []
    for _ in range(4):
        ids += [one.id for one in fleet.tasks.sync.enqueue_many([{"name": "quick", "payload": 1}] * 250)]
    fleet.all_finished()
    assert fleet.account(ids) == "enqueued 1000, done 1000, dead 0, lost 0, repeated starts 0"
    assert "locked" not in fleet.logs()


def test_failing_jobs_end_dead_and_the_rest_done_through_kills(fleet):
    ids = [fleet.tasks.sync.enqueue("fails" if number % 10 == 0 else "quick", 2).id for number in range(200)]
    for number in range(4):
        worker = fleet.worker()
        fleet.started((number + 1) * 30)
        worker.kill9()
    fleet.worker()
    fleet.all_finished()
    fleet.account(ids)
    assert fleet.tasks.sync.stats().dead == 20
