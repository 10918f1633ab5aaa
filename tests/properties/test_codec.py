"""Every declaration of a flow survives its stored text."""

import json
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, get_args

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from assetflow.core.partitions import FixedKeyMapper, IdentityMapper, StartOfDayMapper
from assetflow.core.simulate.conditions import read_condition
from assetflow.core.time.timetables import CronPartitionTimetable, CronTriggerTimetable, PartitionedAtRuntime
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.conditions import AssetAll, AssetAny, AtLeast, Condition, Since, Times, Within
from assetflow.core.values.schedules import ConsumerOptions, Partitioning, Schedule
from assetflow.core.values.timing import OnDeadline, Opening, make_deadline
from assetflow.core.wire.declarations import FlowDeclaration, declaration_from_text, declaration_to_text
from assetflow.errors import InvalidSchedule
from tests.properties.scenarios import expressions

ASSETS = [Asset(name) for name in "abc"]
DAILY = CronTriggerTimetable("0 */3 * * *")
HOURS = st.integers(1, 5).map(lambda hours: timedelta(hours=hours))


def timed_conditions() -> st.SearchStrategy[Condition]:
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


conditions = expressions.map(lambda written: read_condition(written, "")())
mappers = st.sampled_from([IdentityMapper(), FixedKeyMapper("k"), StartOfDayMapper(timezone="Asia/Tokyo")])
targets = st.sampled_from(
    [Asset("s3://b/a"), Asset("s3://b/b", name="b"), Asset.ref(name="n"), Asset.ref(uri="s3://b/c")]
)
partitionings = st.builds(Partitioning, mappers, st.lists(st.tuples(targets, mappers), max_size=3).map(tuple))
timetables = st.sampled_from(
    [
        CronTriggerTimetable("0 2 * * *", "Europe/Berlin"),
        CronPartitionTimetable("@daily", run_offset=-1),
        PartitionedAtRuntime(),
    ]
)
schedules = st.builds(
    Schedule, condition=st.none() | conditions, partitioning=st.none() | partitionings, timetable=st.none() | timetables
)
outlets = st.lists(st.one_of(targets, st.just(AssetAlias("x", group="g"))), max_size=3).map(tuple)
declarations = st.builds(
    FlowDeclaration,
    st.builds(ConsumerOptions, schedules, st.sampled_from(["drop", "keep"]), st.booleans()),
    outlets,
    outlets,
)


spans = st.none() | st.sampled_from([timedelta(seconds=1.5), timedelta(minutes=10), timedelta(days=366)])
counts = st.none() | st.integers(1, 3)
crons = st.sampled_from([CronTriggerTimetable("0 6 * * *"), CronTriggerTimetable("0 8 * * *", "Asia/Tokyo")])


@st.composite
def timed_options(draw: st.DrawFn) -> ConsumerOptions:
    """Draw what a consumer says about time, one option after the other; those that are refused are left out."""
    opening = Opening(CronTriggerTimetable("@daily"), draw(st.none() | crons))
    try:
        options = ConsumerOptions(Schedule(draw(timed_conditions())))
    except InvalidSchedule:
        reject()
    for part in draw(st.permutations([{"partitioning": draw(partitionings)}, {"opening": opening}, {}])):
        with suppress(InvalidSchedule):
            options = replace(options, schedule=replace(options.schedule, **part))
    given = {"debounce": spans, "min_events": counts, "max_wait": spans, "max_events": counts, "cooldown": spans}
    for name, values in given.items():
        value: Any = draw(values)
        with suppress(InvalidSchedule):
            options = replace(options, intake=replace(options.intake, **{name: value}))
    by, then = draw(spans | crons), draw(st.sampled_from(get_args(OnDeadline)))
    with suppress(InvalidSchedule):
        options = replace(options, deadline=make_deadline(by, then))
    return options


@given(declarations | st.builds(FlowDeclaration, timed_options()))
def test_declaration_survives_its_text(declaration: FlowDeclaration) -> None:
    text = declaration_to_text(declaration)
    assert declaration_from_text(text) == declaration
    assert declaration_to_text(declaration_from_text(text)) == text


@given(declarations)
def test_text_is_flat(declaration: FlowDeclaration) -> None:
    """Prefect loses a parameter schema that is nested too deep."""

    def depth(value: Any) -> int:
        members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return 1 + max(map(depth, members), default=0)

    assert depth(json.loads(declaration_to_text(declaration))) < 12


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "[]",
        "{}",
        '{"version":3}',
        '{"version":2,"needs":["weather"]}',
        '{"version":2,"nodes":[{"asset":"a"},["times",1,0]]}',
        '{"version":2,"nodes":[{"asset":"a"},["within",1,3600]]}',
        '{"version":2,"nodes":[{"asset":"a"},["since",1,{"kind":"sundial"}]]}',
        '{"version":2,"nodes":[{"asset":"a"},["at_least",1,2]]}',
        '{"version":1,"deadline":{"after":60}}',
        '{"version":1,"nodes":[{"asset":"a"}],"intake":{"max_wait":60}}',
        '{"version":1,"nodes":[["all",2]]}',
        '{"version":1,"nodes":[]}',
        '{"version":1,"nodes":[{"asset":"s3://"}]}',
        '{"version":1,"nodes":[{"planet":"mars"}]}',
        '{"version":1,"nodes":5}',
        '{"version":1,"partitioning":{}}',
        '{"version":1,"partitioning":{"default":"identity","mappers":[[{"alias":"x"},"identity"]]}}',
        '{"version":1,"timetable":{"kind":"sundial"}}',
        '{"version":1,"while_paused":"dance"}',
    ],
)
def test_damaged_text_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(InvalidSchedule, match="deployment hello"):
        declaration_from_text(text, where="deployment hello")
