"""What an expression may be, and what people are told of one that is refused (T5, T7)."""

from __future__ import annotations

from calendar import isleap, monthrange

import pytest
from cron_walk import LIMITS, Matcher

from treadle.core.cron import Cron, parse
from treadle.core.cron.fields import each
from treadle.core.errors import InvalidArgument

FIVE = "five fields (minute, hour, day of month, month, day of week)"
SIX = "six fields (second, minute, hour, day of month, month, day of week)"
FORMS = "ranges a-b, steps */n and a-b/n, and lists of these with commas"


def refusal(text, **options) -> str:
    with pytest.raises(InvalidArgument) as raised:
        parse(text, **options)
    message = str(raised.value)
    assert "\n" not in message
    assert len(message) < 400
    return message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        # values
        ("60 * * * *", "has the minute '60'; allowed are 0 to 59"),
        ("* 24 * * *", "has the hour '24'; allowed are 0 to 23"),
        ("* * 0 * *", "has the day of month '0'; allowed are 1 to 31"),
        ("* * 32 * *", "has the day of month '32'; allowed are 1 to 31"),
        ("* * * 0 *", "has the month '0'; allowed are 1 to 12 or JAN to DEC"),
        ("* * * 13 *", "has the month '13'; allowed are 1 to 12 or JAN to DEC"),
        ("* * * * 8", "has the day of week '8'; allowed are 0 to 7 or SUN to SAT"),
        ("* 0-24 * * *", "has the hour '24'; allowed are 0 to 23"),
        ("1,2,99 * * * *", "has the minute '99'; allowed are 0 to 59"),
        ("99999999999999999999999999999999999999999999999999999999999999 * * * *", "has the minute '9999999999999"),
        # words
        ("five * * * *", "has the minute 'five'; allowed are 0 to 59"),
        ("MON * * * *", "has the minute 'MON'; allowed are 0 to 59"),
        ("* * * MON *", "has the month 'MON'; allowed are 1 to 12 or JAN to DEC"),
        ("* * * * JAN", "has the day of week 'JAN'; allowed are 0 to 7 or SUN to SAT"),
        ("* * * * MONDAY", "has the day of week 'MONDAY'; allowed are 0 to 7 or SUN to SAT"),
        ("* * * * MON-XYZ", "has the day of week 'XYZ'; allowed are 0 to 7 or SUN to SAT"),
        ("H H * * *", "has the minute 'H'; allowed are 0 to 59"),
        # steps
        ("*/0 * * * *", "has the minute '*/0' with a step of '0'; allowed are steps of 1 to 60"),
        ("*/000 * * * *", "has the minute '*/000' with a step of '000'; allowed are steps of 1 to 60"),
        ("*/61 * * * *", "has the minute '*/61' with a step of '61'; allowed are steps of 1 to 60"),
        ("* */25 * * *", "has the hour '*/25' with a step of '25'; allowed are steps of 1 to 24"),
        ("* * */32 * *", "has the day of month '*/32' with a step of '32'; allowed are steps of 1 to 31"),
        ("* * * */13 *", "has the month '*/13' with a step of '13'; allowed are steps of 1 to 12"),
        ("* * * * */8", "has the day of week '*/8' with a step of '8'; allowed are steps of 1 to 7"),
        ("1-5/0 * * * *", "has the minute '1-5/0' with a step of '0'; allowed are steps of 1 to 60"),
        ("5/15 * * * *", "has the minute '5/15', a step without a range; allowed are */15 and a range such as 5-59/15"),
        ("* * * * MON/2", "has the day of week 'MON/2', a step without a range; allowed are */2 and a range such as MON-6/2"),
        ("*/-1 * * * *", "has the minute '*/-1', which cannot be read; allowed are *, 0 to 59, " + FORMS),
        ("*/ * * * *", "has the minute '*/', which cannot be read"),
        ("/5 * * * *", "has the minute '/5', which cannot be read"),
        ("*/5/2 * * * *", "has the minute '*/5/2', which cannot be read"),
        ("*/1.5 * * * *", "has the minute '*/1.5', which cannot be read"),
        ("*/MON * * * *", "has the minute '*/MON', which cannot be read"),
        # ranges and lists
        ("30-10 * * * *", "has the minute '30-10', a range that runs backward; allowed is low-high"),
        ("* * * DEC-JAN *", "has the month 'DEC-JAN', a range that runs backward"),
        (
            "* * * * 6-0",
            "has the day of week '6-0', a range that runs backward; allowed is low-high; Sunday at the end of a range",
        ),
        ("* * * * FRI-SUN", "Sunday at the end of a range is 7: write 5-7"),
        ("1- * * * *", "has the minute '1-', which cannot be read"),
        ("-5 * * * *", "has the minute '-5', which cannot be read"),
        ("1-2-3 * * * *", "has the minute '1-2-3', which cannot be read"),
        ("*-5 * * * *", "has the minute '*-5', which cannot be read"),
        ("** * * * *", "has the minute '**', which cannot be read"),
        ("1, * * * *", "has an empty list member in its minute '1,'; allowed are *, 0 to 59, " + FORMS),
        (",1 * * * *", "has an empty list member in its minute ',1'"),
        ("1,,2 * * * *", "has an empty list member in its minute '1,,2'"),
        (", * * * *", "has an empty list member in its minute ','"),
        # signs of other grammars
        (
            "0 0 ? * *",
            "has the day of month '?', which cannot be read; ?, L, W and # are not supported; allowed are *, 1 to 31",
        ),
        ("0 0 L * *", "has the day of month 'L'; ?, L, W and # are not supported; allowed are 1 to 31"),
        ("0 0 LW * *", "has the day of month 'LW'; ?, L, W and # are not supported; allowed are 1 to 31"),
        ("0 0 15W * *", "has the day of month '15W', which cannot be read; ?, L, W and # are not supported"),
        ("0 0 * * 5L", "has the day of week '5L', which cannot be read; ?, L, W and # are not supported"),
        ("0 0 * * 5#2", "has the day of week '5#2', which cannot be read; ?, L, W and # are not supported"),
        ("0 0 * * MON#1", "has the day of week 'MON#1', which cannot be read; ?, L, W and # are not supported"),
        ("+5 * * * *", "has the minute '+5', which cannot be read"),
        ("1_0 * * * *", "has the minute '1_0', which cannot be read"),
        ("0x5 * * * *", "has the minute '0x5', which cannot be read"),
        ("1~5 * * * *", "has the minute '1~5', which cannot be read"),
        # the number of fields
        ("", f"has 0 fields; expected are {FIVE}"),
        (" \t ", f"has 0 fields; expected are {FIVE}"),
        ("*", f"has 1 field; expected are {FIVE}"),
        ("* * * *", f"has 4 fields; expected are {FIVE}"),
        ("0 * * * * *", f"has 6 fields; expected are {FIVE}"),
        ("0 0 3 * * * 2026", f"has 7 fields; expected are {FIVE}"),
        ("TZ=UTC 0 0 * * *", f"has 6 fields; expected are {FIVE}"),
        # aliases
        ("@daily", f"is an alias, and aliases are not taken: write {FIVE}; for @daily write 0 0 * * *"),
        ("@Hourly", f"is an alias, and aliases are not taken: write {FIVE}; for @hourly write 0 * * * *"),
        ("@weekly", "for @weekly write 0 0 * * 0"),
        ("@yearly", "for @yearly write 0 0 1 1 *"),
        ("@reboot", f"is an alias, and aliases are not taken: write {FIVE}"),
        ("@every 5m", "is an alias"),
        # characters
        ("０ 3 * * *", "has the character '０'; only printable ASCII, blanks and tabs are allowed"),
        ("² * * * *", "has the character '²'"),
        ("٣ * * * *", "has the character"),
        ("0 0 * * ſun", "has the character 'ſ'"),
        ("0\u00a00 * * *", "has the character '\\xa0'"),
        ("0 0 * * *\n", "has the character '\\n'"),
        ("\n0 0 * * *", "has the character '\\n'"),
        ("0 0 * * *\r\n", "has the character '\\r'"),
        ("0 0 * * *\n0 1 * * *", "has the character '\\n'"),
        ("0\v0 * * *", "has the character '\\x0b'"),
        ("0 0 * * *\0", "has the character '\\x00'"),
        ("0 0 * * \ud800", "has the character '\\ud800'"),
        ("0 " * 129, "has 258 characters; at most 256 are allowed"),
        ("1," * 200_000, "has 400,000 characters; at most 256 are allowed"),
    ],
)
def test_refused_saying_which_field_which_value_and_what_is_allowed(text, told):
    assert told in refusal(text)


@pytest.mark.parametrize("text", [None, 5, b"* * * * *", ["*"] * 5, True])
def test_what_is_not_text_is_refused(text):
    with pytest.raises(InvalidArgument, match="a cron expression must be text, not "):
        parse(text)


def test_the_message_shows_the_expression_but_not_all_of_a_long_one():
    assert refusal("61 * * * *") == "the cron expression '61 * * * *' has the minute '61'; allowed are 0 to 59"
    assert "'" + "1," * 29 + "1…' has 4 fields" in refusal("1," * 60 + "1 * * *")


def values(text: str, place: int, **options) -> list[int]:
    e = parse(text, **options)
    return list(each((e.seconds, e.minutes, e.hours, e.days, e.months, e.weekdays)[place]))


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("*/20 * * * *", 1, [0, 20, 40]),
        ("*/60 * * * *", 1, [0]),
        ("05 * * * *", 1, [5]),
        ("0000000000005 * * * *", 1, [5]),
        ("3-59/15 * * * *", 1, [3, 18, 33, 48]),
        ("5,1,5,3-4 * * * *", 1, [1, 3, 4, 5]),
        ("51-59/57 * * * *", 1, [51]),
        ("*,15 * * * *", 1, list(range(60))),
        ("6-6/1 * * * *", 1, [6]),
        ("1-1/2 * * * *", 1, [1]),
        ("* */24 * * *", 2, [0]),
        ("* * */15 * *", 3, [1, 16, 31]),
        ("* * */31 * *", 3, [1]),
        ("* * * */5 *", 4, [1, 6, 11]),
        ("* * * feb,Nov-DEC *", 4, [2, 11, 12]),
        ("* * * JAN-DEC/6 *", 4, [1, 7]),
        ("* * * * 0", 5, [0]),
        ("* * * * 7", 5, [0]),
        ("* * * * 0-7", 5, [0, 1, 2, 3, 4, 5, 6]),
        ("* * * * 5-7", 5, [0, 5, 6]),
        ("* * * * 5-7/2", 5, [0, 5]),
        ("* * * * */2", 5, [0, 2, 4, 6]),
        ("* * * * */7", 5, [0]),
        ("* * * * mon-FRI/2", 5, [1, 3, 5]),
        ("* * * * FRI-7", 5, [0, 5, 6]),
        ("* * * * sUn,SAT", 5, [0, 6]),
    ],
)
def test_the_values_that_a_field_admits(text, place, expected):
    assert values(text, place) == expected


def test_each_field_takes_its_whole_range_and_not_one_more():
    for place, (low, high) in enumerate(LIMITS):
        for value in range(high + 2):
            fields = ["*"] * 6
            fields[place] = str(value)
            text = " ".join(fields)
            if low <= value <= high:
                assert values(text, place, seconds=True) == [0 if place == 5 and value == 7 else value]
            else:
                refusal(text, seconds=True)


def test_five_or_six_fields_as_asked():
    assert parse("*/1 * * * *", seconds=None).six_fields == "0 */1 * * * *"
    assert parse("7 */1 * * * *", seconds=None).six_fields == "7 */1 * * * *"
    assert f"expected are {SIX}" in refusal("* * * * *", seconds=True)
    assert f"expected are {FIVE}, or six with the second first" in refusal("* * * *", seconds=None)
    assert refusal("@hourly", seconds=True).endswith(f"write {SIX}; for @hourly write 0 0 * * * *")
    assert "or six with the second first; for @hourly write 0 * * * *" in refusal("@hourly", seconds=None)
    assert "has the second '60'; allowed are 0 to 59" in refusal("60 * * * * *", seconds=True)
    assert Cron.with_seconds("*/1 * * * *") == Cron("0 */1 * * * *", seconds=True)


def test_blanks_and_tabs_part_fields_and_may_stand_around_them():
    assert parse(" 0 \t 3 *\t* *\t ").text == "0 3 * * *"
    assert parse("*\t*\t*\t*\t*\t*", seconds=None).six_fields == "* * * * * *"


def test_the_longest_text_is_taken():
    text = ",".join(["0-59"] * 49) + " * * * *"
    assert len(text) == 252
    parse(text + "    ")
    refusal(text + "     ")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0 0 30 2 *", "never comes true: there is no day 30 in February"),
        ("* * 30-31 2 *", "never comes true: there is no day 30 in February"),
        ("*/5 * 30,31 feb *", "never comes true: there is no day 30 in February"),
        ("0 0 31 6,9,11 *", "never comes true: there is no day 31 in June, September and November"),
        ("0 0 " + ",".join(["31,30"] * 40) + " 2 *", "never comes true: there is no day 30 in February"),
        ("0 0 31 2,4,6,9,11 *", "never comes true: there is no day 31 in February, April, June, September and November"),
    ],
)
def test_what_never_comes_true_is_refused(text, told):
    assert told in refusal(text)


def test_what_never_comes_true_is_exactly_what_the_calendar_lacks():
    comes = {
        (m, d)
        for year in range(2000, 2400)
        if isleap(year) or year == 2001
        for m in range(1, 13)
        for d in range(1, monthrange(year, m)[1] + 1)
    }
    for chosen in range(1, 1 << 12):
        months = [m for m in range(1, 13) if chosen >> (m - 1) & 1]
        field = ",".join(map(str, months))
        for day in (29, 30, 31):
            text = f"0 0 {day} {field} *"
            if any((m, day) in comes for m in months):
                parse(text)
            else:
                assert "never comes true" in refusal(text)
            if chosen < 64:
                parse(f"0 0 {day} {field} 1")  # a weekday always comes, and either is enough (T6)


def test_the_oracle_of_the_other_tests_reads_an_expression_alike():
    assert sorted(Matcher("1-9/4,50 * * * *").sets[1]) == values("1-9/4,50 * * * *", 1)
