"""Cron: expressions, their instants in a time zone, and their description in English (T5 to T8)."""

from treadle.core.cron.cron import Cron
from treadle.core.cron.expression import Expression, parse
from treadle.core.cron.occurrence import Occurrence, next_occurrence, previous_instant

__all__ = ["Cron", "Expression", "Occurrence", "next_occurrence", "parse", "previous_instant"]
