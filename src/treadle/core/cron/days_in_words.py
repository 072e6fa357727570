"""The days and months of an expression in English: "on the 1st and 15th of the month or on Monday", "in July"."""

from __future__ import annotations

from calendar import day_name, month_name

from treadle.core.cron.expression import Expression
from treadle.core.cron.fields import DAY, MONTH, WEEKDAY, each
from treadle.core.cron.wording import SHORTEST_RUN, in_a_row, joined, listed, ordinal, rhythm


def days_in_words(expression: Expression) -> list[str]:
    """The phrases that follow the times: none where every day is meant by two bare `*`, up to two otherwise."""
    months = tuple(each(expression.months))
    days = "" if expression.any_day else _days(tuple(each(expression.days)))
    weekdays = "" if expression.any_weekday else _weekdays(expression.weekdays)
    every_month = expression.months == MONTH.full
    if not days and not weekdays:
        return [] if every_month else [_months(months)]
    if (days and expression.days == DAY.full) or (weekdays and expression.weekdays == WEEKDAY.full):
        return ["every day" if every_month else f"every day {_months(months)}"]  # whichever it is, either is enough (T6)
    if days and not weekdays and not every_month:
        return [f"{days} of {_of_months(months)}"]
    phrase = " or ".join(filter(None, [days and f"{days} of the month", weekdays]))
    return [phrase] if every_month else [phrase, _months(months)]


def _days(values: tuple[int, ...]) -> str:
    step = rhythm(values)
    if step is None or step == 1:
        return f"on the {listed(values, ordinal)}"
    return f"on every {ordinal(step)} day from the {ordinal(values[0])} to the {ordinal(values[-1])}"


def _weekdays(weekdays: int) -> str:
    values = sorted((value - 1) % 7 for value in each(weekdays))  # the week begins on Monday
    if len(values) >= SHORTEST_RUN and in_a_row(values):
        return f"{day_name[values[0]]} to {day_name[values[-1]]}"
    return f"on {joined([day_name[value] for value in values])}"


def _months(values: tuple[int, ...]) -> str:
    if len(values) >= SHORTEST_RUN and in_a_row(values):
        return f"from {month_name[values[0]]} to {month_name[values[-1]]}"
    return f"in {joined([month_name[value] for value in values])}"


def _of_months(values: tuple[int, ...]) -> str:
    if len(values) >= SHORTEST_RUN and in_a_row(values):
        return f"every month {_months(values)}"
    return joined([month_name[value] for value in values])
