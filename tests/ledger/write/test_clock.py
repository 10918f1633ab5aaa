"""Time acts on a ledger: an evaluator that slept finds the runs of one that never did. Contract 9.6."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assetflow.core.rules import line
from assetflow.core.rules.evaluation import Reach
from assetflow.core.rules.state.queues import Queues
from assetflow.core.time.timetables import CronTriggerTimetable
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import AtLeast
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.schedules import ConsumerOptions, Partitioning, Schedule
from assetflow.core.values.timing import Deadline, Intake, Opening
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger
from assetflow.ledger.read.explanations import consumer_explanation, decision_explanation
from assetflow.ledger.write import store
from tests.ledger.making import A, B, C, declared, deploy, update

START = datetime(2026, 1, 1, tzinfo=UTC)
END = START + timedelta(hours=60)
INSTANT = timedelta(microseconds=1)
NAMESPACE = UUID(int=7)
EVERY_SIX = CronTriggerTimetable("0 */6 * * *")
EVERY_FOUR = CronTriggerTimetable("30 */4 * * *")


def hours(number: float) -> timedelta:
    return timedelta(hours=number)


SCHEDULES = {
    "within": ConsumerOptions(Schedule((A & B).within(hours(2)))),
    "since": ConsumerOptions(Schedule((A & B).since("0 */3 * * *") | C.times(3))),
    "quorum": ConsumerOptions(Schedule(AtLeast(2, A, B, C).within(hours(4)))),
    "debounce": ConsumerOptions(Schedule(A | B), intake=Intake(debounce=hours(1), max_wait=hours(3))),
    "batches": ConsumerOptions(Schedule(A | B | C), intake=Intake(min_events=3, max_wait=hours(5), max_events=4)),
    "one by one": ConsumerOptions(Schedule(A), intake=Intake(max_events=1, cooldown=hours(2))),
    "deadline runs": ConsumerOptions(Schedule(A & B), deadline=Deadline(hours(2), then="run")),
    "deadline skips": ConsumerOptions(Schedule(A & B), deadline=Deadline(hours(2), then="skip")),
    "opening": ConsumerOptions(
        Schedule(A & B, opening=Opening(EVERY_SIX, EVERY_FOUR)), deadline=Deadline(at=EVERY_FOUR, then="run")
    ),
    "long windows while open": ConsumerOptions(
        Schedule(B | (A & C).within(hours(9)), opening=Opening(EVERY_SIX, CronTriggerTimetable("0 1-23/3 * * *")))
    ),
    "keys": ConsumerOptions(
        Schedule(A & B, Partitioning(), opening=Opening(EVERY_SIX)), intake=Intake(cooldown=hours(3))
    ),
}

# Between the instants at which something ends, exactly at them, and just beside them.
moments = st.builds(
    lambda hour, beside: START + hours(hour) + beside,
    st.integers(1, 40),
    st.sampled_from([hours(0.5), hours(0.5), timedelta(), INSTANT, -INSTANT]),
)
updates = st.lists(
    st.tuples(moments, st.sampled_from([A, B, C]), st.sampled_from(["x", "y"])), min_size=1, max_size=12
).map(lambda found: sorted(found, key=lambda each: each[0]))


def recordings(found: Sequence[Any], options: ConsumerOptions) -> list[tuple[datetime, Recording]]:
    made: list[tuple[datetime, Recording]] = []
    for place, (moment, asset, key) in enumerate(found):
        number = uuid5(NAMESPACE, str(place))
        event = AssetEvent(
            number, asset, moment, Origin("api"), partition_key=key if options.schedule.is_partitioned else None
        )
        made.append((moment, Recording(number, (event,), durable=moment)))
    return made


def story(ledger: Ledger) -> list[Any]:
    """What became of everything, by instants."""
    decisions = ledger.reader.decisions.find(limit=1000)
    consumed = ledger.reader.decisions.events_of(decisions)
    runs = sorted(
        (each.made, each.target_key or "", each.opening, each.by_deadline, [event.id for event in consumed[each.id]])
        for each in decisions
    )
    receipts = [
        (event.id, each.receipt.status, each.at if each.receipt.status in ("expired", "skipped") else None)
        for event in sorted(ledger.reader.events.find(limit=1000), key=lambda event: str(event.id))
        for each in ledger.reader.receipts.of_event(event.id)
    ]
    missed = sorted(
        (each.due, each.at, each.target_key or "", each.queued) for each in ledger.writer.clock.to_announce(1000)
    )
    return [runs, receipts, missed]


def let_pass(ledger: Ledger, until: datetime) -> None:
    while (passed := ledger.writer.clock.run(until, END)).next is not None and passed.next <= until:
        pass


def opened(folder: Path, template: Path, options: ConsumerOptions) -> Ledger:
    ledger = Ledger.open(shutil.copy(template, folder / "ledger.db"))
    text = declaration_to_text(FlowDeclaration(options))
    ledger.writer.consumers.deploy("flow/one", UUID(int=1), None, text, False, False, START)
    return ledger


def lived(
    template: Path, options: ConsumerOptions, found: Sequence[Any], looks: Sequence[int], *, late: bool
) -> list[Any]:
    """Return the story of an evaluator that looked at each instant, or only before some of the updates."""
    with TemporaryDirectory() as folder:
        ledger = opened(Path(folder), template, options)
        try:
            for place, (moment, recording) in enumerate(recordings(found, options)):
                if not late or place in looks:
                    let_pass(ledger, moment - INSTANT)
                ledger.writer.events.record([recording], END if late else moment)
            let_pass(ledger, END)
            return story(ledger)
        finally:
            ledger.close()


@pytest.mark.rule("9.3", "9.4", "9.6", "9.10")
@pytest.mark.parametrize("options", SCHEDULES.values(), ids=SCHEDULES.keys())
@settings(max_examples=5, deadline=None)
@given(found=updates, looks=st.sets(st.integers(0, 11)))
def test_an_evaluator_that_slept_finds_the_runs_of_one_that_never_did(
    template: Path, options: ConsumerOptions, found: list[Any], looks: set[int]
) -> None:
    slept = lived(template, options, found, sorted(looks), late=True)
    assert slept == lived(template, options, found, (), late=False)


@pytest.mark.rule("9.6")
def test_what_prefect_shows_late_counts_right_after_what_is_decided(sqlite_ledger: Ledger) -> None:
    deploy(sqlite_ledger, A, intake=Intake(debounce=hours(1)))
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    sqlite_ledger.writer.events.record([update(A)], noon)
    let_pass(sqlite_ledger, noon + hours(2))
    late = Recording(UUID(int=5), update(A).events, durable=noon + hours(0.5))

    ((recorded, _),) = sqlite_ledger.writer.events.record([late], noon + hours(3))

    assert recorded.events[0].recorded == noon + hours(1) + INSTANT


@pytest.mark.rule("9.6")
def test_an_update_is_never_recorded_in_the_future(sqlite_ledger: Ledger) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    ahead = Recording(UUID(int=5), update(A).events, durable=noon + hours(1))

    ((recorded, _),) = sqlite_ledger.writer.events.record([ahead], noon)

    assert recorded.events[0].recorded == noon


@pytest.mark.rule("9.8")
def test_a_missed_deadline_is_announced_until_it_is_known(sqlite_ledger: Ledger) -> None:
    deploy(sqlite_ledger, A & B, deadline=Deadline(hours(1)))
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    sqlite_ledger.writer.events.record([update(A)], noon)
    let_pass(sqlite_ledger, noon + hours(1) - INSTANT)
    assert not sqlite_ledger.writer.clock.to_announce(10)

    let_pass(sqlite_ledger, noon + hours(1))

    (missed,) = sqlite_ledger.writer.clock.to_announce(10)
    assert (missed.due, missed.queued, missed.consumer_name) == (noon + hours(1), 1, "flow/one")
    assert missed.missing == (B.uri,)
    assert sqlite_ledger.reader.deadlines.missed() == [missed]
    sqlite_ledger.writer.clock.announced([missed.number], noon)
    assert not sqlite_ledger.writer.clock.to_announce(10)


def test_a_redeploy_tells_of_a_deadline_that_is_over_before_its_time_gate_lets_the_event_expire(
    sqlite_ledger: Ledger,
) -> None:
    """Deadlines are looked at before what is a span old expires (9.6), also if both are over at the deploy (9.8)."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    deploy(sqlite_ledger, A & B)
    sqlite_ledger.writer.events.record([update(A)], noon)
    options = {"deadline": Deadline(hours(1), then="run")}

    sqlite_ledger.writer.consumers.change(1, declared((A & B).within(hours(1)), **options), noon + hours(2))
    let_pass(sqlite_ledger, noon + hours(3))

    (missed,) = sqlite_ledger.reader.deadlines.missed()
    assert (missed.due, missed.at) == (noon + hours(1), noon + hours(2))
    assert [each.made for each in sqlite_ledger.reader.decisions.find()] == [noon + hours(2)]


@pytest.mark.rule("9.8")
def test_missed_deadlines_are_listed_newest_first(sqlite_ledger: Ledger) -> None:
    first = deploy(sqlite_ledger, A & B, deadline=Deadline(hours(1)))
    deploy(sqlite_ledger, A & C, "flow/two", deadline=Deadline(hours(2)))
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    for hour in (0, 4):
        sqlite_ledger.writer.events.record([update(A)], noon + hours(hour))
        let_pass(sqlite_ledger, noon + hours(hour + 3))
        for asset in (B, C):
            sqlite_ledger.writer.events.record([update(asset)], noon + hours(hour + 3))
    missed = sqlite_ledger.reader.deadlines.missed

    assert [(each.number, each.consumer_name) for each in missed()] == [
        (4, "flow/two"),
        (3, "flow/one"),
        (2, "flow/two"),
        (1, "flow/one"),
    ]
    assert [each.number for each in missed(before=3, limit=1)] == [2]
    assert [each.due for each in missed(consumer=first.id)] == [noon + hours(5), noon + hours(1)]


@pytest.mark.rule("9.11")
def test_the_runs_of_late_decisions_start_a_cooldown_apart(sqlite_ledger: Ledger) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    deploy(sqlite_ledger, A, intake=Intake(max_events=1, cooldown=hours(1)))
    sqlite_ledger.writer.events.record([update(A), update(A), update(A), update(A)], noon)
    woken = noon + hours(24)

    sqlite_ledger.writer.clock.run(noon + hours(3), woken)

    decisions = sqlite_ledger.reader.decisions.find()[::-1]
    assert [each.made for each in decisions] == [noon, *(noon + hours(late) for late in (1, 2, 3))]
    assert [each.scheduled for each in decisions] == [None, None, woken + hours(1), woken + hours(2)]
    # The run before starts late, so that this one follows later too, although it is decided on in time.
    sqlite_ledger.writer.events.record([update(A)], noon + hours(25))
    sqlite_ledger.writer.events.record([update(A)], noon + hours(28))
    assert [each.scheduled for each in sqlite_ledger.reader.decisions.find()[:2]] == [None, woken + hours(3)]


@pytest.mark.rule("9.11")
def test_the_run_of_a_decision_that_comes_in_time_starts_at_once(sqlite_ledger: Ledger) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    deploy(sqlite_ledger, A, intake=Intake(max_events=1, cooldown=hours(1)))
    sqlite_ledger.writer.events.record([update(A), update(A)], noon)

    sqlite_ledger.writer.clock.run(noon + hours(1), noon + hours(1))

    assert [each.scheduled for each in sqlite_ledger.reader.decisions.find()] == [None, None]


@pytest.mark.parametrize("key", [None, "x"])
def test_a_cooldown_that_is_deployed_counts_from_the_last_decision_before_it(key: str | None, ledger: Ledger) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    schedule = Schedule(A, None if key is None else Partitioning())
    deploy(ledger, schedule)
    ledger.writer.events.record([update(A, partition_key=key)], noon - hours(1))
    ledger.writer.events.record([update(A, partition_key=key)], noon)
    ledger.writer.consumers.change(1, declared(schedule, intake=Intake(cooldown=hours(1))), noon + hours(0.1))

    ledger.writer.events.record([update(A, partition_key=key)], noon + hours(0.5))
    ledger.writer.clock.run(noon + hours(2), noon + hours(2))

    assert [each.made for each in ledger.reader.decisions.find()] == [noon + hours(1), noon, noon - hours(1)]


@pytest.mark.parametrize("beside", [timedelta(), INSTANT, timedelta(seconds=1), hours(0.4)])
def test_an_update_after_until_does_not_delay_what_comes_later(sqlite_ledger: Ledger, beside: timedelta) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    opened = Opening(CronTriggerTimetable("0 */2 * * *"), CronTriggerTimetable("0 1-23/2 * * *"))
    deploy(sqlite_ledger, Schedule(B | (A & C).within(hours(6)), opening=opened))
    let_pass(sqlite_ledger, noon)
    sqlite_ledger.writer.events.record([update(A)], noon + hours(0.1))
    # The clock has not looked at the closing yet.
    sqlite_ledger.writer.events.record([update(A)], noon + hours(1) + beside)
    let_pass(sqlite_ledger, noon + hours(2))

    sqlite_ledger.writer.events.record([update(B)], noon + hours(2.5))

    assert [each.made for each in sqlite_ledger.reader.decisions.find()] == [noon + hours(2.5)]


@pytest.mark.rule("9.6")
def test_recordings_of_one_instant_whose_passes_had_to_wait_have_a_pass_each(sqlite_ledger: Ledger) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    deploy(sqlite_ledger, A, intake=Intake(cooldown=hours(1)))
    for late in (0, 0.5):
        sqlite_ledger.writer.events.record([update(A)], noon + hours(late))
    together = [update(A, A), update(A)]
    sqlite_ledger.writer.events.record(together, noon + hours(3))

    let_pass(sqlite_ledger, noon + hours(9))

    decisions = sqlite_ledger.reader.decisions.find()
    consumed = sqlite_ledger.reader.decisions.events_of(decisions)
    assert [(each.made, len(consumed[each.id])) for each in decisions] == [
        (noon + hours(4), 1),
        (noon + hours(3), 2),
        (noon + hours(1), 1),
        (noon, 1),
    ]


@pytest.mark.rule("9.6", "9.14")
class TestDeployThatIsFoundAtTheStart:
    """It is recorded first and bears the start's instant; openings and deadlines before it do not count (9.6)."""

    NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
    START = NOON + hours(8)

    def changed(self, ledger: Ledger, schedule: object, **options: Any) -> None:
        """Find another declaration at the start, and then what was recorded meanwhile: B an hour and a half after A."""
        ledger.writer.consumers.change(1, declared(schedule, **options), self.START, late=True)

    def came(self, ledger: Ledger, asset: Asset, late: float) -> None:
        ledger.writer.events.record([Recording(uuid4(), update(asset).events, self.NOON + hours(late))], self.START)

    def made(self, ledger: Ledger) -> list[tuple[datetime, int]]:
        let_pass(ledger, self.START + hours(10))
        decisions = ledger.reader.decisions.find()[::-1]
        consumed = ledger.reader.decisions.events_of(decisions)
        return [(each.made, len(consumed[each.id])) for each in decisions]

    def test_the_clock_goes_through_the_past_by_the_new_options(self, sqlite_ledger: Ledger) -> None:
        deploy(sqlite_ledger, A | B, intake=Intake(debounce=hours(1)))
        sqlite_ledger.writer.events.record([update(A)], self.NOON)

        self.changed(sqlite_ledger, A | B, intake=Intake(debounce=hours(2)))
        self.came(sqlite_ledger, B, 1.5)

        assert self.made(sqlite_ledger) == [(self.NOON + hours(3.5), 2)]

    def test_its_pass_comes_with_the_start(self, sqlite_ledger: Ledger) -> None:
        deploy(sqlite_ledger, A & B, deadline=Deadline(hours(24)))
        sqlite_ledger.writer.events.record([update(A)], self.NOON)

        self.changed(sqlite_ledger, A, deadline=Deadline(hours(24)))

        assert not sqlite_ledger.reader.decisions.find()
        assert self.made(sqlite_ledger) == [(self.START, 1)]

    def test_no_deadline_counts_before_it(self, sqlite_ledger: Ledger) -> None:
        deploy(sqlite_ledger, A & B, deadline=Deadline(hours(1), then="skip"))
        deploy(sqlite_ledger, A & C, "flow/two", deadline=Deadline(hours(1), then="skip"))
        sqlite_ledger.writer.events.record([update(A)], self.NOON)

        text = declared(A & C, deadline=Deadline(hours(2), then="skip"))
        sqlite_ledger.writer.consumers.change(2, text, self.START, late=True)
        self.changed(sqlite_ledger, A & B, deadline=Deadline(hours(2), then="skip"))
        self.came(sqlite_ledger, B, 3)

        assert self.made(sqlite_ledger) == [(self.NOON + hours(3), 2)]
        (missed,) = sqlite_ledger.reader.deadlines.missed()
        assert missed.consumer_name == "flow/two"
        assert (missed.due, missed.at) == (self.NOON + hours(2), self.START)

    def test_no_opening_counts_before_it(self, sqlite_ledger: Ledger) -> None:
        opened = Schedule(A, opening=Opening(EVERY_SIX))
        deploy(sqlite_ledger, opened)

        self.changed(sqlite_ledger, opened, coalesce=True)
        self.came(sqlite_ledger, A, 1)

        # 18:00 lies before the start at 20:00; midnight is the first opening that counts.
        assert self.made(sqlite_ledger) == [(self.NOON + hours(12), 1)]

    def test_until_closes_what_was_open(self, sqlite_ledger: Ledger) -> None:
        until = CronTriggerTimetable("0 15 * * *")
        opened = Schedule(A, opening=Opening(CronTriggerTimetable("0 13 * * *"), until))
        deploy(sqlite_ledger, opened)
        let_pass(sqlite_ledger, self.NOON + hours(1))

        self.changed(sqlite_ledger, opened, coalesce=True)
        self.came(sqlite_ledger, A, 4)

        assert self.made(sqlite_ledger) == []

    def test_a_new_consumer_has_no_deadline_before_it(self, sqlite_ledger: Ledger) -> None:
        text = declared(A & B, deadline=Deadline(hours(1)))
        sqlite_ledger.writer.consumers.deploy("flow/new", uuid4(), None, text, False, False, self.START, late=True)
        self.came(sqlite_ledger, A, 1)

        assert self.made(sqlite_ledger) == []
        (missed,) = sqlite_ledger.reader.deadlines.missed()
        assert (missed.due, missed.at) == (self.NOON + hours(2), self.START)


@pytest.mark.rule("9.6")
class TestSwitchThatIsFoundLate:
    """It is recorded first and bears the instant at which it was found, whatever is not recorded yet (9.6)."""

    NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
    FOUND = NOON + hours(8)

    def came(self, ledger: Ledger, asset: Asset, late: float) -> None:
        ledger.writer.events.record([Recording(uuid4(), update(asset).events, self.NOON + hours(late))], self.FOUND)

    def switched(self, ledger: Ledger, **switches: bool) -> None:
        ledger.writer.consumers.switch(1, **switches, now=self.FOUND, late=True)

    def made(self, ledger: Ledger) -> list[tuple[datetime, int]]:
        let_pass(ledger, self.FOUND + hours(10))
        decisions = ledger.reader.decisions.find()[::-1]
        consumed = ledger.reader.decisions.events_of(decisions)
        return [(each.made, len(consumed[each.id])) for each in decisions]

    def test_an_explanation_tells_it_from_a_deploy(self, ledger: Ledger) -> None:
        deploy(ledger, A, while_paused="keep")
        ledger.writer.consumers.switch(1, paused=True, now=self.NOON)
        self.came(ledger, A, 1)
        self.switched(ledger, paused=False)
        told = decision_explanation(ledger.reader, ledger.reader.decisions.find()[0]).words
        assert "when the evaluator found, at 2026-01-01 20:00:00 UTC, that it was active again." in told

    @pytest.mark.parametrize("switches", [{"paused": True}, {"held": True}], ids=["paused", "held"])
    def test_nothing_is_decided_as_of_before_it(self, sqlite_ledger: Ledger, switches: dict[str, bool]) -> None:
        deploy(sqlite_ledger, A | B, while_paused="keep", intake=Intake(debounce=hours(1)))
        sqlite_ledger.writer.events.record([update(A)], self.NOON)

        self.switched(sqlite_ledger, **switches)
        self.came(sqlite_ledger, B, 0.5)

        assert self.made(sqlite_ledger) == []

    def test_a_resume_decides_with_what_is_recorded_after_it(self, sqlite_ledger: Ledger) -> None:
        deploy(sqlite_ledger, A | B, while_paused="keep", intake=Intake(debounce=hours(2)))
        sqlite_ledger.writer.consumers.switch(1, paused=True, now=self.NOON)
        sqlite_ledger.writer.events.record([update(A)], self.NOON)

        self.switched(sqlite_ledger, paused=False)
        self.came(sqlite_ledger, B, 7)

        assert self.made(sqlite_ledger) == [(self.NOON + hours(9), 2)]

    def test_the_pass_of_a_resume_comes_with_it(self, sqlite_ledger: Ledger) -> None:
        deploy(sqlite_ledger, A, while_paused="keep", deadline=Deadline(hours(24)))
        sqlite_ledger.writer.consumers.switch(1, paused=True, now=self.NOON)
        sqlite_ledger.writer.events.record([update(A)], self.NOON)

        self.switched(sqlite_ledger, paused=False)

        assert not sqlite_ledger.reader.decisions.find()
        assert self.made(sqlite_ledger) == [(self.FOUND, 1)]

    def test_a_deadline_that_fell_into_a_pause_is_looked_at_after_the_pass(self, sqlite_ledger: Ledger) -> None:
        deploy(sqlite_ledger, A & B, while_paused="keep", deadline=Deadline(hours(1)))
        sqlite_ledger.writer.consumers.switch(1, paused=True, now=self.NOON)
        sqlite_ledger.writer.events.record([update(A)], self.NOON)

        self.switched(sqlite_ledger, paused=False)

        assert self.made(sqlite_ledger) == []
        (missed,) = sqlite_ledger.reader.deadlines.missed()
        assert (missed.due, missed.at) == (self.NOON + hours(1), self.FOUND)

    def test_what_was_closed_in_a_pause_is_closed(self, sqlite_ledger: Ledger) -> None:
        until = CronTriggerTimetable("0 15 * * *")
        opened = Schedule(A, opening=Opening(CronTriggerTimetable("0 13 * * *"), until))
        deploy(sqlite_ledger, opened, while_paused="keep", deadline=Deadline(hours(1)))
        let_pass(sqlite_ledger, self.NOON + hours(1))
        sqlite_ledger.writer.consumers.switch(1, paused=True, now=self.NOON + hours(1.5))
        sqlite_ledger.writer.events.record([update(A)], self.NOON + hours(1.6))

        self.switched(sqlite_ledger, paused=False)

        assert self.made(sqlite_ledger) == []
        assert sqlite_ledger.reader.deadlines.missed() == []


@pytest.mark.rule("9.13")
class TestOpeningInAPause:
    """A time that passes in a pause or a hold opens the schedule at the resume (9.13)."""

    DAY = datetime(2026, 1, 2, tzinfo=UTC)
    SIX = DAY + hours(6)
    SCHEDULE = Schedule(A, opening=Opening(CronTriggerTimetable("0 6 * * *")))

    def came(self, ledger: Ledger, hour: float, recorded: float | None = None) -> None:
        event = Recording(uuid4(), update(A).events, self.DAY + hours(hour))
        ledger.writer.events.record([event], self.DAY + hours(recorded or hour))

    def made(self, ledger: Ledger, until: float) -> list[tuple[datetime, datetime | None, int]]:
        let_pass(ledger, self.DAY + hours(until))
        decisions = ledger.reader.decisions.find()
        consumed = ledger.reader.decisions.events_of(decisions)
        return [(each.made, each.opening, len(consumed[each.id])) for each in decisions]

    @pytest.mark.parametrize("switch", ["paused", "held"])
    @pytest.mark.parametrize("is_redeployed", [False, True], ids=["", "redeployed"])
    def test_the_run_of_the_day_comes_at_the_resume(
        self, sqlite_ledger: Ledger, switch: str, *, is_redeployed: bool
    ) -> None:
        deploy(sqlite_ledger, self.SCHEDULE, while_paused="keep")
        let_pass(sqlite_ledger, self.DAY)
        sqlite_ledger.writer.consumers.switch(1, now=self.DAY + hours(5), **{switch: True})
        self.came(sqlite_ledger, 5.5)
        if is_redeployed:
            text = declared(self.SCHEDULE, while_paused="keep")
            sqlite_ledger.writer.consumers.change(1, text, self.DAY + hours(7))
        assert self.made(sqlite_ledger, 7.5) == []

        sqlite_ledger.writer.consumers.switch(1, now=self.DAY + hours(8), **{switch: False})
        self.came(sqlite_ledger, 9)

        assert self.made(sqlite_ledger, 20) == [(self.DAY + hours(8), self.SIX, 1)]

    def test_a_resume_that_is_found_after_a_downtime_opens_once(self, tmp_path: Path, template: Path) -> None:
        place = shutil.copy(template, tmp_path / "ledger.db")
        with Ledger.open(place) as ledger:
            deploy(ledger, self.SCHEDULE, while_paused="keep")
            let_pass(ledger, self.DAY)
            ledger.writer.consumers.switch(1, paused=True, now=self.DAY + hours(5))

        with Ledger.open(place) as ledger:
            # It was resumed at 05:50.
            ledger.writer.consumers.switch(1, paused=False, now=self.DAY + hours(8), late=True)
            self.came(ledger, 6 + 1 / 6, recorded=8)
            (run,) = self.made(ledger, 9)

        with Ledger.open(place) as ledger:
            self.came(ledger, 10)
            assert self.made(ledger, 20) == [run]
        assert run[1:] == (self.SIX, 1)

    def test_an_explanation_names_the_time_for_which_the_resume_opens(self, sqlite_ledger: Ledger) -> None:
        deploy(sqlite_ledger, self.SCHEDULE, while_paused="keep")
        sqlite_ledger.writer.consumers.switch(1, paused=True, now=self.DAY + hours(5))
        self.came(sqlite_ledger, 5.5)

        def notes(moment: datetime) -> str:
            (record,) = sqlite_ledger.reader.consumers.all()
            return " ".join(consumer_explanation(sqlite_ledger.reader, record, moment).notes)

        assert "opens at the resume" not in notes(self.SIX - INSTANT)
        for moment in (self.SIX, self.SIX + hours(1)):
            assert "It opens at the resume, for 2026-01-02 06:00:00 UTC." in notes(moment)


def test_the_end_of_a_run_that_is_found_late_leaves_what_is_not_recorded_yet_time_to_come(
    sqlite_ledger: Ledger,
) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    deploy(sqlite_ledger, A | B, coalesce=True, intake=Intake(debounce=hours(1)))
    sqlite_ledger.writer.events.record([update(A)], noon)
    let_pass(sqlite_ledger, noon + hours(1))
    (first,) = sqlite_ledger.reader.decisions.find()
    sqlite_ledger.writer.events.record([update(A)], noon + hours(2))

    sqlite_ledger.writer.decisions.ended("Completed", noon + hours(8), decision_id=first.id, late=True)
    sqlite_ledger.writer.events.record([Recording(uuid4(), update(B).events, noon + hours(2.5))], noon + hours(8))

    let_pass(sqlite_ledger, noon + hours(9))
    assert [each.made for each in sqlite_ledger.reader.decisions.find()] == [noon + hours(3.5), noon + hours(1)]


def test_a_long_queue_that_lacks_an_asset_is_not_read(sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """One open window may hold very many updates; each costs as much as the first one."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    deploy(sqlite_ledger, (A & B).within(hours(6)), deadline=Deadline(hours(5)))
    for minute in range(3):
        sqlite_ledger.writer.events.record([update(A)], noon + timedelta(minutes=minute))

    with monkeypatch.context() as patched:
        patched.setattr(Queues, "queued", None)
        sqlite_ledger.writer.events.record([update(A)], noon + timedelta(minutes=3))

    assert sqlite_ledger.writer.clock.run(noon + hours(4), noon + hours(4)).next == noon + hours(5)
    assert sqlite_ledger.writer.clock.run(noon + hours(5), noon + hours(5)).next == noon + hours(6)
    sqlite_ledger.writer.events.record([update(B)], noon + hours(5.9))
    (decision,) = sqlite_ledger.reader.decisions.find()
    assert len(sqlite_ledger.reader.decisions.events_of([decision])[decision.id]) == 5


@pytest.mark.parametrize(
    ("schedule", "options", "due"),
    [
        (A | B, {"intake": Intake(debounce=hours(1))}, hours(1)),
        (A | B, {"intake": Intake(debounce=hours(2), max_wait=hours(3))}, hours(2)),
        (A | B, {"intake": Intake(min_events=100, max_wait=hours(3))}, hours(3)),
        (A & AtLeast(2, A, B, C), {"deadline": Deadline(hours(4))}, hours(4)),
        (A.times(10) | B, {"intake": Intake(cooldown=hours(5)), "deadline": Deadline(hours(2))}, hours(2)),
    ],
    ids=["debounce", "debounce with max_wait", "min_events", "quorum", "times"],
)
def test_a_long_queue_that_waits_for_certain_is_not_read(
    sqlite_ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
    schedule: Any,
    options: dict[str, Any],
    due: timedelta,
) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    deploy(sqlite_ledger, schedule, **options)
    with monkeypatch.context() as patched:
        patched.setattr(Queues, "queued", None)
        for minute in range(3):
            sqlite_ledger.writer.events.record([update(A)], noon + timedelta(minutes=minute))

    assert sqlite_ledger.writer.clock.run(noon, noon).next == noon + due


def test_a_long_queue_is_not_read_while_it_is_closed(sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    deploy(sqlite_ledger, Schedule(A, opening=Opening(EVERY_SIX, EVERY_FOUR)))
    let_pass(sqlite_ledger, noon + hours(0.5))
    with monkeypatch.context() as patched:
        patched.setattr(Queues, "queued", None)
        sqlite_ledger.writer.events.record([update(A)], noon + hours(1))
        sqlite_ledger.writer.events.record([update(A)], noon + hours(2))

    let_pass(sqlite_ledger, noon + hours(6))
    (decision,) = sqlite_ledger.reader.decisions.find()
    assert decision.made == noon + hours(6)


def test_the_deadline_of_an_opening_runs_with_what_is_there(sqlite_ledger: Ledger) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    opened = Schedule(A & B, opening=Opening(CronTriggerTimetable("0 13 * * *")))
    deploy(sqlite_ledger, opened, deadline=Deadline(hours(1), then="run"))
    let_pass(sqlite_ledger, noon + hours(24))
    sqlite_ledger.writer.events.record([update(A)], noon + hours(24))

    let_pass(sqlite_ledger, noon + hours(26))

    (decision,) = sqlite_ledger.reader.decisions.find()
    assert (decision.made, decision.by_deadline) == (noon + hours(26), True)


@pytest.mark.rule("9.14")
def test_what_a_queue_waits_for_outlives_opening_hours_that_are_taken_away(sqlite_ledger: Ledger) -> None:
    """The redeploy drops the opening hours; the cooldown that it brings has to end (9.14)."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    opened_at_one = Schedule(A, opening=Opening(CronTriggerTimetable("0 13 * * *")))
    consumer = deploy(sqlite_ledger, opened_at_one)
    sqlite_ledger.writer.events.record([update(A)], noon)
    let_pass(sqlite_ledger, noon + hours(1))
    sqlite_ledger.writer.events.record([update(A)], noon + hours(2))

    sqlite_ledger.writer.consumers.change(consumer.id, declared(A, intake=Intake(cooldown=hours(6))), noon + hours(3))

    let_pass(sqlite_ledger, noon + hours(7) - INSTANT)
    assert len(sqlite_ledger.reader.decisions.find()) == 1
    let_pass(sqlite_ledger, noon + hours(7))
    assert len(sqlite_ledger.reader.decisions.find()) == 2


def test_what_was_due_by_options_without_instants_is_not_made_up_for(sqlite_ledger: Ledger) -> None:
    """For a while, the flow has no window; the end of the window before it falls into that time (9.5, 9.14)."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    timed, plain = declared((A & B).within(hours(1))), declared(A & B)
    ledger = sqlite_ledger
    deploy(ledger, (A & B).within(hours(1)))
    ledger.writer.events.record([update(A)], noon)
    ledger.writer.consumers.change(1, plain, noon + hours(0.5))
    ledger.writer.consumers.change(1, timed, noon + hours(2))

    let_pass(ledger, noon + hours(3))

    (receipt,) = ledger.reader.receipts.of_event(ledger.reader.events.find()[0].id)
    assert (receipt.receipt.status, receipt.at) == ("expired", noon + hours(2))


@pytest.mark.parametrize("options", [{}, {"intake": Intake(cooldown=hours(4))}, {"deadline": Deadline(hours(9))}])
def test_a_missed_deadline_says_run_only_as_long_as_there_is_such_a_deadline(
    sqlite_ledger: Ledger, options: dict[str, Any]
) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    ledger = sqlite_ledger
    deploy(ledger, A & B, intake=Intake(cooldown=hours(4)), deadline=Deadline(hours(1), then="run"))
    ledger.writer.events.record([update(A, B)], noon)
    ledger.writer.events.record([update(A)], noon + hours(1))
    let_pass(ledger, noon + hours(2))
    ledger.writer.consumers.change(1, declared(A & B, **options), noon + hours(2.5))
    ledger.writer.consumers.change(1, declared((A & B).within(hours(9))), noon + hours(5))

    let_pass(ledger, noon + hours(6))

    assert [each.made for each in ledger.reader.decisions.find()] == [noon]


def test_an_update_of_the_instant_of_a_pause_is_decided_before_it(sqlite_ledger: Ledger) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    deploy(sqlite_ledger, Schedule(A, opening=Opening(EVERY_SIX)), while_paused="keep")
    let_pass(sqlite_ledger, noon - INSTANT)
    # The clock has not looked at the opening yet.
    sqlite_ledger.writer.events.record([update(A)], noon + hours(1))

    sqlite_ledger.writer.consumers.switch(1, paused=True, now=noon + hours(1))

    let_pass(sqlite_ledger, noon + hours(2))
    assert [each.made for each in sqlite_ledger.reader.decisions.find()] == [noon + hours(1)]


@pytest.mark.rule("9.10")
class TestLongQueue:
    """Very many updates cost their number, not its square: a reading and a judgement of each, counted."""

    NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

    @pytest.fixture
    def judged(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """How often queued events were put in order, and how often a gate was judged over one."""
        counts = [0, 0]
        in_order, read = line.in_order, Reach.read

        def counted_order(events: Sequence[AssetEvent]) -> list[AssetEvent]:
            counts[0] += len(events)
            return in_order(events)

        def counted_read(reach: Reach, event: AssetEvent) -> bool:
            counts[1] += 1
            return read(reach, event)

        monkeypatch.setattr(line, "in_order", counted_order)
        monkeypatch.setattr(Reach, "read", counted_read)
        return counts

    def test_of_max_events_in_one_recording(self, sqlite_ledger: Ledger, judged: list[int]) -> None:
        deploy(sqlite_ledger, A | B, intake=Intake(max_events=1))
        costs: list[list[int]] = []
        for count in (50, 500):
            judged[:] = [0, 0]
            ((_, decisions),) = sqlite_ledger.writer.events.record([update(*[A] * count)], self.NOON)
            assert [len(each.events) for each in decisions] == [1] * count
            costs.append([*judged])

        assert all(many <= 11 * few for few, many in zip(*costs, strict=True))

    def test_many_decisions_are_made_in_several_transactions(
        self, tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(store, "MOST_DECISIONS", 3)
        place, later = shutil.copy(template, tmp_path / "ledger.db"), self.NOON + timedelta(seconds=1)
        with Ledger.open(place) as ledger:
            deploy(ledger, A | B, intake=Intake(max_events=4))
            ((_, first),) = ledger.writer.events.record([update(*[A] * 30)], self.NOON)
            assert len(first) == 3
            ((_, none),) = ledger.writer.events.record([update(B, B)], later)
            assert none == []

        # The process was killed, and another one goes on.
        with Ledger.open(place) as ledger:
            slices: list[int] = []
            while (passed := ledger.writer.clock.run(later, END)).next is not None and passed.next <= later:
                slices.append(len(passed.decisions))
            decisions = ledger.reader.decisions.find()[::-1]
            consumed = ledger.reader.decisions.events_of(decisions)
        assert max(slices) == 3
        assert [len(consumed[each.id]) for each in decisions] == [4, 4, 4, 4, 4, 4, 4, 2, 2]
        assert [each.made for each in decisions] == [self.NOON] * 8 + [later]

    def test_of_a_window_after_a_downtime(self, sqlite_ledger: Ledger, judged: list[int]) -> None:
        deploy(sqlite_ledger, (A & B).within(hours(1)))
        costs: list[list[int]] = []
        for day, count in enumerate((40, 400)):
            start = self.NOON + hours(24 * day)
            moments = [start + place * hours(2) / count for place in range(count)]
            found = [Recording(uuid4(), update(A).events, moment) for moment in moments]
            sqlite_ledger.writer.events.record(found, start + hours(5))
            judged[:] = [0, 0]
            let_pass(sqlite_ledger, start + hours(5))
            costs.append([*judged])

        receipts = [
            each
            for event in sqlite_ledger.reader.events.find(limit=1000)
            for each in sqlite_ledger.reader.receipts.of_event(event.id)
        ]
        assert {each.receipt.status for each in receipts} == {"expired"}
        assert all(many <= 11 * few for few, many in zip(*costs, strict=True))


def test_an_opening_does_not_overtake_queues_of_which_a_look_takes_only_some(
    sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assetflow.ledger.write.consumers.AT_ONCE", 1)
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    deploy(sqlite_ledger, Schedule((A & B).within(hours(1)), Partitioning(), opening=Opening(EVERY_SIX)))
    deploy(sqlite_ledger, Schedule((A & C).within(hours(0.5)), Partitioning()), "flow/other")
    let_pass(sqlite_ledger, noon)
    for place, key in enumerate("xyz", 1):
        sqlite_ledger.writer.events.record([update(A, partition_key=key)], noon + place * hours(0.1))

    let_pass(sqlite_ledger, noon + hours(24))

    reader = sqlite_ledger.reader
    found = [receipt for event in reader.events.find() for receipt in reader.receipts.of_event(event.id)]
    assert [each.at for each in found if each.consumer_name == "flow/one"] == [
        noon + hours(1 + place / 10) for place in (1, 2, 3)
    ]


def test_a_deadline_of_an_opening_ends_when_a_redeploy_maps_keys(sqlite_ledger: Ledger) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    opening, deadline = Opening(CronTriggerTimetable("0 13 * * *")), Deadline(hours(3), then="skip")
    deploy(sqlite_ledger, Schedule(A & B, opening=opening), deadline=deadline)
    let_pass(sqlite_ledger, noon + hours(1))
    keyed = Schedule(A & B, Partitioning(), opening=opening)

    sqlite_ledger.writer.consumers.change(1, declared(keyed, deadline=deadline), noon + hours(2))
    let_pass(sqlite_ledger, noon + hours(12))

    assert sqlite_ledger.reader.deadlines.missed() == []
