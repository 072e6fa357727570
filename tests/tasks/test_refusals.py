"""Bad input: each refused value names the value or the limit and stores nothing, on each store (E1, E4, E5, E8, T2)."""

import asyncio
import math
from datetime import UTC, datetime, timedelta

import pytest

from treadle import InvalidArgument, NewJob, Tasks

ENQUEUES = {
    "an empty name": (("",), {}, "1 to 128"),
    "a name of 129": (("x" * 129,), {}, "129 characters"),
    "a reserved name": (("plugin:x",), {}, "reserved"),
    "a name that is no text": ((5,), {}, "must be text, not int"),
    "nan": (("job", math.nan), {}, "not JSON"),
    "infinity": (("job", [math.inf]), {}, "not JSON"),
    "bytes": (("job", b"x"), {}, "bytes"),
    "a set": (("job", {1}), {}, "set"),
    "a number as key": (("job", {1: 2}), {}, "key 1"),
    "a lone surrogate": (("job", "\ud800"), {}, "surrogate"),
    "a payload too large": (("job", "x" * 1_048_575), {}, "1,048,576"),
    "both times": (("job",), {"delay": 1, "run_at": datetime.now(UTC)}, "exclude each other"),
    "a negative delay": (("job",), {"delay": -1}, "-1"),
    "a delay of nan": (("job",), {"delay": math.nan}, "nan"),
    "an infinite delay": (("job",), {"delay": math.inf}, "inf"),
    "a negative timedelta": (("job",), {"delay": timedelta(seconds=-1)}, "negative"),
    "a naive datetime": (("job",), {"run_at": datetime(2026, 1, 1)}, "naive"),
    "no attempts": (("job",), {"max_attempts": 0}, "1 to 10,000"),
    "too many attempts": (("job",), {"max_attempts": 10_001}, "10,000, not 10001"),
    "a boolean of attempts": (("job",), {"max_attempts": True}, "True"),
    "a priority too high": (("job",), {"priority": 1001}, "1001"),
    "a priority of text": (("job",), {"priority": "1"}, "'1'"),
    "both keys": (("job",), {"idempotency_key": "a", "dedupe_key": "a"}, "exclude each other"),
    "an empty key": (("job",), {"idempotency_key": ""}, "1 to 255"),
    "a key of 256": (("job",), {"dedupe_key": "😀" * 256}, "256 characters"),
    "a key with white space": (("job",), {"dedupe_key": "a "}, "white space"),
    "a key with a byte order mark": (("job",), {"dedupe_key": "\ufeffa"}, "white space"),
    "a key with NUL": (("job",), {"idempotency_key": "a\0b"}, "NUL"),
    "a key with a surrogate": (("job",), {"idempotency_key": "a\udc00"}, "surrogate"),
    "a queue of a face": (("job",), {"queue": "functions"}, "functions service"),
}


@pytest.fixture(params=["memory", "sqlite"])
def tasks(request, tmp_path):
    tasks = Tasks("memory:" if request.param == "memory" else f"sqlite:{tmp_path}/jobs.db")
    yield tasks
    tasks.sync.close()


async def refused(call, told):
    with pytest.raises(InvalidArgument) as caught:
        await call
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.code == "invalid_argument"


def test_a_refused_enqueue_stores_nothing(tasks):
    async def main():
        for arguments, options, told in ENQUEUES.values():
            await refused(tasks.enqueue(*arguments, **options), told)
        assert await tasks.list() == []
        await tasks.close()

    asyncio.run(main())


LISTS = {
    "no mapping": (["job"], "must be a mapping or a NewJob"),
    "no name": ([{"payload": 1}], "no name"),
    "an unknown option": ([{"name": "job", "delay_secs": 5}], "'delay_secs'"),
    "one bad among good": ([{"name": "job"}, NewJob("job", delay=-1), {"name": "job"}], "job 1 of the list"),
}


def test_one_bad_entry_of_a_list_stores_nothing(tasks):
    async def main():
        for entries, told in LISTS.values():
            await refused(tasks.enqueue_many(entries), told)
        assert await tasks.list() == []
        assert await tasks.enqueue_many([]) == []
        await tasks.close()

    asyncio.run(main())


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, True, "60", timedelta(0)])
def test_a_refused_interval_stores_nothing(tasks, seconds):
    async def main():
        tasks.handle("report", lambda payload: None)
        with pytest.raises(InvalidArgument):
            tasks.every("report", seconds)
        assert await tasks.run_once() == 0
        assert await tasks.list() == []
        await tasks.close()

    asyncio.run(main())


def test_an_interval_needs_its_handler_first_and_comes_before_start(tasks):
    async def main():
        with pytest.raises(InvalidArgument, match="handler of that name to be registered first"):
            tasks.every("report", 60)
        tasks.handle("report", lambda payload: None)
        await tasks.start()
        with pytest.raises(InvalidArgument, match="before start"):
            tasks.every("report", 60)
        await tasks.close()
        assert await tasks.list() == []
        with pytest.raises(InvalidArgument, match="not JSON"):
            tasks.every("report", 60, {1, 2})
        await tasks.close()

    asyncio.run(main())


LOOKS = {
    "an unknown state": (lambda tasks: tasks.list(states=["finished"]), "'finished'"),
    "text for states": (lambda tasks: tasks.list(states="done"), "list"),
    "no limit": (lambda tasks: tasks.list(limit=0), "0"),
    "a limit of text": (lambda tasks: tasks.list(limit="5"), "'5'"),
    "prune of running": (lambda tasks: tasks.prune(states=["running"]), "running"),
    "a negative age": (lambda tasks: tasks.prune(-1), "negative"),
    "retry of nothing": (lambda tasks: tasks.retry(), "all_dead"),
    "retry of one and all": (lambda tasks: tasks.retry("x", all_dead=True), "all_dead"),
    "an id of bytes": (lambda tasks: tasks.get(b"x"), "bytes"),
}


def test_looking_and_repairing_refuse_bad_values(tasks):
    async def main():
        for call, told in LOOKS.values():
            await refused(call(tasks), told)
        await tasks.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "url, told",
    [
        ("data/tasks.db", "no store URL"),
        ("mysql://x", "mysql: is no store"),
        ("memory:x", "nothing after the colon"),
        ("sqlite:", "needs a path"),
        ("sqlite:x?synchronous=OFF", "FULL, NORMAL"),
        ("sqlite:x?sync=FULL", "unknown option 'sync'"),
    ],
)
def test_a_bad_store_url_is_refused_where_it_is_given(url, told):
    with pytest.raises(InvalidArgument, match=told):
        Tasks(url)
