"""assert_enqueued, refute_enqueued and run_handler: what they find, and what their failures say."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass

import pytest

from treadle import InvalidArgument, Tasks
from treadle.testing import ManualClock, assert_enqueued, refute_enqueued, run_handler


def test_it_finds_a_job_by_name_payload_and_fields():
    async def main():
        tasks = Tasks("memory:", clock=ManualClock())
        first = await tasks.enqueue("mail", {"to": "a", "n": [1, 2.5]}, queue="mails", idempotency_key="k")
        newest = await tasks.enqueue("mail", {"to": "b"})
        assert (await assert_enqueued(tasks, "mail")).id == newest.id
        found = await assert_enqueued(tasks, "mail", {"to": "a", "n": [1, 2.5]}, queue="mails", idempotency_key="k", count=1)
        assert found.id == first.id
        await refute_enqueued(tasks, "mail", {"to": "c"})
        await refute_enqueued(tasks, "mail", queue="elsewhere")
        await refute_enqueued(tasks, "other")

    asyncio.run(main())


def test_its_failures_say_what_there_is_instead():
    async def main():
        tasks = Tasks("memory:", clock=ManualClock())
        await tasks.enqueue("mail", {"to": "a"}, queue="mails")
        with pytest.raises(AssertionError) as failure:
            await assert_enqueued(tasks, "mail", {"to": "b"}, priority=3)
        assert str(failure.value) == (
            'expected a job \'mail\' with payload {"to":"b"}, priority 3 among those that are pending or running; '
            "there are 0 such jobs, and 'mail' (pending, queue 'mails', due 2026-01-01T00:00:00+00:00, payload {\"to\":\"a\"})"
        )
        with pytest.raises(AssertionError, match=r"expected 2 jobs 'mail' .*there are 1 such jobs, and no others"):
            await assert_enqueued(tasks, "mail", count=2)
        with pytest.raises(AssertionError, match=r"expected no job 'mail' among .*; there is 'mail' "):
            await refute_enqueued(tasks, "mail")

    asyncio.run(main())


def test_only_unfinished_jobs_count_unless_states_are_given():
    async def main():
        tasks = Tasks("memory:")
        tasks.handle("mail", lambda payload: None)
        await tasks.enqueue("mail")
        await tasks.drain()
        await refute_enqueued(tasks, "mail")
        await assert_enqueued(tasks, "mail", None, states=["done"])

    asyncio.run(main())


def test_an_unknown_field_is_refused():
    async def main():
        with pytest.raises(InvalidArgument, match="cannot be looked for by 'delay'"):
            await assert_enqueued(Tasks("memory:"), "mail", delay=3)

    asyncio.run(main())


@dataclass
class Mail:
    to: str
    copies: int = 1


def test_a_handler_is_called_with_its_own_type_and_a_real_context():
    pytest.importorskip("msgspec", reason="typed payloads need the extra treadle[typed]")

    async def main():
        tasks = Tasks("memory:")
        seen = []

        @tasks.handler("mail")
        async def mail(payload: Mail, ctx) -> str:
            seen.append((payload, ctx.attempt, ctx.job.name, ctx.job.payload, ctx.aborted.reason, await ctx.extend_lease(5)))
            await ctx.tasks.enqueue("more")
            return "sent"

        assert await run_handler(mail, Mail("ada"), attempt=3, tasks=tasks, aborted="stop") == "sent"
        assert seen == [(Mail("ada"), 3, "mail", {"to": "ada", "copies": 1}, "stop", True)]
        await assert_enqueued(tasks, "more")

    asyncio.run(main())


def test_what_a_handler_raises_is_raised():
    async def main():
        async def handler(payload):
            raise KeyError(payload)

        with pytest.raises(KeyError, match="gone"):
            await run_handler(handler, "gone")

    asyncio.run(main())


def test_a_plain_function_runs_in_a_thread_and_gets_json():
    async def main():
        def handler(payload, ctx):
            return payload, ctx.attempt, threading.current_thread() is threading.main_thread()

        assert await run_handler(handler, {"a": (1, 2)}) == ({"a": [1, 2]}, 1, False)

    asyncio.run(main())


def test_a_payload_that_no_store_would_take_is_refused():
    async def main():
        with pytest.raises(InvalidArgument, match="not JSON"):
            await run_handler(lambda payload: None, {1, 2})

    asyncio.run(main())
