"""What a timer makes ahead, in five time zones, is what 6.2 says: each time once, in order."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import uuid4

from hypothesis import given, settings
from hypothesis import strategies as st

from assetflow.core.rules.timers import Lead, Timer, follow, leaves_runs_behind, plan, ticks_between
from assetflow.core.time.timetables import CronTriggerTimetable, DeltaTriggerTimetable, RRuleTimetable, Timetable
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.schedules import ConsumerOptions, Schedule

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata")


def made_ahead(timetable: Timetable, since: datetime, until: datetime, random: Random, lead: Lead) -> list[datetime]:
    """The times of the runs that an evaluator makes which looks now and then, and is down for days now and then."""
    timer, now, made = Timer(timetable, since), since, list[datetime]()
    while True:
        found = plan(timer, now, lead)
        made += [tick.time for tick in found.ticks]
        if found.ticks:
            timer = timer.moved(found.ticks[-1].time)
        assert found.again is not None
        if found.again > now:
            if now == until:
                return [time for time in made if time <= until]
            now = min(until, max(found.again, now + timedelta(hours=random.choice([0, 0, 1, 30, 200]))))


TIMETABLES = st.one_of(
    st.builds(
        CronTriggerTimetable,
        st.sampled_from(["*/7 * * * *", "30 2 * * *", "0 */3 * * *", "0 0 1 * *", "15 1,2,3 * * sun", "0 0 29 2 *"]),
        st.sampled_from(ZONES),
    ),
    st.builds(DeltaTriggerTimetable, st.integers(20, 100_000).map(lambda minutes: timedelta(minutes=minutes))),
    st.builds(
        RRuleTimetable,
        st.sampled_from(["FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "FREQ=HOURLY;INTERVAL=5", "FREQ=WEEKLY;BYDAY=MO,TH"]),
        st.sampled_from(ZONES),
    ),
)
MOMENTS = st.datetimes(datetime(2016, 1, 1), datetime(2025, 12, 1), timezones=st.just(UTC))  # noqa: DTZ001
LEADS = st.builds(
    Lead,
    within=st.integers(0, 72).map(lambda hours: timedelta(hours=hours)),
    at_least=st.integers(1, 5),
    at_most=st.integers(5, 40),
)


@settings(max_examples=60)
@given(TIMETABLES, MOMENTS, LEADS, st.integers())
def test_each_time_is_made_once_in_order_whenever_an_evaluator_looks(
    timetable: Timetable, since: datetime, lead: Lead, seed: int
) -> None:
    until = since + timedelta(days=9)
    expected = [tick.time for tick in ticks_between(timetable, since, until)]
    assert made_ahead(timetable, since, until, Random(seed), lead) == expected


@settings(max_examples=60)
@given(TIMETABLES, MOMENTS, st.lists(st.tuples(st.sampled_from("prhf-"), st.integers(1, 2_000)), max_size=8))
def test_pauses_are_left_out_and_holds_are_made_up_for(
    timetable: Timetable, since: datetime, steps: list[tuple[str, int]]
) -> None:
    """Pauses, resumes, holds, releases: what has run in the end is every time outside of the pauses, once."""
    consumer = Consumer(1, "f/d", uuid4(), ConsumerOptions(Schedule(timetable=timetable)))
    timer = follow(None, consumer, since)
    assert timer is not None
    runs, expected, now = set[datetime](), set[datetime](), since
    for step, minutes in [*steps, ("r", 1), ("f", 1), ("-", 60)]:
        later = now + timedelta(minutes=minutes)
        while found := plan(timer, now, Lead(at_least=1, at_most=5_000)).ticks:
            runs |= {tick.time for tick in found}
            timer = timer.moved(found[-1].time)
        if not consumer.paused:
            begin = now - timedelta(microseconds=1) if now == since else now
            expected |= {tick.time for tick in ticks_between(timetable, begin, later)}
        while found := plan(timer, later, Lead(at_least=1, at_most=5_000)).ticks:
            runs |= {tick.time for tick in found}
            timer = timer.moved(found[-1].time)
        now = later
        consumer = replace(
            consumer,
            paused={"p": True, "r": False}.get(step, consumer.paused),
            held={"h": True, "f": False}.get(step, consumer.held),
        )
        changed = follow(timer, consumer, now)
        assert changed is not None
        if leaves_runs_behind(timer, changed):
            runs = {time for time in runs if time <= now}
            changed = changed.withdrawn(now)
        if changed.paused and not timer.paused:
            # What a hold held back is given up when a pause follows before the release.
            expected &= runs
        timer = changed
    assert {time for time in runs if time <= now} == expected
