"""Nobody's looking changes anything: an instant is decided as of itself, however often or late that is done (9.6).

Updates come exactly at instants at which something ends, just before and just after them.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assetflow.core.rules import clock, opening_hours, registry
from assetflow.core.rules.fold import Touched, pass_over, record_and_pass
from assetflow.core.rules.registry import switch
from assetflow.core.rules.state import State
from assetflow.core.time.timetables import CronTriggerTimetable
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import AtLeast
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.schedules import ConsumerOptions, Partitioning, Schedule, WhilePaused
from assetflow.core.values.timing import Deadline, Intake, Opening

START = datetime(2026, 1, 1, tzinfo=UTC)
END = START + timedelta(hours=10)
INSTANT = timedelta(microseconds=1)
SPACE = UUID(int=9)
A, B, C = (Asset(f"s3://lake/{name}") for name in "abc")


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


SINGLE = [A, A | B | C]
SEVERAL = [
    A & B,
    A.times(2),
    AtLeast(2, A, B, C),
    (A & B).within(minutes(40)),
    (A & B).since("0 */2 * * *"),
    C | A.times(2).within(minutes(20)),
    (A & B).within(minutes(20)) & C,
    (A & B).since("0 */2 * * *") | (A & C).within(minutes(30)),
    AtLeast(2, A, B, C).since("0 * * * *").within(minutes(40)),
    B | (A & C).within(minutes(180)),
    B.times(2) | (A & C).within(minutes(180)) | (A & B).within(minutes(40)),
]
HOURS = [
    Opening(CronTriggerTimetable("0 */2 * * *")),
    Opening(CronTriggerTimetable("0 */2 * * *"), CronTriggerTimetable("0 1-23/2 * * *")),
    Opening(CronTriggerTimetable("0 */2 * * *"), CronTriggerTimetable("20 */2 * * *")),
    Opening(CronTriggerTimetable("0 */4 * * *"), CronTriggerTimetable("0 */3 * * *")),
]
spans = st.sampled_from([minutes(10), minutes(20), minutes(60), minutes(180)])


@st.composite
def all_options(draw: st.DrawFn) -> ConsumerOptions:
    single = draw(st.sampled_from([True, False, False]))
    opening = draw(st.none() | st.sampled_from(HOURS))
    parts = draw(st.sampled_from([None, None, Partitioning()]))
    schedule = Schedule(draw(st.sampled_from(SINGLE if single else SEVERAL)), parts, opening=opening)
    debounce = draw(st.none() | st.sampled_from([minutes(10), minutes(20)]))
    fewest = draw(st.none() | st.integers(1, 3))
    longest = draw(st.none() | st.sampled_from([minutes(20), minutes(60)])) if debounce or fewest else None
    most = draw(st.none() | st.integers(fewest or 1, 4)) if single else None
    deadline = draw(st.none() | st.builds(Deadline, spans, then=st.sampled_from(["alert", "run", "skip"])))
    intake = Intake(debounce, longest, fewest, most, draw(st.none() | spans))
    keeps: WhilePaused = draw(st.sampled_from(["drop", "keep"]))
    return ConsumerOptions(schedule, keeps, draw(st.booleans()), deadline=deadline, intake=intake)


# An instant of the grid, on which all spans and times end, or one beside it.
moments = st.builds(
    lambda tens, beside: START + minutes(10 * tens) + beside * INSTANT,
    st.integers(1, 40),
    st.sampled_from([0, 0, 0, -1, 1, 1_000_000]),
)
updates = st.tuples(st.sampled_from([A, A, B, C]), st.sampled_from("xy"))
came = st.tuples(moments, updates)
deeds = st.tuples(moments, st.sampled_from(["end", "pause", "resume", "remove", "deploy"]))
steps = st.lists(came | came | came | deeds, min_size=1, max_size=12).map(
    lambda found: sorted(found, key=lambda each: each[0])
)


class Life:
    def __init__(self, options: ConsumerOptions, others: ConsumerOptions) -> None:
        self.state = State()
        self.state.begin(1)
        self.others = others
        self.consumer = Consumer(1, "flow/one", UUID(int=1), options, False, False, START)
        registry.deploy(self.state, self.consumer)
        opening_hours.follow(self.state, None, self.consumer, START)

    @property
    def keys(self) -> set[str | None]:
        return {None, *self.state.queues.target_keys(1), *(key for _, key in self.state.changes.queue_clocks)}

    def do(self, place: int, moment: datetime, what: Any) -> None:
        if isinstance(what, tuple):
            self.record(place, moment, *what)
            return
        clock.settle(self.state, self.consumer, moment)
        touched: Touched = {}
        if what == "end":
            registry.touch_ended(self.state, 1, self.keys, touched)
            self.state.decisions.end_runs(1)
        elif what == "remove":
            registry.remove_queued(self.state, self.consumer, lambda event: event.asset == A, self.keys)
            touched = {1: (self.consumer, self.keys)}
        else:
            touched = self.change(moment, what)
        pass_over(self.state, touched, moment)

    def change(self, moment: datetime, what: str) -> Touched:
        before = self.consumer
        if what == "deploy":
            self.consumer = registry.change(self.state, replace(before, deployed=moment), self.others)
            self.others = before.options
            opening_hours.follow(self.state, before, self.consumer, moment)
            return registry.touched_by(self.state, self.consumer)
        self.consumer = switch(self.state, before, paused=what == "pause", now=moment)
        return registry.touched_by_switch(self.state, before, self.consumer)

    def record(self, place: int, moment: datetime, asset: Asset, key: str) -> None:
        number = uuid5(SPACE, str(place))
        partition = key if self.consumer.options.schedule.is_partitioned else None
        event = AssetEvent(number, asset, moment, Origin("api"), partition_key=partition)
        record_and_pass(self.state, Recording(number, (event,), durable=moment), moment)

    def look(self, until: datetime) -> None:
        while clock.run(self.state, [(1, key) for key in self.keys], until)[1]:
            pass

    def story(self) -> Any:
        """What became of everything, by instants."""
        changes = self.state.changes
        runs = sorted(
            (each.made, each.target_key or "", each.opening, each.by_deadline, [str(event.id) for event in each.events])
            for each in changes.decisions
        )
        receipts = sorted(
            (place, each.target_key or "", each.status, str(each.at))
            for place, of_event in changes.receipts.items()
            for each in of_event.values()
            if each is not None
        )
        missed = sorted((each.due, each.at, each.target_key or "", each.then, each.queued) for each in changes.missed)
        return runs, receipts, missed


def lived(options: Sequence[ConsumerOptions], found: Sequence[Any], looks: Sequence[datetime]) -> Any:
    """Return the story of a clock that looks at some moments, each before what is recorded after that moment."""
    life, ahead = Life(*options), sorted(looks)
    for place, (moment, what) in enumerate(found):
        while ahead and ahead[0] < moment:
            life.look(ahead.pop(0))
        life.do(place, moment, what)
    life.look(END)
    return life.story()


# The updates of a missed deadline expire in the cooldown before another comes.
LATE = ConsumerOptions(
    Schedule((A & B).within(minutes(40))),
    deadline=Deadline(minutes(10), then="run"),
    intake=Intake(cooldown=minutes(60)),
)


@pytest.mark.rule("9.6")
@settings(max_examples=100)
@example((LATE, LATE), [(START + minutes(at), (A, "x")) for at in (300, 320, 370)], [])
@given(st.tuples(all_options(), all_options()), steps, st.lists(moments, max_size=6))
def test_it_does_not_matter_when_anybody_looks(
    options: Sequence[ConsumerOptions], found: list[Any], looks: list[datetime]
) -> None:
    often = [START + minutes(10 * tens) + beside * INSTANT for tens in range(60) for beside in (-1, 0, 1)]
    always = lived(options, found, [*often, *(moment - INSTANT for moment, _ in found)])
    assert lived(options, found, ()) == always
    assert lived(options, found, looks) == always
