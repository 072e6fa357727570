"""Figures from records: medians of the runs, and ratios of runs that were made close in time."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Record = dict[str, Any]


class Figures:
    """The records of one store."""

    def __init__(self, records: Iterable[Record], store: str) -> None:
        self.store = store
        self.records = [record for record in records if record.get("store") == store and "measure" in record]
        self.subjects = list(dict.fromkeys(record["subject"] for record in self.records))

    def of(self, subject: str, measure: str, field: str = "rate") -> dict[int, float]:
        """The field by run, at the subject's best setting."""
        settings: dict[Any, dict[int, float]] = {}
        for record in self.records:
            if record["subject"] == subject and record["measure"] == measure and field in record:
                settings.setdefault(record.get("setting"), {})[record["run"]] = record[field]
        if not settings:
            return {}
        if measure != "drain":
            return next(iter(settings.values()))
        return settings[self.best(subject)]

    def best(self, subject: str) -> Any:
        """The setting at which the subject drains fastest, by the median."""
        rates: dict[Any, list[float]] = {}
        for record in self.records:
            if record["subject"] == subject and record["measure"] == "drain" and "rate" in record:
                rates.setdefault(record["setting"], []).append(record["rate"])
        return max(rates, key=lambda setting: statistics.median(rates[setting])) if rates else None

    def median(self, subject: str, measure: str, field: str = "rate") -> float | None:
        """The median of the runs, None where nothing counts."""
        runs = self.of(subject, measure, field)
        return statistics.median(runs.values()) if runs else None

    def ratio(self, subject: str, other: str, measure: str, field: str = "rate", of: str | None = None) -> float | None:
        """The median of the ratios of each run to the same run of another; `of` is the other's measure, if not the same."""
        ours, theirs = self.of(subject, measure, field), self.of(other, of or measure, field)
        ratios = [ours[run] / theirs[run] for run in ours if theirs.get(run)]
        return statistics.median(ratios) if ratios else None

    def named(self, **wanted: Any) -> list[str]:
        """The subjects whose records have these values, such as `role="peer"`."""
        found = [
            record["subject"]
            for record in self.records
            if "role" in record and all(record[field] == value for field, value in wanted.items())
        ]
        return list(dict.fromkeys(found))

    def best_of(
        self, subjects: Sequence[str], measure: str, field: str = "rate", choose: Callable[..., str] = max
    ) -> str | None:
        """The subject with the greatest median, or with `choose=min` the least."""
        medians = {subject: self.median(subject, measure, field) for subject in subjects}
        known = {subject: value for subject, value in medians.items() if value is not None}
        return choose(known, key=lambda subject: known[subject]) if known else None

    def info(self, subject: str) -> Record:
        """A record of the subject with what is told of it beside its figures."""
        return next((record for record in self.records if record["subject"] == subject and "note" in record), {})
