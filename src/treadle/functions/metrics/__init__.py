"""Metrics in the Prometheus format: what a service process did, and what its store holds (F15)."""

from treadle.functions.metrics.metrics import Metrics

__all__ = ["Metrics"]
