"""Every expression in English: a table read by people, and the promise that different meanings differ in words."""

from __future__ import annotations

import random

import pytest
from cron_walk import any_expression

from treadle.core.cron import Cron
from treadle.core.errors import InvalidArgument

FIVE_FIELDS = [
    ("* * * * *", "Every minute"),
    ("*/1 * * * *", "Every minute"),
    ("*/2 * * * *", "Every 2 minutes"),
    ("*/5 * * * *", "Every 5 minutes"),
    ("*/10 * * * *", "Every 10 minutes"),
    ("*/15 * * * *", "Every 15 minutes"),
    ("*/20 * * * *", "Every 20 minutes"),
    ("*/30 * * * *", "Every 30 minutes"),
    ("0,30 * * * *", "Every 30 minutes"),
    ("0-59/5 * * * *", "Every 5 minutes"),
    ("0 * * * *", "Every hour"),
    ("0 */1 * * *", "Every hour"),
    ("15 * * * *", "At minute 15 of every hour"),
    ("59 * * * *", "At minute 59 of every hour"),
    ("*/60 * * * *", "Every hour"),
    ("15,45 * * * *", "At minutes 15 and 45 of every hour"),
    ("5,10,55 * * * *", "At minutes 5, 10 and 55 of every hour"),
    ("*/7 * * * *", "Every 7 minutes from minute 0 to 56 of every hour"),
    ("*/45 * * * *", "At minutes 0 and 45 of every hour"),
    ("*/25 * * * *", "At minutes 0, 25 and 50 of every hour"),
    ("*/11 * * * *", "Every 11 minutes from minute 0 to 55 of every hour"),
    ("3-59/15 * * * *", "Every 15 minutes from minute 3 to 48 of every hour"),
    ("5-59/5 * * * *", "Every 5 minutes from minute 5 to 55 of every hour"),
    ("1-59/2 * * * *", "Every 2 minutes from minute 1 to 59 of every hour"),
    ("0-10 * * * *", "Every minute from minute 0 to 10 of every hour"),
    ("10-12 * * * *", "At minutes 10 to 12 of every hour"),
    ("50-59 * * * *", "Every minute from minute 50 to 59 of every hour"),
    ("0-5,30 * * * *", "At minutes 0 to 5 and 30 of every hour"),
    ("1,2,3,4,10,20-30/5 * * * *", "At minutes 1 to 4, 10, 20, 25 and 30 of every hour"),
    ("* 9 * * *", "Every minute from 09:00 to 09:59"),
    ("* 9-17 * * *", "Every minute from 09:00 to 17:59"),
    ("* 9,17 * * *", "Every minute of hours 9 and 17"),
    ("*/5 9 * * *", "Every 5 minutes from 09:00 to 09:55"),
    ("*/5 9-17 * * *", "Every 5 minutes from 09:00 to 17:55"),
    ("*/30 9-17 * * *", "Every 30 minutes from 09:00 to 17:30"),
    ("0,30 9-17 * * *", "Every 30 minutes from 09:00 to 17:30"),
    ("*/15 8-10,14-16 * * *", "Every 15 minutes of hours 8 to 10 and 14 to 16"),
    ("*/15 */2 * * *", "Every 15 minutes of every 2nd hour from 0 to 22"),
    ("*/7 9-17 * * *", "Every 7 minutes from minute 0 to 56 of every hour from 9 to 17"),
    ("10-20 9 * * *", "Every minute from 09:10 to 09:20"),
    ("30-45 9 * * *", "Every minute from 09:30 to 09:45"),
    ("5,10,55 9-17 * * *", "At minutes 5, 10 and 55 of every hour from 9 to 17"),
    ("5,10 1-23/2 * * *", "At minutes 5 and 10 of every 2nd hour from 1 to 23"),
    ("0 3 * * *", "At 03:00"),
    ("00 00 * * *", "At 00:00"),
    ("15 3 * * *", "At 03:15"),
    ("30 23 * * *", "At 23:30"),
    ("0 0,12 * * *", "At 00:00 and 12:00"),
    ("0 9,12,18 * * *", "At 09:00, 12:00 and 18:00"),
    ("0 9,12,15,19 * * *", "At 09:00, 12:00, 15:00 and 19:00"),
    ("0 */12 * * *", "At 00:00 and 12:00"),
    ("0 */8 * * *", "At 00:00, 08:00 and 16:00"),
    ("0 */6 * * *", "Every 6 hours"),
    ("0 */4 * * *", "Every 4 hours"),
    ("0 */3 * * *", "Every 3 hours"),
    ("0 */2 * * *", "Every 2 hours"),
    ("30 */2 * * *", "Every 2 hours from 00:30 to 22:30"),
    ("30 */6 * * *", "Every 6 hours from 00:30 to 18:30"),
    ("0 1-23/2 * * *", "Every 2 hours from 01:00 to 23:00"),
    ("0 */5 * * *", "Every 5 hours from 00:00 to 20:00"),
    ("0 */7 * * *", "Every 7 hours from 00:00 to 21:00"),
    ("0 */9 * * *", "At 00:00, 09:00 and 18:00"),
    ("0 */11 * * *", "At 00:00, 11:00 and 22:00"),
    ("0 9-17 * * *", "Every hour from 09:00 to 17:00"),
    ("30 9-17 * * *", "Every hour from 09:30 to 17:30"),
    ("0 9-12 * * *", "Every hour from 09:00 to 12:00"),
    ("0 9-17/2 * * *", "Every 2 hours from 09:00 to 17:00"),
    ("0 9-17/4 * * *", "At 09:00, 13:00 and 17:00"),
    ("0,30 9 * * *", "At 09:00 and 09:30"),
    ("0,30 9,17 * * *", "At 09:00, 09:30, 17:00 and 17:30"),
    ("*/20 9 * * *", "At 09:00, 09:20 and 09:40"),
    ("*/15 9 * * *", "Every 15 minutes from 09:00 to 09:45"),
    ("0,1 0,6,12 * * *", "At 00:00, 00:01, 06:00, 06:01, 12:00 and 12:01"),
    ("0 0,2,3,7,8,9,15,20 * * *", "At minute 0 of hours 0, 2, 3, 7 to 9, 15 and 20"),
    ("7,23 0,2,3,7,8,9,15,20 * * *", "At minutes 7 and 23 of hours 0, 2, 3, 7 to 9, 15 and 20"),
    ("0 22-23,0-5 * * *", "At minute 0 of hours 0 to 5, 22 and 23"),
    ("0 9 * * 1-5", "At 09:00, Monday to Friday"),
    ("0 9 * * MON-FRI", "At 09:00, Monday to Friday"),
    ("0 9 * * 1", "At 09:00, on Monday"),
    ("0 9 * * sun", "At 09:00, on Sunday"),
    ("0 9 * * 7", "At 09:00, on Sunday"),
    ("0 9 * * 6,0", "At 09:00, on Saturday and Sunday"),
    ("0 9 * * 6-7", "At 09:00, on Saturday and Sunday"),
    ("0 9 * * 5-7", "At 09:00, Friday to Sunday"),
    ("0 9 * * 1,3,5", "At 09:00, on Monday, Wednesday and Friday"),
    ("0 9 * * */2", "At 09:00, on Tuesday, Thursday, Saturday and Sunday"),
    ("0 9 * * 1-3,5", "At 09:00, on Monday, Tuesday, Wednesday and Friday"),
    ("0 9 * * 0,1,6", "At 09:00, on Monday, Saturday and Sunday"),
    ("0 9 * * 0-6", "At 09:00, every day"),
    ("0 9 * * 1-7", "At 09:00, every day"),
    ("0 9 * * *,1", "At 09:00, every day"),
    ("0 0 1 * *", "At 00:00, on the 1st of the month"),
    ("0 0 2 * *", "At 00:00, on the 2nd of the month"),
    ("0 0 3 * *", "At 00:00, on the 3rd of the month"),
    ("0 0 11 * *", "At 00:00, on the 11th of the month"),
    ("0 0 22 * *", "At 00:00, on the 22nd of the month"),
    ("0 0 31 * *", "At 00:00, on the 31st of the month"),
    ("0 0 1,15 * *", "At 00:00, on the 1st and 15th of the month"),
    ("0 0 1-7 * *", "At 00:00, on the 1st to 7th of the month"),
    ("0 0 1-7,15 * *", "At 00:00, on the 1st to 7th and 15th of the month"),
    ("0 0 28-31 * *", "At 00:00, on the 28th to 31st of the month"),
    ("0 0 */2 * *", "At 00:00, on every 2nd day from the 1st to the 31st of the month"),
    ("0 0 */3 * *", "At 00:00, on every 3rd day from the 1st to the 31st of the month"),
    ("0 0 */15 * *", "At 00:00, on the 1st, 16th and 31st of the month"),
    ("0 0 2-30/2 * *", "At 00:00, on every 2nd day from the 2nd to the 30th of the month"),
    ("0 0 1-31 * *", "At 00:00, every day"),
    ("0 0 */1 * *", "At 00:00, every day"),
    ("0 0 1,15 * 1", "At 00:00, on the 1st and 15th of the month or on Monday"),
    ("0 0 13 * 5", "At 00:00, on the 13th of the month or on Friday"),
    ("0 0 1 * 1-5", "At 00:00, on the 1st of the month or Monday to Friday"),
    ("0 0 */2 * 1", "At 00:00, on every 2nd day from the 1st to the 31st of the month or on Monday"),
    ("0 0 1-31 * 1", "At 00:00, every day"),
    ("0 0 13 * 0-6", "At 00:00, every day"),
    ("0 0 1-7 * 1,3", "At 00:00, on the 1st to 7th of the month or on Monday and Wednesday"),
    ("0 0 * 2 *", "At 00:00, in February"),
    ("0 0 * 1,7 *", "At 00:00, in January and July"),
    ("0 0 * 6-8 *", "At 00:00, from June to August"),
    ("0 0 * */3 *", "At 00:00, in January, April, July and October"),
    ("0 0 * */2 *", "At 00:00, in January, March, May, July, September and November"),
    ("0 0 * 1-12 *", "At 00:00"),
    ("0 0 * 1-11 *", "At 00:00, from January to November"),
    ("0 0 * 11-12 *", "At 00:00, in November and December"),
    ("0 0 1 1 *", "At 00:00, on the 1st of January"),
    ("0 0 25 DEC *", "At 00:00, on the 25th of December"),
    ("0 0 29 2 *", "At 00:00, on the 29th of February"),
    ("0 0 1 */3 *", "At 00:00, on the 1st of January, April, July and October"),
    ("0 0 1 6-8 *", "At 00:00, on the 1st of every month from June to August"),
    ("0 0 1,15 3-9 *", "At 00:00, on the 1st and 15th of every month from March to September"),
    ("0 0 */2 2 *", "At 00:00, on every 2nd day from the 1st to the 31st of February"),
    ("0 0 1-31 10 *", "At 00:00, every day in October"),
    ("0 0 * 2 0", "At 00:00, on Sunday, in February"),
    ("0 0 13 Feb Fri", "At 00:00, on the 13th of the month or on Friday, in February"),
    ("0 0 30 2 1", "At 00:00, on the 30th of the month or on Monday, in February"),
    ("0 12 * 6-8 1-5", "At 12:00, Monday to Friday, from June to August"),
    ("0 0 1-31 2 1", "At 00:00, every day in February"),
    ("*/10 * * * 1-5", "Every 10 minutes, Monday to Friday"),
    ("* * 1 1 *", "Every minute, on the 1st of January"),
    ("* * * 12 *", "Every minute, in December"),
    ("*/5 9-17 * 1-6 MON-FRI", "Every 5 minutes from 09:00 to 17:55, Monday to Friday, from January to June"),
    ("15 10 15 1,7 *", "At 10:15, on the 15th of January and July"),
    ("30 18 21-31 * 6", "At 18:30, on the 21st to 31st of the month or on Saturday"),
    ("0 0 10-20/5 * 2-4/2", "At 00:00, on the 10th, 15th and 20th of the month or on Tuesday and Thursday"),
]

SIX_FIELDS = [
    ("* * * * * *", "Every second"),
    ("*/1 * * * * *", "Every second"),
    ("*/10 * * * * *", "Every 10 seconds"),
    ("*/15 * * * * *", "Every 15 seconds"),
    ("*/30 * * * * *", "Every 30 seconds"),
    ("*/7 * * * * *", "Every 7 seconds from second 0 to 56 of every minute"),
    ("0 * * * * *", "Every minute"),
    ("0 */5 * * * *", "Every 5 minutes"),
    ("30 * * * * *", "At second 30 of every minute"),
    ("30 */5 * * * *", "Every 5 minutes from 00:00:30 to 23:55:30"),
    ("5,10 * * * * *", "At seconds 5 and 10 of every minute"),
    ("0 0 3 * * *", "At 03:00"),
    ("30 15 3 * * *", "At 03:15:30"),
    ("59 59 23 29 2 *", "At 23:59:59, on the 29th of February"),
    ("30 0 * * * *", "At second 30 of minute 0 of every hour"),
    ("15 30 * * * *", "At second 15 of minute 30 of every hour"),
    ("15 30 9-17 * * *", "Every hour from 09:30:15 to 17:30:15"),
    ("*/10 * 9-17 * * *", "Every 10 seconds from 09:00:00 to 17:59:50"),
    ("*/10 30-45 9 * * *", "Every 10 seconds from 09:30:00 to 09:45:50"),
    ("*/10 0 9 * * *", "Every 10 seconds from 09:00:00 to 09:00:50"),
    ("*/10 0 9,17 * * *", "Every 10 seconds of minute 0 of hours 9 and 17"),
    ("0-10 0 9 * * *", "Every second from 09:00:00 to 09:00:10"),
    ("5,35 0 9 * * *", "At 09:00:05 and 09:00:35"),
    ("*/10 */5 * * * *", "Every 10 seconds of every 5th minute from 0 to 55 of every hour"),
    ("*/10 5,10 9 * * *", "Every 10 seconds of minutes 5 and 10 of hour 9"),
    ("5,10 */7 * * * *", "At seconds 5 and 10 of every 7th minute from 0 to 56 of every hour"),
    ("* 5 * * * *", "Every second of minute 5 of every hour"),
    ("* * 9 * * 1-5", "Every second from 09:00:00 to 09:59:59, Monday to Friday"),
    ("30 * 9-17 * * *", "Every minute from 09:00:30 to 17:59:30"),
    ("30 7 */2 * * *", "Every 2 hours from 00:07:30 to 22:07:30"),
    ("0,30 * * * * *", "Every 30 seconds"),
    ("0-29 * * * * *", "Every second from second 0 to 29 of every minute"),
    ("* */2 */2 * * *", "Every second of every 2nd minute from 0 to 58 of every 2nd hour from 0 to 22"),
    ("1 2 3 4 5 6", "At 03:02:01, on the 4th of the month or on Saturday, in May"),
    ("7 * 9,12 * * *", "At second 7 of every minute of hours 9 and 12"),
    ("7 5,6 * * * *", "At second 7 of minutes 5 and 6 of every hour"),
    ("* * 9,17 * * *", "Every second of hours 9 and 17"),
    ("*/7 0 9 * * *", "Every 7 seconds from 09:00:00 to 09:00:56"),
]


def test_more_than_a_hundred_are_told():
    assert len({text for text, _ in FIVE_FIELDS}) > 100
    assert len({text for text, _ in SIX_FIELDS}) > 30


@pytest.mark.parametrize(("text", "sentence"), FIVE_FIELDS, ids=lambda value: value)
def test_five_fields_in_english(text, sentence):
    assert Cron(text).describe() == sentence
    assert Cron(text, "Europe/Berlin").describe() == sentence
    assert Cron(f"0 {text}", seconds=True).describe() == sentence


@pytest.mark.parametrize(("text", "sentence"), SIX_FIELDS, ids=lambda value: value)
def test_six_fields_in_english(text, sentence):
    assert Cron(text, seconds=True).describe() == sentence


def meaning(cron: Cron) -> tuple[object, ...]:
    """What decides when it runs: two expressions with the same of it always run together."""
    e = cron.parsed
    days = [(month, e.days_in(year, month)) for year in range(2000, 2028) for month in range(1, 13) if e.months >> month & 1]
    return e.seconds, e.minutes, e.hours, *days


def test_expressions_of_different_meaning_have_different_sentences():
    rng = random.Random(7)
    told: dict[str, list[Cron]] = {}
    for place in range(8000):
        text = any_expression(rng, seconds=place % 2 == 0) if place % 4 else simple(rng)
        try:
            cron = Cron(text, seconds=len(text.split()) == 6)
        except InvalidArgument:
            continue
        sentence = cron.describe()
        assert sentence.isascii()
        assert sentence.isprintable()
        assert sentence.startswith(("At ", "Every "))
        told.setdefault(sentence, []).append(cron)
    shared = [crons for crons in told.values() if len({cron.expression for cron in crons}) > 1]
    assert len(shared) > 100
    for crons in shared:
        assert len({meaning(cron) for cron in crons}) == 1, crons


def simple(rng: random.Random) -> str:
    """An expression of few forms, so that many of them have the same meaning, or nearly."""
    time = ["*", "0", "5", "0,30", "*/30", "*/20", "*/7", "0-4", "0-59", "0-10/5"]
    hour = ["*", "0", "0,12", "*/12", "*/2", "*/7", "0-4", "0-23", "9"]
    day, month, weekday = (
        ["*", "1", "1-31", "*/2", "1-7"],
        ["*", "1-12", "2", "1,2", "*/6"],
        ["*", "0", "7", "0-6", "1-5", "*/2"],
    )
    return " ".join(rng.choice(field) for field in (time, time, hour, day, month, weekday))
