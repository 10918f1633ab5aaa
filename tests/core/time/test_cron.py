"""Cron beyond the conformance cases: there and back, its fields in words, and what cannot be read (contract 6.2)."""

from datetime import UTC, datetime

import pytest

from assetflow.core.time.cron import Cron, cron_in_words
from assetflow.errors import InvalidTimetable


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("60 * * * *", ["minute field '60'", "0-59"]),
        ("0 24 * * *", ["hour field '24'", "0-23"]),
        ("0 0 0 * *", ["day of month field '0'", "1-31"]),
        ("0 0 * 13 *", ["month field '13'", "jan-dec"]),
        ("0 0 * * 8", ["day of week field '8'", "sun-sat"]),
        ("0 0 * foo *", ["month field 'foo'"]),
        ("0 0 * mon *", ["month field 'mon'"]),
        ("0 0 L * *", ["day of month field 'l'"]),
        ("0 0 * * mon#1", ["day of week field 'mon#1'"]),
        ("h * * * *", ["minute field 'h'"]),
        ("*/0 * * * *", ["minute field '*/0'"]),
        ("*/70 * * * *", ["minute field '*/70'", "steps"]),
        ("1,,2 * * * *", ["minute field '1,,2'"]),
        ("-1 * * * *", ["minute field '-1'"]),
        ("* * * *", ["4 fields instead of 5"]),
        ("0 0 * * * *", ["6 fields instead of 5"]),
        ("@reboot", ["@hourly"]),
        ("", ["0 fields"]),
        ("5-1 * * * *", ["range '5-1'", "minute field", "5-59,0-1"]),
        ("0 22-2/2 * * *", ["hour field", "backwards"]),
        ("0 0 * nov-feb *", ["month field", "nov-12,1-feb"]),
        ("0 0 * * 1,fri-mon", ["range 'fri-mon'", "day of week field"]),
        ("0 0 30 2 *", ["has no times", "day 30"]),
        ("0 0 31 4,jun *", ["has no times", "day 31"]),
    ],
)
def test_a_bad_expression_names_the_field_and_what_is_allowed(expression: str, words: list[str]) -> None:
    with pytest.raises(InvalidTimetable) as caught:
        Cron(expression)
    assert caught.value.rule == "6.2"
    for word in words:
        assert word in str(caught.value)


def test_an_unknown_zone_names_close_ones() -> None:
    with pytest.raises(InvalidTimetable, match="Europe/Berlin"):
        Cron("0 0 * * *", "Europe/Berln")
    for name in ("", "../etc/passwd", "America"):
        with pytest.raises(InvalidTimetable, match="no time zone"):
            Cron("0 0 * * *", name)


def test_the_calendar_ends() -> None:
    with pytest.raises(InvalidTimetable, match="calendar ends"):
        Cron("0 0 29 2 *").next_after(datetime(9999, 3, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 0 * * *", "at 00:00 every day"),
        ("0 * * * *", "at the start of every hour"),
        ("5 * * * 1", "at minute 5 of every hour on Monday"),
        ("*/15 * * * *", "every 15th minute of every hour"),
        ("* * * feb *", "every minute in February"),
        ("0 9 * * 1-5", "at 09:00 on Monday through Friday"),
        ("30 8,17 * * mon,7", "at 08:30 and 17:30 on Monday and Sunday"),
        ("0 0 1 * *", "at 00:00 on the first day of every month"),
        ("@yearly", "at 00:00 on January 1"),
        ("0 0 * jan-mar *", "at 00:00 in every month from January through March"),
        ("0 8-18 * * *", "at minute 0 past every hour from 8 through 18"),
        ("0 0 1 * 5", "at 00:00 on the first day of month and on Friday"),
        # cronsim does not read these as contract 6.2 does.
        ("0 0 */2 * 1", "at the times of the cron '0 0 */2 * 1'"),
        ("0 0 * * fri-sun", "at the times of the cron '0 0 * * fri-sun'"),
    ],
)
def test_words(expression: str, words: str) -> None:
    assert cron_in_words(Cron(expression, "Europe/Berlin")) == f"{words} (Europe/Berlin)"
