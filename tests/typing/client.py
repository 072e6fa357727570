"""The client as a type checker sees it from a caller's side: this file is checked, not run."""

from __future__ import annotations

from typing import assert_type

from treadle.client import CronJob, Job, Requeued, create_async_client, create_client

client = create_client("http://127.0.0.1:8700", "key")
assert_type(client.functions.enqueue_job("report", {"month": "2026-10"}, delay_secs=60, max_attempts=3), Job)
assert_type(client.functions.list_jobs("dead", limit=10), list[Job])
assert_type(client.functions.requeue_dead(), Requeued)
assert_type(client.functions.create_cron_job("nightly", "0 3 * * *", "cleanup"), CronJob)
client.functions.list_jobs("failed")  # type: ignore[arg-type]  # not a status: this very line must be refused


async def main() -> None:
    async with create_async_client("http://127.0.0.1:8700", "key") as other:
        assert_type(await other.functions.get_job("id"), Job)
        assert_type(await other.functions.list_cron_jobs(), list[CronJob])
