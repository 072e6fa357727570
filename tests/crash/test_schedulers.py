"""Cron schedules fired by several processes that are frozen, killed and late: each slot gives one job (T9 to T12, T14)."""

import random
import re
import signal
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from shared_clock import SharedClock

from treadle import NotFound, Tasks

pytestmark = pytest.mark.timeout(120)
START = datetime(2026, 3, 28, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MARGIN = 5  # seconds by which a clock may be off


class Schedulers:
    """Processes on one store and one clock: one works, the others only fire."""

    def __init__(self, fleet, schedules):
        self.fleet, self.schedules = fleet, schedules
        self.clock = SharedClock(fleet.folder / "clock")
        self.clock.set(START + MINUTE / 2)  # between two slots by every process's clock
        self.frozen = []
        self.stuck = 0

    def start(self, skew=0.0, **settings):
        settings |= {"APP": "scheduling:tasks", "CLOCK": str(self.fleet.folder / "clock"), "SKEW": str(skew)}
        return self.fleet.worker(SCHEDULES=str(self.schedules), **settings)

    def started(self):
        def all_work():
            return all("works on" in worker.output.read_text() for worker in self.fleet.workers)

        self.fleet.until(all_work, "every process works", 60)

    def freeze(self, process):
        process.signal(signal.SIGSTOP)
        self.frozen.append(process)

    def thaw(self):
        while self.frozen:
            self.frozen.pop().signal(signal.SIGCONT)

    def done(self, count):
        """Wait until so many jobs are done. On SQLite a process that was frozen in the middle of a write holds up all."""

        def reached():
            stats = self.fleet.tasks.sync.stats()
            return stats.done >= count and stats.pending == stats.running == 0

        try:
            self.fleet.until(reached, f"{count} jobs done", 3 if self.frozen else 30)
        except AssertionError:
            if not self.frozen:
                raise
            self.stuck += 1
            self.thaw()
            self.fleet.until(reached, f"{count} jobs done", 30)

    def slots(self):
        """How many jobs there are of each schedule and minute. A job is made at or after its slot by its maker's clock."""
        jobs = self.fleet.tasks.sync.list()
        assert {job.state for job in jobs} <= {"done"}
        return Counter((job.schedule, job.created_at.replace(second=0, microsecond=0)) for job in jobs)


def hold_a_thousand(fleet, processes, schedules, minutes, seed):
    """Fire so many slots with so many schedulers, freezing and killing some in the middle of it; then count."""
    chance = random.Random(seed)
    fire = Schedulers(fleet, schedules)
    fire.start(MARGIN)  # as far ahead as any, so that a job is due for it as soon as it is made
    skews = [MARGIN * (2 * number / (processes - 1) - 1) for number in range(processes)]
    schedulers = [fire.start(skew, ROLE="scheduler") for skew in skews]
    fire.started()
    for minute in range(1, minutes + 1):
        slot = START + minute * MINUTE
        fire.clock.set(slot - timedelta(seconds=3))  # for those that are ahead, the slot has come
        if minute % 5 == 2:
            fire.freeze(chance.choice(schedulers))
        fire.clock.set(slot + timedelta(seconds=2 * MARGIN))
        if minute in (minutes // 3, 2 * minutes // 3):
            victim = chance.randrange(len(schedulers))
            if schedulers[victim] not in fire.frozen:
                schedulers[victim].kill9()
                schedulers[victim] = fire.start(skews[victim], ROLE="scheduler")
        fire.done(minute * schedules)
        if minute % 5 == 4:
            fire.thaw()  # after two slots and more
    fire.thaw()
    for process in fleet.workers:
        process.signal(signal.SIGTERM)
    for process in fleet.workers:
        process.ended()
    slots = fire.slots()
    print(f"{processes} schedulers: {sum(slots.values())} jobs of {len(slots)} slots; held up {fire.stuck} times")
    assert sum(slots.values()) == len(slots) == schedules * minutes
    assert {at for _, at in slots} == {START + minute * MINUTE for minute in range(1, minutes + 1)}
    assert not re.search(r"\b(ERROR|Traceback)\b", fleet.logs())


def test_four_schedulers_of_which_some_are_frozen_killed_and_late_fire_each_of_a_thousand_slots_once(fleet):
    """Scenario 41: four processes, clocks off by up to five seconds, frozen across slots and continued, killed in between."""
    hold_a_thousand(fleet, processes=4, schedules=50, minutes=20, seed=1)


def test_sixteen_schedulers_fire_each_of_a_thousand_slots_once(fleet):
    """Scenario 41, with sixteen."""
    hold_a_thousand(fleet, processes=16, schedules=50, minutes=20, seed=2)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("processes", [4, 16])
def test_ten_thousand_slots_in_small_steps(fleet, processes):
    """Scenario 41, for `make soak`: many more slots, of few schedules each, so that there is more to race for."""
    hold_a_thousand(fleet, processes=processes, schedules=20, minutes=500, seed=3)


def test_a_scheduler_that_sleeps_through_a_slot_makes_it_up_once_and_the_next_comes_on_time(fleet):
    """Scenario 36: stopped 20 s before its slot and continued 100 s after it; several slots would be made up once too (T10)."""
    fire = Schedulers(fleet, schedules=1)
    process = fire.start()
    fire.started()
    fire.clock.set(START + timedelta(seconds=40))
    fire.freeze(process)
    fire.clock.set(START + timedelta(seconds=160))
    fire.thaw()
    fire.done(1)
    fire.clock.set(START + timedelta(seconds=179))
    assert fleet.tasks.sync.schedules.get("every-minute-00").next_at == START + 3 * MINUTE
    fire.clock.set(START + 3 * MINUTE)
    fire.done(2)
    assert [job.created_at for job in fleet.tasks.sync.list()] == [START + 3 * MINUTE, START + timedelta(seconds=160)]


def test_a_running_scheduler_heeds_what_another_client_deletes_pauses_and_makes_anew(fleet):
    """Scenario 45: nothing fires after a deletion; made anew with other times, it fires by those without a restart."""
    fire = Schedulers(fleet, schedules=2)
    fire.start()
    fire.started()
    fire.clock.set(START + MINUTE)
    fire.done(2)
    schedules = fleet.tasks.sync.schedules
    schedules.delete("every-minute-00")
    schedules.pause("every-minute-01")
    fire.clock.set(START + 2 * MINUTE)
    with pytest.raises(NotFound):
        schedules.delete("every-minute-00")
    with closing(Tasks(fleet.url, clock=fire.clock).sync) as client:
        client._tasks.cron("every-minute-00", "*/5 * * * *", "slot")
        client.run_once()
        assert client.schedules.get("every-minute-00").next_at == START + 5 * MINUTE
        client.schedules.resume("every-minute-01")
    for minute in (3, 4):
        fire.clock.set(START + minute * MINUTE)
        fire.done(minute)
    fire.clock.set(START + 5 * MINUTE)
    fire.done(6)
    assert fire.slots() == Counter(
        [(f"cron:every-minute-{number:02}", START + minute * MINUTE) for number, minute in
         [(0, 1), (1, 1), (1, 3), (1, 4), (0, 5), (1, 5)]]
    )  # fmt: skip
