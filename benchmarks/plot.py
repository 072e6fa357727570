"""The plot of a run: how fast each subject drains, and how long a job waits for an idle worker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

from benchmarks.figures import Figures, Record

mpl.use("Agg")

from matplotlib import pyplot as plt  # after the choice of what draws
from matplotlib.axes import Axes

_COLOURS = {"treadle": "#0b6e4f", "bare": "#b8c4bb", "peer": "#8a7f8d"}


def draw(records: Sequence[Record], path: Path) -> None:
    """Write the plot; nothing where nothing was drained."""
    stores = list(dict.fromkeys(record["store"] for record in records if record.get("measure") == "drain" and "rate" in record))
    if not stores:
        return
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "treadle", "font.family": "sans-serif", "font.size": 9})
    rows = [len(Figures(records, store).subjects) for store in stores]
    figure, axes = plt.subplots(
        len(stores),
        2,
        figsize=(9.6, 0.9 * len(stores) + 0.32 * sum(rows)),
        squeeze=False,
        height_ratios=rows,
        layout="constrained",
    )
    for (rate, wait), store in zip(axes, stores, strict=True):
        figures = Figures(records, store)
        _bars(rate, figures, "drain", "rate", f"{store}: drain, one worker, jobs/s", "{:,.0f}")
        pickup = "pickup_here" if store == "memory" else "pickup"
        _bars(wait, figures, pickup, "p50_ms", f"{store}: pickup when idle, p50, ms", "{:.2f}")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def _bars(axes: Axes, figures: Figures, measure: str, field: str, title: str, form: str) -> None:
    values = {subject: figures.median(subject, measure, field) for subject in reversed(figures.subjects)}
    known = {subject: value for subject, value in values.items() if value is not None}
    roles = {record["subject"]: record.get("role", "peer") for record in figures.records}
    bars = axes.barh(list(known), list(known.values()), color=[_COLOURS[roles[subject]] for subject in known], height=0.7)
    axes.bar_label(bars, [form.format(value) for value in known.values()], padding=3)
    axes.set_title(title, loc="left", fontsize=9)
    axes.margins(x=0.18)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.tick_params(left=False, bottom=False, labelbottom=False)
