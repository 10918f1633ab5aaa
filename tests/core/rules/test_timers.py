"""How many runs a timer makes ahead, and when these are obsolete. Contract 6.2."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from assetflow.core.rules.timers import Lead, Timer, leaves_runs_behind, plan
from assetflow.core.time.timetables import CronTriggerTimetable

NOW = datetime(2026, 3, 2, 8, 30, tzinfo=UTC)
TIMER = Timer(CronTriggerTimetable("0 * * * *"), NOW)


@pytest.mark.parametrize(("hours", "made"), [(0, 2), (2.4, 2), (2.5, 3), (3, 3), (9, 5)])
def test_runs_are_made_for_a_span_but_at_least_and_at_most_so_many(hours: float, made: int) -> None:
    lead = Lead(within=timedelta(hours=hours), at_least=2, at_most=5)
    found = plan(TIMER, NOW, lead)
    assert [tick.time.hour for tick in found.ticks] == list(range(9, 9 + made))
    assert not plan(TIMER.moved(found.ticks[-1].time), NOW, lead).ticks


def test_runs_are_left_behind_by_another_timetable_a_pause_and_an_end() -> None:
    daily = replace(TIMER, timetable=CronTriggerTimetable("0 0 * * *"))
    idle = [replace(TIMER, paused=True), replace(TIMER, held=True)]
    assert all(leaves_runs_behind(TIMER, after) for after in (daily, None, *idle))
    assert not leaves_runs_behind(TIMER, TIMER.moved(NOW + timedelta(hours=3)))
    assert not any(leaves_runs_behind(before, None) for before in idle)
