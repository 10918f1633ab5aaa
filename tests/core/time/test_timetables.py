"""Crons and time tables beyond the conformance cases: words, what cannot be read, and the way through JSON (6.2)."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from assetflow.core.time.cron import Cron
from assetflow.core.time.timetables import (
    CronPartitionTimetable,
    CronTriggerTimetable,
    DeltaTriggerTimetable,
    PartitionedAtRuntime,
    RRuleTimetable,
    Tick,
    Timetable,
    timetable_from_json,
)
from assetflow.core.values.schedules import Schedule
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
        ("0 0 L * *", ["day of month field 'l'"]),
        ("*/70 * * * *", ["minute field '*/70'", "steps"]),
        ("* * * *", ["4 fields instead of 5"]),
        ("@reboot", ["@hourly"]),
        ("5-1 * * * *", ["range '5-1'", "minute field", "5-59,0-1"]),
        ("0 22-2/2 * * *", ["hour field", "backwards"]),
        ("0 0 * * 1,fri-mon", ["range 'fri-mon'", "day of week field"]),
        ("0 0 30 2 *", ["has no times", "day 30"]),
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


NEW_YORK = "America/New_York"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def keys(timetable: Timetable, after: str, until: str) -> list[str | None]:
    return [tick.partition_key for tick in timetable.ticks_between(utc(after), utc(until))]


def times(timetable: Timetable, after: str, until: str) -> list[str]:
    return [f"{tick.time:%d %H:%M}" for tick in timetable.ticks_between(utc(after), utc(until))]


@pytest.mark.rule("5.7")
def test_the_key_is_that_of_the_tick_in_the_zone_of_the_cron() -> None:
    daily = CronPartitionTimetable("0 0 * * *", NEW_YORK, key_format="%Y-%m-%d")
    assert keys(daily, "2026-03-07", "2026-03-10") == ["2026-03-07", "2026-03-08", "2026-03-09"]
    assert daily.next_after(utc("2026-03-08")) == Tick(utc("2026-03-08T05:00"), "2026-03-08")
    assert daily.previous_before(utc("2026-03-10")) == Tick(utc("2026-03-09T04:00"), "2026-03-09")


def test_an_interval_with_a_start_begins_there() -> None:
    timetable = DeltaTriggerTimetable(timedelta(minutes=7), utc("2026-01-01T10:00"))
    assert DeltaTriggerTimetable(timedelta(hours=36)).previous_before(utc("2020-01-01")) == Tick(
        utc("2019-12-30T12:00")
    )
    assert times(timetable, "2026-01-01", "2026-01-01T10:10") == ["01 10:00", "01 10:07"]
    assert timetable.previous_before(utc("2026-01-01T10:00")) is None
    assert timetable.previous_before(utc("2026-01-01T10:01")) == Tick(utc("2026-01-01T10:00"))


def test_a_rule_ends_and_begins() -> None:
    rule = RRuleTimetable("DTSTART:20260101T000000\nRRULE:FREQ=YEARLY;COUNT=3")
    assert rule.next_after(utc("2026-06-01")) == Tick(utc("2027-01-01"))
    assert rule.next_after(utc("2028-01-01")) is None
    assert rule.previous_before(utc("2060-01-01")) == Tick(utc("2028-01-01"))
    assert rule.previous_before(utc("2026-01-01")) is None


@pytest.mark.parametrize("rule", ["", "FREQ=SOMETIMES", "0 0 * * *", 5, "DTSTART;TZID=Europe/Rome:20260101T000000"])
def test_rules_that_cannot_be_read(rule: str) -> None:
    with pytest.raises(InvalidTimetable):
        RRuleTimetable(rule, NEW_YORK)


@pytest.mark.parametrize(
    ("timetable", "words"),
    [
        (CronTriggerTimetable("0 0 * * *", "Europe/Berlin"), "at 00:00 every day (Europe/Berlin)"),
        (CronPartitionTimetable("@hourly", run_offset=-1), "with the time moved by -1 ticks as partition key"),
        (DeltaTriggerTimetable(timedelta(hours=2)), "every 2 hours"),
        (DeltaTriggerTimetable(timedelta(days=1), utc("2026-01-01")), "every day from 2026-01-01 00:00:00 UTC on"),
        (DeltaTriggerTimetable(timedelta(seconds=90.5)), "every 90.5 seconds"),
        (RRuleTimetable("FREQ=DAILY"), "FREQ=DAILY"),
        (RRuleTimetable("FREQ=DAILY", catchup="latest"), "FREQ=DAILY"),
        (DeltaTriggerTimetable(timedelta(hours=2), catchup="latest"), "every 2 hours"),
        (CronPartitionTimetable("@hourly", catchup=False), "with the time as partition key"),
        (CronTriggerTimetable("@daily", catchup=True), "at 00:00 every day"),
        (PartitionedAtRuntime(), "partition key"),
    ],
)
def test_words_and_json(timetable: Timetable, words: str) -> None:
    assert words in timetable.describe()
    again = timetable_from_json(json.loads(json.dumps(timetable.as_json())))
    assert again == timetable
    assert hash(again) == hash(timetable)


def test_a_catchup_is_all_or_latest_and_is_told() -> None:
    with pytest.raises(InvalidTimetable, match="catchup is 'none'"):
        CronTriggerTimetable("@daily", catchup="none")  # pyright: ignore[reportArgumentType]
    latest = Schedule(timetable=CronTriggerTimetable("@daily", catchup=False))
    assert latest.describe() == "at 00:00 every day (UTC), of missed times only the latest"


@pytest.mark.parametrize(
    "value",
    [{}, {"kind": "moon"}, {"kind": "cron"}, {"kind": "cron", "cron": "x"}, {"kind": "delta", "seconds": "soon"}],
)
def test_json_that_is_no_timetable(value: dict[str, object]) -> None:
    with pytest.raises(InvalidTimetable):
        timetable_from_json(value)


@pytest.mark.parametrize("options", [{"key_format": " "}, {"key_format": "x" * 251}, {"run_offset": 1.5}])
def test_keys_that_cannot_be(options: dict[str, object]) -> None:
    with pytest.raises(InvalidTimetable):
        CronPartitionTimetable("0 0 * * *", **options)  # pyright: ignore[reportArgumentType]


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidTimetable, match="no time zone"):
        Cron("0 0 * * *").next_after(datetime(2026, 1, 1))  # noqa: DTZ001
