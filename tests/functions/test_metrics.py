"""What /metrics shows: read by Prometheus's own parser, after real runs (F15, S8)."""

import asyncio
import gc
import logging
import re
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

import treadle
from treadle import State, StoreUnavailable
from treadle.core.job import NewJob
from treadle.core.outcome import Dead, Done, Released, RetryAfter
from treadle.core.signals import CallFailed, Snooze
from treadle.core.store import Tally
from treadle.engine.clock import EngineClock
from treadle.engine.engine import Engine
from treadle.engine.observer import Observer
from treadle.engine.registry import Entry, Registry
from treadle.engine.setup import Settings, Setup
from treadle.functions.metrics import Metrics, holdings
from treadle.functions.metrics.capped import Capped, Kept
from treadle.functions.metrics.histogram import RUN_BOUNDS, Histogram
from treadle.functions.profile import FUNCTIONS
from treadle.stores.memory import MemoryStore
from treadle.testing import FaultyStore, ManualClock

LOGGER = logging.getLogger("treadle")
REPORT = "function:send-report"
JOB = NewJob("01980000-0000-7000-8000-000000000001", REPORT, queue="functions").stored(ManualClock().now(), ManualClock().now())


class Page(dict):
    """The samples by name and labels, with the types of the families."""

    def __init__(self, text):
        super().__init__()
        self.types = {}
        for family in text_string_to_metric_families(text):
            self.types[family.name] = family.type
            for sample in family.samples:
                key = (sample.name, *sorted(sample.labels.items()))
                assert key not in self, f"{key} is there twice"
                self[key] = sample.value

    def value(self, name, /, **labels):
        return self.get((name, *sorted(labels.items())))

    def labels(self, name):
        return [dict(labels) for found, *labels in self if found == name]

    def by(self, name, label, /, **only):
        """The values by one label, where the others are those given."""
        return {own[label]: self.value(name, **own) for own in self.labels(name) if own.items() >= only.items()}


async def page(metrics):
    content_type, body = await metrics.render()
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    return Page(body.decode())


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


def counted(count=lambda metrics: None):
    """The page of metrics over an empty store, of which `count` made something."""

    async def main():
        metrics = Metrics(MemoryStore())
        count(metrics)
        return await page(metrics)

    return asyncio.run(main())


class Runs:
    """An engine over a memory store with a manual clock, whose runs are observed."""

    def __init__(self, **functions):
        self.clock = ManualClock()
        clock = EngineClock(self.clock)
        self.store = FaultyStore(MemoryStore())
        self.metrics = Metrics(self.store, clock)
        registry = Registry()
        for name, function in functions.items():
            registry.add(Entry(f"function:{name}", function, is_async=True, takes_context=False))
        settings = Settings("worker", 10, 1.0, ("functions",))
        self.engine = Engine(Setup(self.store, registry, FUNCTIONS, settings, clock, LOGGER, self.metrics))

    async def enqueue(self, *names, **fields):
        now = self.clock.now()
        await self.store.enqueue(
            [NewJob(self.engine.new_id(), f"function:{name}", queue="functions", **fields) for name in names], now=now
        )

    async def page(self):
        """After the time that a reading is kept."""
        self.clock.advance(holdings.EVERY)
        return await page(self.metrics)


async def answers(payload):
    return Done("200")


async def fails(payload):
    raise CallFailed("connection refused")


async def snoozes(payload):
    raise Snooze(3600)


# -- what the worker did


def test_metrics_are_an_observer():
    observer: Observer = Metrics(MemoryStore())
    observer.claimed(1, 0.1)
    observer.ended(JOB, Done(), 0.1)


def test_real_runs_are_counted_by_what_became_of_them():
    async def main():
        runs = Runs(good=answers, bad=fails, later=snoozes)
        await runs.enqueue("good", "good", "bad", "later")
        await runs.engine.drain()
        first = await runs.page()
        assert first.value("treadle_attempts_total", name="function:bad", outcome="retry") == 1
        assert first.value("treadle_dead_letters_total", name="function:bad") == 0  # there before the first, for increase()
        assert first.value("treadle_jobs", queue="functions", name="function:bad", state="pending") == 1
        for _ in range(2):
            runs.clock.advance(5)
            await runs.engine.drain()
        return await runs.page()

    found = asyncio.run(main())

    def attempts(name):
        return found.by("treadle_attempts_total", "outcome", name=f"function:{name}")

    assert attempts("good") == {"done": 2, "retry": 0, "dead": 0, "released": 0}
    assert attempts("bad") == {"done": 0, "retry": 2, "dead": 1, "released": 0}
    assert attempts("later") == {"done": 0, "retry": 0, "dead": 0, "released": 1}
    assert found.value("treadle_retries_total", name="function:bad") == 2
    assert found.value("treadle_dead_letters_total", name="function:bad") == 1
    assert found.value("treadle_run_seconds_count", name="function:bad") == 3
    assert found.value("treadle_claimed_jobs_total") == 6
    assert found.value("treadle_claim_seconds_count") >= 3

    def jobs(name):
        return found.by("treadle_jobs", "state", queue="functions", name=f"function:{name}")

    assert jobs("good") == {"pending": 0, "running": 0, "done": 2, "dead": 0}
    assert jobs("bad") == {"pending": 0, "running": 0, "done": 0, "dead": 1}
    assert jobs("later") == {"pending": 1, "running": 0, "done": 0, "dead": 0}
    assert found.value("treadle_store_up") == 1


def test_durations_fall_into_the_buckets_that_their_bounds_say():
    def count(metrics):
        for seconds in (0.01, 0.011, 3, 600, 1000, -1, float("nan")):
            metrics.ended(JOB, Done(), seconds)

    found = counted(count)
    at_most = {
        labels["le"]: found.value("treadle_run_seconds_bucket", **labels)
        for labels in found.labels("treadle_run_seconds_bucket")
    }
    assert at_most["0.01"] == 3  # a bound belongs to its bucket, and what a clock that was set back measured is zero
    assert at_most["0.05"] == at_most["2.5"] == 4
    assert (at_most["5.0"], at_most["600.0"], at_most["+Inf"]) == (5, 6, 7)
    assert found.value("treadle_run_seconds_count", name=REPORT) == 7
    assert found.value("treadle_run_seconds_sum", name=REPORT) == pytest.approx(1603.021)
    assert list(at_most) == [*map(str, RUN_BOUNDS), "+Inf"]


def test_the_histogram_counts_as_the_librarys_own_does():
    registry = prometheus_client.CollectorRegistry()
    theirs = prometheus_client.Histogram("h", "h", registry=registry, buckets=RUN_BOUNDS)
    own = Histogram(RUN_BOUNDS)
    for seconds in [*RUN_BOUNDS, *(bound * 1.01 for bound in RUN_BOUNDS), 0.0]:
        theirs.observe(seconds)
        own.add(seconds)
    samples = [(s.labels["le"], s.value) for m in registry.collect() for s in m.samples if s.name == "h_bucket"]
    assert own.buckets() == samples


def test_a_copy_no_longer_changes():
    histogram = Histogram(RUN_BOUNDS)
    histogram.add(1)
    copy = histogram.copy()
    histogram.add(1)
    assert (copy.total, copy.buckets()[-1]) == (1, ("+Inf", 1))


def test_from_200_names_on_further_ones_are_counted_together():
    def count(metrics):
        for number in range(1000):
            metrics.ended(replace(JOB, name=f"name-{number}"), RetryAfter(1, "x"), 0.1)
            metrics.called(f"name-{number}", 200)
        metrics.ended(replace(JOB, name="name-0"), Dead("x"), 0.1)

    found = counted(count)
    assert len(found.labels("treadle_run_seconds_count")) == 201
    assert found.value("treadle_retries_total", name="name-199") == 1
    assert found.value("treadle_retries_total", name="name-200") is None
    assert found.value("treadle_retries_total", name="other") == 800
    assert found.value("treadle_dead_letters_total", name="name-0") == 1
    assert found.value("treadle_function_calls_total", name="other", kind="job", status="2xx") == 800


def test_a_job_that_is_named_other_is_counted_with_the_rest():
    capped = Capped(list, "other", most=2)
    for key in ("other", "a", "b", "c"):
        capped[key].append(key)
    assert capped == {"other": ["other", "b", "c"], "a": ["a"]}


# -- calls and requests


def test_calls_are_counted_by_the_class_of_their_status():
    def count(metrics):
        for status in (200, 204, 301, 404, 500, 503, None, 999, 0):
            metrics.called(REPORT, status)
        metrics.called(REPORT, 200, direct=True)

    found = counted(count)

    def calls(kind):
        return found.by("treadle_function_calls_total", "status", kind=kind)

    assert calls("job") == {"2xx": 2, "3xx": 1, "4xx": 1, "5xx": 2, "none": 1, "other": 2}
    assert calls("direct") == {"2xx": 1}


def test_requests_are_counted_by_route_method_and_status():
    def count(metrics):
        for status in (201, 201, 400):
            metrics.http_request("/v1/functions/{name}/jobs", "POST", status, 0.02)
        metrics.http_request("/healthz", "BREW", 405, 0.001)

    found = counted(count)
    assert found.value("treadle_http_requests_total", route="/v1/functions/{name}/jobs", method="POST", status="201") == 2
    assert found.value("treadle_http_requests_total", route="/healthz", method="other", status="405") == 1
    assert found.value("treadle_http_request_seconds_count", route="/v1/functions/{name}/jobs", method="POST") == 3


def test_callers_cannot_make_series_without_end():
    def count(metrics):
        for number in range(5000):
            metrics.http_request(f"/{number}", f"M{number}", number, 0.1)

    found = counted(count)
    assert len(found.labels("treadle_http_requests_total")) == 1001
    assert len(found.labels("treadle_http_request_seconds_count")) == 201
    assert found.value("treadle_http_requests_total", route="other", method="other", status="other") == 4000


# -- the store


def tallied(tally, clock=None):
    """The page over a store that holds that."""

    class Store(MemoryStore):
        async def tally(self):
            return tally

    async def main():
        return await page(Metrics(Store(), EngineClock(clock or ManualClock())))

    return asyncio.run(main())


def test_the_age_of_a_queue_is_that_of_its_longest_due_job():
    async def main():
        runs = Runs()
        await runs.enqueue("ghost")
        await runs.enqueue("ghost", delay=60.0)
        runs.clock.advance(30)
        now = runs.clock.now()
        await runs.store.enqueue([NewJob(runs.engine.new_id(), "mail", delay=3600.0)], now=now)
        return await runs.page()

    found = asyncio.run(main())
    assert found.value("treadle_queue_oldest_age_seconds", queue="functions") == 40
    assert found.value("treadle_queue_oldest_age_seconds", queue="default") == 0  # nothing there is due


def test_a_queue_where_nothing_waits_has_the_age_zero():
    found = tallied(Tally({("functions", REPORT, State.DONE): 3}, {}))
    assert found.value("treadle_queue_oldest_age_seconds", queue="functions") == 0


def test_the_store_is_asked_at_most_every_ten_seconds_and_shown_as_it_then_was():
    async def main():
        runs = Runs()
        for _ in range(3):
            empty = await page(runs.metrics)
        assert runs.store.calls["tally"] == 1
        await runs.enqueue("ghost")
        runs.clock.advance(9.9)
        assert (await page(runs.metrics)).keys() == empty.keys()
        assert runs.store.calls["tally"] == 1
        runs.clock.advance(0.1)
        assert (await page(runs.metrics)).value("treadle_jobs", queue="functions", name="function:ghost", state="pending") == 1
        assert runs.store.calls["tally"] == 2

    asyncio.run(main())


def test_scrapes_at_the_same_time_share_one_page_and_one_that_leaves_spoils_it_for_none():
    async def main():
        runs = Runs()
        gate = runs.store.hold("tally", times=1)
        scrapes = [asyncio.create_task(runs.metrics.render()) for _ in range(20)]
        await until(lambda: runs.store.calls["tally"])
        scrapes[0].cancel()
        gate.set()
        pages = await asyncio.gather(*scrapes[1:])
        assert {id(body) for _, body in pages} == {id(pages[0][1])}
        assert runs.store.calls["tally"] == 1
        await runs.metrics.close()

    asyncio.run(main())


def test_a_store_that_fails_is_down_and_its_last_values_are_gone(caplog):
    async def main():
        runs = Runs(good=answers)
        await runs.enqueue("good")
        await runs.engine.drain()
        assert (await runs.page()).value("treadle_jobs", queue="functions", name="function:good", state="done") == 1

        runs.store.fail_before("tally", times=1)
        found = await runs.page()
        assert found.value("treadle_store_up") == 0
        assert found.labels("treadle_jobs") == found.labels("treadle_queue_oldest_age_seconds") == []
        assert found.value("treadle_attempts_total", name="function:good", outcome="done") == 1
        assert (await page(runs.metrics)).value("treadle_store_up") == 0  # a store that fails is not asked more often
        assert runs.store.calls["tally"] == 2

        found = await runs.page()
        assert found.value("treadle_store_up") == 1
        assert found.value("treadle_jobs", queue="functions", name="function:good", state="done") == 1

    with caplog.at_level("WARNING", "treadle"):
        asyncio.run(main())
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["metrics", "metrics"]  # once gone, once back
    assert all(record.exc_info is None for record in caplog.records)


def test_a_fault_in_counting_is_told_and_costs_only_the_stores_part(caplog):
    async def main():
        runs = Runs()
        runs.store.fail_before("tally", error=lambda: ValueError("a fault"))
        assert (await page(runs.metrics)).value("treadle_store_up") == 0

    asyncio.run(main())
    assert "metrics failed, trying again" in caplog.text


def test_a_store_that_hangs_holds_no_scrape_up_and_is_not_asked_twice_at_once(monkeypatch):
    monkeypatch.setattr(holdings, "PATIENCE", 0.02)

    async def main():
        runs = Runs()
        gate = runs.store.hold("tally", times=1)
        assert (await page(runs.metrics)).value("treadle_store_up") == 0
        assert (await runs.page()).value("treadle_store_up") == 0
        assert runs.store.calls["tally"] == 1
        gate.set()
        async with asyncio.timeout(10):
            while (await page(runs.metrics)).value("treadle_store_up") == 0:
                pass
        assert runs.store.calls["tally"] == 1  # the late answer counts

    asyncio.run(main())


def test_a_store_that_never_answers_is_given_up_and_asked_again(monkeypatch, caplog):
    monkeypatch.setattr(holdings, "LONGEST", 0.02)

    async def main():
        runs = Runs()
        runs.store.hold("tally", times=1)
        assert (await page(runs.metrics)).value("treadle_store_up") == 0
        assert (await runs.page()).value("treadle_store_up") == 1

    asyncio.run(main())
    assert "counting its jobs took longer than 0.02 s" in caplog.text


def test_a_slow_store_is_asked_less_often():
    async def main():
        runs = Runs()
        gate = runs.store.hold("tally", times=1)
        scrape = asyncio.create_task(page(runs.metrics))
        await until(lambda: runs.store.calls["tally"])
        runs.clock.advance(3)  # what the answer took
        gate.set()
        await scrape
        runs.clock.advance(29)
        await page(runs.metrics)
        assert runs.store.calls["tally"] == 1
        runs.clock.advance(1)
        await page(runs.metrics)
        assert runs.store.calls["tally"] == 2

    asyncio.run(main())


def test_closing_ends_a_scrape_that_waits_for_the_store():
    async def main():
        runs = Runs()
        runs.store.hold("tally")
        scrape = asyncio.create_task(page(runs.metrics))
        await until(lambda: runs.store.calls["tally"])
        async with asyncio.timeout(10):
            await runs.metrics.close()
            await runs.metrics.close()
        assert (await scrape).value("treadle_store_up") == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_a_closed_one_that_was_never_used_is_no_matter():
    asyncio.run(Metrics(MemoryStore()).close())


def test_jobs_of_too_many_names_are_shown_together_by_queue_and_none_is_lost():
    counts = {("functions", f"function:f{number}", State.PENDING): number for number in range(1, 301)}
    counts |= {(f"q{number}", "mail", State.DEAD): 1000 for number in range(60)}
    now = ManualClock().now()
    oldest = {f"q{number}": now - timedelta(seconds=number) for number in range(60)}
    found = tallied(Tally(counts, oldest))

    series = found.labels("treadle_jobs")
    assert sum(found.value("treadle_jobs", **labels) for labels in series) == sum(counts.values())
    own = {(labels["queue"], labels["name"]) for labels in series} - {("functions", "other"), ("other", "other")}
    assert len(own) <= 200
    assert found.value("treadle_jobs", queue="functions", name="function:f300", state="pending") == 300
    assert found.value("treadle_jobs", queue="functions", name="function:f1", state="pending") is None
    ages = found.by("treadle_queue_oldest_age_seconds", "queue")
    assert len(ages) == 51
    assert max(ages.values()) == 59


def test_what_has_a_series_keeps_it_while_it_is_there():
    kept = Kept(2)
    assert kept.choose({"a": 1, "b": 2, "c": 3}) == {"b", "c"}
    assert kept.choose({"a": 10, "b": 2, "c": 3}) == {"b", "c"}
    assert kept.choose({"a": 10, "c": 3, "d": 1}) == {"a", "c"}
    assert kept.choose({}) == set()


# -- the page as a whole


def test_the_names_and_types_are_the_documented_ones():
    def count(metrics):
        metrics.claimed(1, 0.1)
        metrics.ended(JOB, Released(), 0.1)

    types = {name: kind for name, kind in counted(count).types.items() if name.startswith("treadle_")}
    assert types == {
        "treadle_build_info": "gauge",
        "treadle_start_time_seconds": "gauge",
        "treadle_store_up": "gauge",
        "treadle_jobs": "gauge",
        "treadle_queue_oldest_age_seconds": "gauge",
        "treadle_claim_seconds": "histogram",
        "treadle_claimed_jobs": "counter",
        "treadle_run_seconds": "histogram",
        "treadle_attempts": "counter",
        "treadle_retries": "counter",
        "treadle_dead_letters": "counter",
        "treadle_function_calls": "counter",
        "treadle_http_requests": "counter",
        "treadle_http_request_seconds": "histogram",
    }


def test_the_version_and_the_process_are_named():
    found = counted()
    [build] = found.labels("treadle_build_info")
    assert build["version"] == treadle.__version__
    assert found.value("treadle_start_time_seconds") > found.value("process_start_time_seconds") - 1
    assert found.value("process_resident_memory_bytes") > 0


def test_odd_names_spoil_nothing():
    odd = ['a"b\\c\nd', "zażółć ☃", "\ud800", "a b", "{}", "\x00", "e\u2028f"]

    def count(metrics):
        for name in odd:
            metrics.ended(replace(JOB, name=name), Done(), 0.1)
            metrics.called(name, 200)
            metrics.http_request(name, name, 200, 0.1)

    found = counted(count)
    names = {labels["name"] for labels in found.labels("treadle_retries_total")}
    assert names == {*odd, "?"} - {"\ud800"}
    found = tallied(Tally({(name, name, State.PENDING): 1 for name in odd}, {}))
    assert {labels["queue"] for labels in found.labels("treadle_jobs")} == {*odd, "?"} - {"\ud800"}


def test_two_of_them_share_nothing_and_leave_the_global_registry_alone():
    before = {metric.name for metric in prometheus_client.REGISTRY.collect()}
    mine, other = Metrics(MemoryStore()), Metrics(MemoryStore())
    mine.ended(JOB, Done(), 0.1)

    async def main():
        return await page(mine), await page(other)

    found, empty = asyncio.run(main())
    assert found.value("treadle_run_seconds_count", name=REPORT) == 1
    assert empty.labels("treadle_run_seconds_count") == []
    assert {metric.name for metric in prometheus_client.REGISTRY.collect()} == before


def test_the_page_is_written_beside_the_loop_and_what_is_counted_meanwhile_comes_with_the_next(monkeypatch):
    written_by, begun, go_on = [], threading.Event(), threading.Event()
    generate = prometheus_client.generate_latest

    def slowly(registry):
        written_by.append(threading.current_thread())
        begun.set()
        assert go_on.wait(10)
        return generate(registry)

    monkeypatch.setattr("treadle.functions.metrics.page.generate_latest", slowly)

    async def main():
        metrics = Metrics(MemoryStore())
        scrape = asyncio.create_task(page(metrics))
        await until(begun.is_set)
        metrics.ended(JOB, Done(), 0.1)
        go_on.set()
        assert (await scrape).labels("treadle_run_seconds_count") == []
        assert (await page(metrics)).value("treadle_run_seconds_count", name=REPORT) == 1

    asyncio.run(main())
    assert threading.main_thread() not in written_by


def test_a_page_that_cannot_be_written_is_an_error_of_the_scrape_and_not_of_the_next(monkeypatch):
    def broken(registry):
        raise StoreUnavailable("broken")

    async def main():
        metrics = Metrics(MemoryStore())
        with monkeypatch.context() as patch:
            patch.setattr("treadle.functions.metrics.page.generate_latest", broken)
            with pytest.raises(StoreUnavailable):
                await metrics.render()
        assert (await page(metrics)).value("treadle_store_up") == 1

    asyncio.run(main())
    gc.collect()


def test_the_page_of_the_documentation_names_what_is_there_with_its_labels():
    documented = {}
    text = (Path(__file__).parents[2] / "docs/how-to/observe.md").read_text()
    for name, kind, labels in re.findall(r"^\| `(treadle_\w+)` \| (\w+)[^|]* \|([^|]*)\|", text, re.MULTILINE):
        documented[name] = (kind, set(re.findall(r"`(\w+)`", labels)))

    async def main():
        runs = Runs(good=answers)
        await runs.enqueue("good")
        await runs.engine.drain()
        runs.metrics.called("function:good", 200)
        runs.metrics.http_request("/healthz", "GET", 200, 0.1)
        return await runs.page()

    found = asyncio.run(main())
    there = {}
    for sample, *labels in found:
        family = re.sub(r"_(bucket|sum|count)$", "", sample)
        if family.startswith("treadle_"):
            kind = found.types.get(family) or found.types[family.removesuffix("_total")]
            there[family] = (kind, {label for label, _ in labels} - {"le"} | there.get(family, ("", set()))[1])
    assert documented == there
    used = set(re.findall(r"\btreadle_\w+", text))
    assert {re.sub(r"_bucket$", "", name) for name in used} <= set(there)
