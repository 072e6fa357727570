"""What an expression means, as a sentence in English: its times, its days, its months.

The sentence is made from the sets of values and not from the text, so that it is true of every expression (`*/45` is
"at minutes 0 and 45 of every hour"), and expressions that differ in meaning differ in words.
"""

from __future__ import annotations

from treadle.core.cron.days_in_words import days_in_words
from treadle.core.cron.expression import Expression
from treadle.core.cron.fields import each
from treadle.core.cron.times_in_words import times_in_words


def describe(expression: Expression) -> str:
    """The sentence, without a full stop: "At 09:00, Monday to Friday"."""
    times = times_in_words(tuple(each(expression.seconds)), tuple(each(expression.minutes)), tuple(each(expression.hours)))
    return ", ".join([times, *days_in_words(expression)])
