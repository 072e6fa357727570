"""The page that a scrape gets: the families of metrics, and their text."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from treadle import __version__
from treadle.core.outcome import Dead, RetryAfter
from treadle.functions.metrics.counts import OUTCOMES, Counts
from treadle.functions.metrics.holdings import Holdings

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, eq=False)
class Page(Collector):
    """What is shown, all of it as it was at one moment; `holdings` None says that the store does not answer."""

    started: float
    counts: Counts
    holdings: Holdings | None

    def text(self) -> bytes:
        """The page in the text format, in about 10 µs a line: some 40 ms for 200 job names."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        """The families, in the order of the page."""
        build = {"version": __version__, "python": platform.python_version()}
        yield InfoMetricFamily("treadle_build", "The version of treadle, and of Python.", value=build)
        yield GaugeMetricFamily(
            "treadle_start_time_seconds", "When this process began to count, in Unix time.", value=self.started
        )
        yield from self._holdings()
        yield from self._claims()
        yield from self._attempts()
        yield from self._calls()
        yield from self._requests()
        with suppress(Exception):  # the system's own counts may be closed to this process, or read in a way of their own
            yield from list(ProcessCollector(registry=None).collect())

    def _holdings(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("treadle_store_up", "1 if the store told what it holds, 0 if it failed or is too slow.")
        up.add_metric([], 0 if self.holdings is None else 1)
        yield up
        if self.holdings is not None:
            jobs = GaugeMetricFamily("treadle_jobs", "Jobs in the store.", labels=["queue", "name", "state"])
            for (queue, name, state), number in self.holdings.jobs.items():
                jobs.add_metric([_clean(queue), _clean(name), state.value], number)
            yield jobs
            ages = GaugeMetricFamily(
                "treadle_queue_oldest_age_seconds",
                "For how long the job has been due that waits the longest; 0 where none is due.",
                labels=["queue"],
            )
            for queue, age in self.holdings.ages.items():
                ages.add_metric([_clean(queue)], age)
            yield ages

    def _claims(self) -> Iterator[Metric]:
        claims = self.counts.claims
        yield HistogramMetricFamily(
            "treadle_claim_seconds",
            "How long the store took to answer this process's claims.",
            buckets=claims.buckets(),
            sum_value=claims.total,
        )
        yield CounterMetricFamily(
            "treadle_claimed_jobs", "Jobs that this process's claims brought.", value=self.counts.claimed_jobs
        )

    def _attempts(self) -> Iterator[Metric]:
        run = HistogramMetricFamily("treadle_run_seconds", "How long attempts took in this process.", labels=["name"])
        attempts = CounterMetricFamily(
            "treadle_attempts", "Attempts that ended in this process, by what became of the job.", labels=["name", "outcome"]
        )
        retries = CounterMetricFamily("treadle_retries", "Failed attempts that are tried again.", labels=["name"])
        dead = CounterMetricFamily("treadle_dead_letters", "Attempts that made a dead letter.", labels=["name"])
        for raw, of in self.counts.attempts.items():
            name = _clean(raw)
            run.add_metric([name], of.seconds.buckets(), of.seconds.total)
            for outcome, number in of.outcomes.items():
                attempts.add_metric([name, OUTCOMES[outcome]], number)
            retries.add_metric([name], of.outcomes[RetryAfter])
            dead.add_metric([name], of.outcomes[Dead])
        yield from (run, attempts, retries, dead)

    def _calls(self) -> Iterator[Metric]:
        calls = CounterMetricFamily(
            "treadle_function_calls",
            "Calls of functions by the class of their answer's status, none where no answer came.",
            labels=["name", "kind", "status"],
        )
        for name, answers in self.counts.calls.items():
            for (kind, status), number in answers.items():
                calls.add_metric([_clean(name), kind, status], number)
        yield calls

    def _requests(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "treadle_http_requests", "Requests that this process answered.", labels=["route", "method", "status"]
        )
        for key, count in self.counts.requests.items():
            requests.add_metric([_clean(label) for label in key], count.value)
        yield requests
        seconds = HistogramMetricFamily(
            "treadle_http_request_seconds", "How long requests took in this process.", labels=["route", "method"]
        )
        for labels, histogram in self.counts.request_seconds.items():
            seconds.add_metric([_clean(label) for label in labels], histogram.buckets(), histogram.total)
        yield seconds


def _clean(label: str) -> str:
    """The label without unpaired surrogates, which would cost the whole page."""
    return label if label.isascii() else label.encode("utf-8", "replace").decode()
