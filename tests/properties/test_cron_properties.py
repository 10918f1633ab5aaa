"""Ten years of cron times in five time zones, against a model that asks every minute."""

import calendar
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assetflow.core.time.cron import Cron

ZONES = ("America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu")
YEARS = range(2009, 2019)
MINUTE = timedelta(minutes=1)

# What the fields mean, written down by hand: the model must not share the reading of expressions with the code.
FIXED = {
    "30 2 * * *": lambda t: (t.hour, t.minute) == (2, 30),
    "0 0 * * *": lambda t: (t.hour, t.minute) == (0, 0),
    "15,45 0-3 * * *": lambda t: t.hour <= 3 and t.minute in (15, 45),
    "5 1 1,15 * sun": lambda t: (t.hour, t.minute) == (1, 5) and (t.day in (1, 15) or t.weekday() == 6),
    "*/20 23 * 2,3,10,11 6-7": lambda t: (
        t.hour == 23 and t.minute % 20 == 0 and t.month in (2, 3, 10, 11) and t.weekday() in (5, 6)
    ),
}
EVERY_HOUR = {
    "0 * * * *": lambda t: t.minute == 0,
    "*/30 */2 * * *": lambda t: t.minute % 30 == 0 and t.hour % 2 == 0,
    "10 * 1-7 * mon": lambda t: t.minute == 10 and (t.day <= 7 or t.weekday() == 0),
}


def days_of_change(zone: ZoneInfo, year: int) -> list[date]:
    """The days on which the offset changes; on all the others a wall clock cannot err."""

    def offset(day: date) -> timedelta | None:
        return datetime(day.year, day.month, day.day, 12, tzinfo=UTC).astimezone(zone).utcoffset()

    days = [date(year, 1, 1) + timedelta(days=number) for number in range(365 + calendar.isleap(year))]
    return [day for day in days if offset(day) != offset(day - timedelta(days=1))]


def model(expression: str, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    """All times after start up to end, found by asking every minute of the real time, or of the wall clock."""
    margin = timedelta(days=2)
    if expression in EVERY_HOUR:
        real = (start + number * MINUTE for number in range(1, (end - start) // MINUTE + 1))
        return [instant for instant in real if EVERY_HOUR[expression](instant.astimezone(zone))]
    first = (start - margin).replace(tzinfo=None)
    walls = (first + number * MINUTE for number in range((end - start + 2 * margin) // MINUTE))
    instants = {to_instant(wall, zone) for wall in walls if FIXED[expression](wall)}
    return sorted(instant for instant in instants if start < instant <= end)


def to_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first moment at which the clock shows this; a skipped one as counted from before the gap."""
    for hours in range(-16, 17):
        instant = wall.replace(tzinfo=UTC) - timedelta(hours=hours)
        candidates = [instant + timedelta(minutes=minutes) for minutes in (0, 15, 30, 45)]
        found = [c for c in candidates if c.astimezone(zone).replace(tzinfo=None) == wall]
        if found:
            earlier = [
                c for c in (found[0] - timedelta(hours=1), found[0] - timedelta(minutes=30)) if shows(c, wall, zone)
            ]
            return min([*earlier, found[0]])
    before = (wall - timedelta(days=1)).replace(tzinfo=zone).utcoffset()
    assert before is not None
    return wall.replace(tzinfo=UTC) - before


def shows(instant: datetime, wall: datetime, zone: ZoneInfo) -> bool:
    return instant.astimezone(zone).replace(tzinfo=None) == wall


@pytest.mark.rule("6.2")
@pytest.mark.parametrize("timezone", ZONES)
@pytest.mark.parametrize("expression", [*FIXED, *EVERY_HOUR])
def test_ten_years_agree_with_the_model_around_every_change(expression: str, timezone: str) -> None:
    zone = ZoneInfo(timezone)
    cron = Cron(expression, timezone)
    checked = [day for year in YEARS for day in days_of_change(zone, year)] or [date(2010, 3, 14), date(2015, 12, 31)]
    for day in checked:
        start = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(days=2)
        end = start + timedelta(days=4)
        assert list(cron.between(start, end)) == model(expression, zone, start, end), day


zones = st.sampled_from((*ZONES, "Pacific/Apia", "Africa/Casablanca", "Asia/Gaza", "UTC"))
moments = st.datetimes(datetime(1975, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
expressions = st.builds(
    "{} {} {} {} {}".format,
    st.sampled_from(("0", "30", "*/20", "5,35")),
    st.sampled_from(("*", "0", "2", "1-3", "*/6", "23")),
    st.sampled_from(("*", "1", "31", "*/2")),
    st.sampled_from(("*", "3,10", "jan-dec/2", "1-12")),
    st.sampled_from(("*", "sun", "1-5")),
)


@given(expressions, zones, moments)
def test_there_and_back(expression: str, timezone: str, moment: datetime) -> None:
    cron = Cron(expression, timezone)
    following, previous = cron.next_after(moment), cron.previous_before(moment)
    assert previous < moment < following
    assert cron.previous_before(following) <= moment
    assert cron.next_after(previous) >= moment
    assert list(cron.between(previous, following))[-1] == following
    assert cron.previous_before(following + timedelta(seconds=1)) == following
