"""`treadle show`: the whole job with its attempts (L3, E15)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import click

from treadle.cli.ages import span, stamp
from treadle.cli.document import job_document
from treadle.cli.jobid import JobId
from treadle.cli.opening import with_operations
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.cli.printable import printable
from treadle.cli.states import colour_of
from treadle.core.errors import NotFound
from treadle.core.job import Failure, Job
from treadle.engine.operations import Operations


@click.command("show")
@click.argument("id", type=JobId("any"))
@json_option
@store_option
def command(id: str, as_json: bool) -> None:
    """Show one job with its attempts.

    Every field, the payload, and what went wrong at each unsuccessful attempt.
    """
    out = Out()

    async def found(operations: Operations) -> Job | None:
        return await operations.get(id)

    job = with_operations(found)
    if job is None:
        raise NotFound(f"there is no job {id!r}")
    if as_json:
        out.json(job_document(job))
    else:
        _print(out, job, datetime.now(UTC))
    out.flush()


def _print(out: Out, job: Job, now: datetime) -> None:
    state = out.styled(job.state.value, colour_of(job.state.value) or "bold")
    out.line(f"{out.styled(printable(job.name), 'bold')}  {state}")
    fields = [(label, printable(value)) for label, value in _fields(job, now) if value]
    width = max(len(label) for label, _ in fields)
    for label, value in fields:
        out.line(f"  {out.styled(f'{label:<{width}}', 'dim')}  {value}")
    out.line()
    out.line(out.styled("Payload", "bold"))
    for line in json.dumps(job_document(job)["payload"], ensure_ascii=False, indent=2).splitlines():
        out.line(f"  {printable(line)}")
    if job.failures:
        out.line()
        out.line(out.styled("Unsuccessful attempts", "bold"))
        for failure in job.failures:
            _print_failure(out, failure, now)
    elif job.last_error:
        out.line()
        out.line(out.styled("Last error", "bold"))
        _print_error(out, job.last_error)


def _fields(job: Job, now: datetime) -> Iterator[tuple[str, str | None]]:
    yield "id", job.id
    yield "queue", job.queue
    yield "priority", str(job.priority)
    yield "attempts", f"{job.attempts} of {job.max_attempts}" if job.max_attempts is not None else str(job.attempts)
    yield "interruptions", str(job.interruptions) if job.interruptions else None
    yield "idempotency key", job.idempotency_key
    yield "dedupe key", job.dedupe_key
    yield "schedule", job.schedule
    yield "worker", job.worker
    yield "note", job.note
    moments = (
        ("created", job.created_at),
        ("due", job.run_at),
        ("started", job.started_at),
        ("finished", job.finished_at),
        ("leased until", job.lease_until),
    )
    for label, moment in moments:
        yield label, None if moment is None else stamp(moment, now)


def _print_failure(out: Out, failure: Failure, now: datetime) -> None:
    took = span((failure.ended_at - failure.started_at).total_seconds())
    out.line(f"  {failure.attempt}. {stamp(failure.ended_at, now)}, after {took}, on {printable(failure.worker)}")
    _print_error(out, failure.error)


def _print_error(out: Out, error: str) -> None:
    for line in error.splitlines():
        out.line("     " + out.styled(printable(line), "red"))
