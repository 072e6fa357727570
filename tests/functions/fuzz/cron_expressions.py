"""Valid cron expressions, for hypothesis and, as the string format `cron`, for schemathesis."""

from __future__ import annotations

from hypothesis import strategies as st

SECOND = MINUTE = (0, 59)
HOUR, DAY, MONTH, WEEKDAY = (0, 23), (1, 28), (1, 12), (0, 6)


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(sorted).map(lambda ends: f"{ends[0]}-{ends[1]}")
    step = st.integers(1, high - low)
    return st.one_of(
        st.just("*"),
        number.map(str),
        span,
        st.builds("*/{}".format, step),
        st.builds("{}/{}".format, span, step),
        st.lists(number, min_size=2, max_size=4, unique=True).map(lambda found: ",".join(map(str, sorted(found)))),
    )


def cron_expressions() -> st.SearchStrategy[str]:
    """Of five or six fields."""
    five = st.tuples(*(field(*ends) for ends in (MINUTE, HOUR, DAY, MONTH, WEEKDAY))).map(" ".join)
    return st.one_of(five, st.tuples(field(*SECOND), five).map(" ".join))
