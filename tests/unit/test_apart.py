"""Keyed enqueues in a store where a key may have to be waited for: each key waits for itself alone (E10)."""

import asyncio

from treadle.core.job import Key, NewJob
from treadle.core.waiting import KeysWait
from treadle.engine.clock import EngineClock
from treadle.engine.enqueuer import Enqueuer
from treadle.engine.ids import new_id
from treadle.stores.memory import MemoryStore


class Waiting(MemoryStore):
    """A store in which somebody's open transaction holds keys, until `ended`."""

    def __init__(self, *held, waiting_at_most=2):
        super().__init__()
        self.held, self.ended = set(held), asyncio.Event()
        self.waiting_at_most = waiting_at_most
        self.waiting, self.most, self.writes = 0, 0, []

    def _waits(self, jobs):
        return not self.ended.is_set() and any(job.key is not None and job.key.text in self.held for job in jobs)

    async def enqueue(self, jobs, *, now=None):
        self.writes.append([job.key and job.key.text for job in jobs])
        await asyncio.sleep(0)
        if self._waits(jobs):
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            await self.ended.wait()
            self.waiting -= 1
        return await super().enqueue(jobs, now=now)

    async def enqueue_unless_held(self, jobs, *, now=None):
        self.writes.append([job.key and job.key.text for job in jobs])
        await asyncio.sleep(0)
        return None if self._waits(jobs) else await super().enqueue(jobs, now=now)


def job(key=None, name="job"):
    return NewJob(new_id(1), name, key=None if key is None else Key("idempotency", key))


def run(main):
    return asyncio.run(asyncio.wait_for(main, 20))


def test_nobody_waits_for_anothers_key_however_many_come_at_once():
    async def main():
        store = Waiting("k3", "k50", "k77")
        assert isinstance(store, KeysWait)
        enqueuer = Enqueuer(store, EngineClock())
        calls = {f"k{n}": asyncio.create_task(enqueuer.one(job(f"k{n}"))) for n in range(100)}
        others = [call for key, call in calls.items() if key not in store.held]
        assert all([(await other).created for other in others])
        # Of the three that wait two have taken all the room there is; others with keys and without go on all the same.
        assert (await enqueuer.one(job("late"))).created
        assert (await enqueuer.one(job())).created
        assert not any(calls[key].done() for key in store.held)
        assert store.most == 2
        store.ended.set()
        assert all([(await calls[key]).created for key in store.held])

    run(main())


def test_who_holds_a_key_may_wait_for_another_job_of_its_own():
    """The holder's transaction ends only when its other job is stored, which came at the same time as who waits for it."""

    async def main():
        store = Waiting("held")
        enqueuer = Enqueuer(store, EngineClock())

        async def holder():
            await enqueuer.one(job("audit"))
            store.ended.set()

        waiters = [asyncio.create_task(enqueuer.one(job(key))) for key in ("a", "b", "c", "held", "held", "d")]
        await asyncio.gather(holder(), *waiters)
        assert [waiter.result().created for waiter in waiters] == [True, True, True, True, False, True]

    run(main())


def test_those_that_come_together_share_writes_all_the_same():
    async def main():
        store = Waiting()
        enqueuer = Enqueuer(store, EngineClock())
        answers = await asyncio.gather(*(enqueuer.one(job(f"k{n}")) for n in range(300)))
        assert all(answer.created for answer in answers)
        assert len(store.writes) <= 5
        again = await asyncio.gather(*(enqueuer.one(job(f"k{n}")) for n in range(300)))
        assert [answer.id for answer in again] == [answer.id for answer in answers]
        assert not any(answer.created for answer in again)

    run(main())


def test_callers_of_one_key_wait_in_one_write_and_leave_nothing_behind():
    async def main():
        store = Waiting("held", waiting_at_most=5)
        enqueuer = Enqueuer(store, EngineClock())
        calls = [asyncio.create_task(enqueuer.one(job("held"))) for _ in range(40)]
        elsewhere = asyncio.create_task(enqueuer.one(job("held", name="other")))
        while store.waiting < 2:
            await asyncio.sleep(0)
        calls[0].cancel()
        calls[20].cancel()
        store.ended.set()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert store.most == 2
        created = [answer for answer in answers if not isinstance(answer, BaseException)]
        assert (len(created), sum(answer.created for answer in created), len({answer.id for answer in created})) == (38, 1, 1)
        assert (await elsewhere).created
        del calls
        await asyncio.sleep(0)
        assert not enqueuer._apart._by_key

    run(main())


def test_many_wait_for_their_keys_but_not_for_others_and_those_without_keys_for_nobody():
    async def main():
        store = Waiting("held", waiting_at_most=1)
        enqueuer = Enqueuer(store, EngineClock())
        waiting = asyncio.create_task(enqueuer.many([job("held"), job("x")]))
        while not store.waiting:
            await asyncio.sleep(0)
        assert all(answer.created for answer in await enqueuer.many([job(), job()]))
        assert (await enqueuer.one(job("y"))).created
        store.ended.set()
        assert all(answer.created for answer in await waiting)
        assert await enqueuer.many([]) == []

    run(main())


def test_an_error_reaches_its_callers_and_the_next_ones_are_stored():
    async def main():
        store = Waiting()
        enqueuer = Enqueuer(store, EngineClock())
        good, store._waits = store._waits, lambda jobs: 1 / 0
        failed = await asyncio.gather(*(enqueuer.one(job(f"k{n}")) for n in range(10)), return_exceptions=True)
        assert {type(error) for error in failed} <= {ZeroDivisionError}
        store._waits = good
        assert all(answer.created for answer in await asyncio.gather(*(enqueuer.one(job(f"k{n}")) for n in range(10))))

    run(main())
