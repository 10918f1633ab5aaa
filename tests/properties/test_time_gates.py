"""Time gates (9.1 to 9.5), against the plainest reading of the contract: a search over all subsets of events."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, combinations
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assetflow.core.rules.evaluation import Reach, in_order, instant_of, period_end
from assetflow.core.time.timetables import CronTriggerTimetable, Timetable
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import (
    AssetAll,
    AssetAny,
    AtLeast,
    BooleanCondition,
    Condition,
    Leaf,
    Since,
    Times,
    Token,
    Within,
)
from assetflow.core.values.events import AssetEvent, Origin
from assetflow.core.values.schedules import Schedule

START = datetime(2026, 1, 1, tzinfo=UTC)
ASSETS = [Asset(name) for name in "abc"]
DAILY = CronTriggerTimetable("0 */3 * * *")
HOURS = st.integers(1, 5).map(lambda hours: timedelta(hours=hours))


def times(hours: int) -> datetime:
    return START + timedelta(hours=hours)


def event(number: int, name: str, hours: int) -> AssetEvent:
    made = AssetEvent(UUID(int=number), Asset(name), times(hours), Origin("api"))
    return made.in_ledger(number, times(hours))


@st.composite
def events(draw: st.DrawFn, *, first: int = 1, earliest: int = 0, most: int = 5) -> list[AssetEvent]:
    found = draw(st.lists(st.tuples(st.sampled_from("abc"), st.integers(earliest, earliest + 8)), max_size=most))
    return [event(first + place, name, hours) for place, (name, hours) in enumerate(found)]


def conditions() -> st.SearchStrategy[Condition]:
    leaves = st.sampled_from(ASSETS)
    plain: st.SearchStrategy[Condition] = leaves | st.builds(Times, leaves, st.integers(1, 3))
    both = st.permutations(ASSETS).map(lambda assets: AssetAll(*assets[:2]))
    plain = plain | st.builds(Within, both, HOURS) | st.builds(Since, both, st.just(DAILY))
    return st.recursive(
        plain,
        lambda inner: (
            st.lists(inner, max_size=3).map(lambda found: AssetAll(*found))
            | st.lists(inner, max_size=3).map(lambda found: AssetAny(*found))
            | st.lists(inner, min_size=2, max_size=3).map(lambda found: AtLeast(2, *found))
            | st.builds(Within, inner, HOURS)
            | st.builds(Since, inner, st.just(DAILY))
        ),
        max_leaves=6,
    )


def holds(condition: Condition, found: Sequence[AssetEvent]) -> bool:
    """Return whether a condition holds over these events, word for word as the contract says it."""
    if isinstance(condition, Leaf):
        return any(each.uri == condition.token.value for each in found)
    assert isinstance(condition, BooleanCondition)
    members, argument = condition.objects, condition.argument
    match argument:
        case None if isinstance(condition, AssetAll):
            return all(holds(member, found) for member in members)
        case None:
            return any(holds(member, found) for member in members)
        case int(n) if isinstance(condition, AtLeast):
            return sum(holds(member, found) for member in members) >= n
        case int(n):
            return sum(holds(members[0], [each]) for each in found) >= n
        case timedelta() as span:
            return any(holds(members[0], part) for part in subsets(found) if length(part) <= span)
        case Timetable() as timetable:
            return any(holds(members[0], part) for part in subsets(found) if in_one_period(timetable, part))


def subsets(found: Sequence[AssetEvent]) -> list[tuple[AssetEvent, ...]]:
    return list(chain.from_iterable(combinations(found, size) for size in range(len(found) + 1)))


def length(found: Sequence[AssetEvent]) -> timedelta:
    moments = [instant_of(each) for each in found]
    return max(moments) - min(moments) if moments else timedelta()


def in_one_period(timetable: Timetable, found: Sequence[AssetEvent]) -> bool:
    return len({period_end(timetable, instant_of(each)) for each in found}) <= 1


def tokens_of(uri: str) -> frozenset[Token]:
    return frozenset((Token("uri", uri),))


def reach(condition: Condition, found: Sequence[AssetEvent]) -> Reach:
    return Reach(Schedule(condition), None, in_order(found), tokens_of)


@pytest.mark.rule("9.1", "9.2", "9.3", "9.4")
@settings(max_examples=300)
@given(conditions(), events())
def test_a_condition_holds_when_a_subset_of_the_events_satisfies_it(
    condition: Condition, found: list[AssetEvent]
) -> None:
    assert reach(condition, found).holds == holds(condition, found)


@pytest.mark.rule("9.9")
@given(conditions(), events())
def test_the_completing_event_is_the_last_of_the_shortest_prefix(condition: Condition, found: list[AssetEvent]) -> None:
    ordered = in_order(found)
    enough = [size for size in range(len(ordered) + 1) if holds(condition, ordered[:size])]
    expected = ordered[min(enough) - 1] if enough and min(enough) else None
    assert reach(condition, found).completing == expected


@pytest.mark.rule("9.5")
@settings(max_examples=300)
@given(conditions(), events(), events(first=100, earliest=9, most=3))
def test_what_expires_could_never_have_counted(
    condition: Condition, found: list[AssetEvent], later: list[AssetEvent]
) -> None:
    """Expiry never adds or takes away a decision (9.5): whatever comes later, the condition is as true without it."""
    now = times(8)
    asked = reach(condition, found)
    lost = {each.id: list(asked.too_old(each, timedelta())) for each in found}
    void = {
        number
        for number, moments in lost.items()
        if moments and all(each is not None and each <= now for each in moments)
    }

    left = [each for each in found if each.id not in void]

    assert holds(condition, left + later) == holds(condition, found + later)
