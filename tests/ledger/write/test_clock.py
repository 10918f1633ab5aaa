"""Time acts on a ledger: an evaluator that slept finds the runs of one that never did. Contract 9.6."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assetflow.core.rules.state.queues import Queues
from assetflow.core.time.timetables import CronTriggerTimetable
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import AtLeast
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.schedules import ConsumerOptions, Partitioning, Schedule
from assetflow.core.values.timing import Deadline, Intake, Opening
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger
from assetflow.ledger.write import store
from tests.ledger.conftest import NewLedger
from tests.ledger.making import NOW, A, B, C, declared, deploy, update

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
        number, given = uuid5(NAMESPACE, str(place)), key if options.schedule.is_partitioned else None
        event = AssetEvent(number, asset, moment, Origin("api"), partition_key=given)
        made.append((moment, Recording(number, (event,), durable=moment)))
    return made


def story(ledger: Ledger) -> list[Any]:
    """Return what became of everything, by instants."""
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
        (each.due, each.at, each.target_key or "", each.queued) for each in ledger.writer.deadlines.to_tell(1000)
    )
    return [runs, receipts, missed]


def let_pass(ledger: Ledger, until: datetime) -> None:
    while (passed := ledger.writer.clock.run(until, END)).next is not None and passed.next <= until:
        pass


@contextmanager
def new(template: Path) -> Iterator[Ledger]:
    with TemporaryDirectory() as folder, Ledger.open(shutil.copy(template, Path(folder) / "ledger.db")) as ledger:
        yield ledger


def deploy_timed(ledger: Ledger, options: ConsumerOptions, now: datetime = START, **given: Any) -> None:
    text = declaration_to_text(FlowDeclaration(options))
    ledger.writer.consumers.deploy("flow/one", UUID(int=1), None, text, False, False, now, **given)


def lived(
    template: Path, options: ConsumerOptions, found: Sequence[Any], looks: Sequence[int], *, late: bool
) -> list[Any]:
    """Return the story of an evaluator that looked at each instant, or only before some of the updates."""
    with new(template) as ledger:
        deploy_timed(ledger, options)
        for place, (moment, recording) in enumerate(recordings(found, options)):
            if not late or place in looks:
                let_pass(ledger, moment - INSTANT)
            ledger.writer.events.record([recording], END if late else moment)
        let_pass(ledger, END)
        return story(ledger)


@pytest.mark.rule("9.3", "9.4", "9.6", "9.10")
@pytest.mark.parametrize("options", SCHEDULES.values(), ids=SCHEDULES.keys())
@settings(max_examples=5, deadline=None)
@given(found=updates, looks=st.sets(st.integers(0, 11)))
def test_an_evaluator_that_slept_finds_the_runs_of_one_that_never_did(
    template: Path, options: ConsumerOptions, found: list[Any], looks: set[int]
) -> None:
    slept = lived(template, options, found, sorted(looks), late=True)
    assert slept == lived(template, options, found, (), late=False)


class Noon:
    """A ledger with the consumer `flow/one`, whose hours are counted from noon."""

    def __init__(self, ledger: Ledger, schedule: object, **options: Any) -> None:
        self.ledger, self.writer = ledger, ledger.writer
        deploy(ledger, schedule, **options)

    def update(self, hour: float, *assets: Asset, found: float | None = None, key: str | None = None) -> Recording:
        """Record an update that came at this hour, when it is found."""
        came = Recording(uuid4(), update(*assets, partition_key=key).events, NOW + hours(hour))
        ((recorded, _),) = self.writer.events.record([came], NOW + hours(hour if found is None else found))
        return replace(came, events=tuple(recorded.events))

    def change(self, hour: float, schedule: object, *, late: bool = False, consumer: int = 1, **options: Any) -> None:
        self.writer.consumers.change(consumer, declared(schedule, **options), NOW + hours(hour), late=late)

    def switch(self, hour: float, *, late: bool = False, **switches: bool) -> None:
        self.writer.consumers.switch(1, **switches, now=NOW + hours(hour), late=late)

    def passes(self, hour: float) -> None:
        let_pass(self.ledger, NOW + hours(hour))

    def runs(self, until: float | None = None) -> list[tuple[float, int]]:
        """Return the hour of each decision and how many updates it consumed, after time has passed."""
        if until is not None:
            self.passes(until)
        decisions = self.ledger.reader.decisions.find()[::-1]
        consumed = self.ledger.reader.decisions.events_of(decisions)
        return [((each.made - NOW) / hours(1), len(consumed[each.id])) for each in decisions]

    def missed(self) -> list[tuple[str, float, float]]:
        """Return the missed deadlines: whose, when it was due, and when that was found."""
        found = self.ledger.reader.deadlines.missed()
        return [(each.consumer_name, (each.due - NOW) / hours(1), (each.at - NOW) / hours(1)) for each in found]


def opening(cron: str, until: str | None = None) -> Opening:
    return Opening(CronTriggerTimetable(cron), None if until is None else CronTriggerTimetable(until))


@pytest.mark.rule("9.6")
def test_what_prefect_shows_late_counts_right_after_what_is_decided(sqlite_ledger: Ledger) -> None:
    noon = Noon(sqlite_ledger, A, intake=Intake(debounce=hours(1)))
    noon.update(0, A)
    noon.passes(2)
    assert noon.update(0.5, A, found=3).events[0].recorded == NOW + hours(1) + INSTANT
    assert noon.update(9, A, found=4).events[0].recorded == NOW + hours(4), "never in the future"


@pytest.mark.rule("9.6")
def test_recordings_of_one_instant_that_had_to_wait_are_decided_one_by_one(sqlite_ledger: Ledger) -> None:
    noon = Noon(sqlite_ledger, A & B, deadline=Deadline(hours(1)))
    for hour, assets in ((0, [A]), (2, [B]), (2, [A, B])):
        noon.update(hour, *assets)
    assert noon.runs(2) == [(2, 2), (2, 2)]


@pytest.mark.rule("9.6")
def test_an_update_is_decided_at_once_when_the_clock_has_caught_up(sqlite_ledger: Ledger) -> None:
    noon = Noon(sqlite_ledger, (A & B).within(hours(1)))
    noon.update(0, A)
    noon.update(1.5, B)
    noon.passes(1.5)
    noon.update(2, A)
    assert noon.runs() == [(2, 2)]


@pytest.mark.rule("9.8")
def test_a_missed_deadline_is_announced_until_it_is_known(sqlite_ledger: Ledger) -> None:
    noon, deadlines = Noon(sqlite_ledger, A & B, deadline=Deadline(hours(1))), sqlite_ledger.writer.deadlines
    noon.update(0, A)
    let_pass(sqlite_ledger, NOW + hours(1) - INSTANT)
    assert not deadlines.to_tell(10)
    noon.passes(1)
    (missed,) = deadlines.to_tell(10)
    assert (missed.due, missed.queued, missed.consumer_name) == (NOW + hours(1), 1, "flow/one")
    assert missed.missing == (B.uri,)
    assert sqlite_ledger.reader.deadlines.missed() == [missed]
    deadlines.stored([missed.number], NOW)
    assert not deadlines.to_tell(10)


@pytest.mark.rule("9.11")
def test_the_runs_of_late_decisions_start_a_cooldown_apart(sqlite_ledger: Ledger) -> None:
    noon = Noon(sqlite_ledger, A, intake=Intake(max_events=1, cooldown=hours(1)))
    for _ in range(4):
        noon.update(0, A)
    sqlite_ledger.writer.clock.run(NOW + hours(1), NOW + hours(1))
    woken = NOW + hours(24)
    sqlite_ledger.writer.clock.run(NOW + hours(3), woken)
    assert noon.runs() == [(0, 1), (1, 1), (2, 1), (3, 1)]
    decisions = sqlite_ledger.reader.decisions.find()[::-1]
    assert [each.scheduled for each in decisions] == [None, None, None, woken + hours(1)], "in time it starts at once"
    # The run before starts late, so that this one follows later too, although it is decided on in time.
    noon.update(25, A)
    noon.update(28, A)
    assert [each.scheduled for each in sqlite_ledger.reader.decisions.find()[:2]] == [None, woken + hours(2)]


@pytest.mark.rule("9.6", "9.14")
class TestDeployThatIsFoundAtTheStart:
    """It is recorded first and bears the start's instant, eight hours after noon; no time before it counts (9.6)."""

    def test_the_clock_goes_through_the_past_by_the_new_options(self, sqlite_ledger: Ledger) -> None:
        noon = Noon(sqlite_ledger, A | B, intake=Intake(debounce=hours(1)))
        noon.update(0, A)
        noon.change(8, A | B, late=True, intake=Intake(debounce=hours(2)))
        noon.update(1.5, B, found=8)
        assert noon.runs(18) == [(3.5, 2)]

    def test_no_deadline_counts_before_it(self, sqlite_ledger: Ledger) -> None:
        before, after = Deadline(hours(1), then="skip"), Deadline(hours(2), then="skip")
        noon = Noon(sqlite_ledger, A & B, deadline=before)
        deploy(sqlite_ledger, A & C, "flow/two", deadline=before)
        noon.update(0, A)
        noon.change(8, A & C, late=True, consumer=2, deadline=after)
        noon.change(8, A & B, late=True, deadline=after)
        noon.update(3, B, found=8)
        assert noon.runs(18) == [(3, 2)]
        assert noon.missed() == [("flow/two", 2, 8)]


@pytest.mark.rule("9.6")
class TestSwitchThatIsFoundLate:
    """It bears the instant at which it was found, eight hours after noon, whatever is not recorded yet (9.6)."""

    def paused(self, ledger: Ledger, schedule: object, **options: Any) -> Noon:
        noon = Noon(ledger, schedule, while_paused="keep", **options)
        noon.switch(0, paused=True)
        return noon

    @pytest.mark.parametrize("switch", ["paused", "held"])
    def test_nothing_is_decided_as_of_before_it(self, sqlite_ledger: Ledger, switch: str) -> None:
        noon = Noon(sqlite_ledger, A | B, while_paused="keep", intake=Intake(debounce=hours(1)))
        noon.update(0, A)
        noon.switch(8, late=True, **{switch: True})
        noon.update(0.5, B, found=8)
        assert noon.runs(18) == []

    def test_a_resume_decides_with_what_is_recorded_after_it(self, sqlite_ledger: Ledger) -> None:
        noon = self.paused(sqlite_ledger, A | B, intake=Intake(debounce=hours(2)))
        noon.update(0, A)
        noon.switch(8, late=True, paused=False)
        noon.update(7, B, found=8)
        assert noon.runs(18) == [(9, 2)]


@pytest.mark.rule("9.13")
def test_a_resume_that_is_found_after_a_downtime_opens_once(new_sqlite: NewLedger) -> None:
    first = new_sqlite()
    noon = Noon(first, Schedule(A, opening=opening("0 6 * * *")), while_paused="keep")
    noon.passes(12)
    noon.switch(17, paused=True)
    for found in (False, True):
        with Ledger.open(first.place) as noon.ledger:
            noon.writer = noon.ledger.writer
            if found:
                noon.update(22, A)
            else:
                # It was resumed at 05:50, and the update came at 06:10.
                noon.switch(20, late=True, paused=False)
                noon.update(18 + 1 / 6, A, found=20)
            assert len(noon.runs(32 if found else 21)) == 1
    (decision,) = first.reader.decisions.find()
    assert decision.opening == NOW + hours(18)


@pytest.mark.parametrize(
    ("schedule", "options", "due"),
    [
        ((A & B).within(hours(6)), {"deadline": Deadline(hours(5))}, 5),
        (A | B, {"intake": Intake(debounce=hours(2), max_wait=hours(3))}, 2),
        (A | B, {"intake": Intake(min_events=100, max_wait=hours(3))}, 3),
        (A.times(10) | B, {"intake": Intake(cooldown=hours(5)), "deadline": Deadline(hours(2))}, 2),
        (Schedule(A | B, opening=opening("0 18 * * *", "0 20 * * *")), {}, 6),
    ],
    ids=["within", "debounce", "min_events", "times", "closed"],
)
def test_a_long_queue_that_waits_for_certain_is_not_read(
    sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch, schedule: Any, options: dict[str, Any], due: float
) -> None:
    noon = Noon(sqlite_ledger, schedule, **options)
    with monkeypatch.context() as patched:
        patched.setattr(Queues, "queued", None)
        for minute in range(3):
            noon.update(minute / 60, A)
    assert sqlite_ledger.writer.clock.run(NOW + hours(0.1), NOW + hours(0.1)).next == NOW + hours(due)
    noon.update(0.2, B)
    assert noon.runs(8)[0][1] == 4


def test_an_update_of_the_instant_of_a_pause_is_decided_before_it(sqlite_ledger: Ledger) -> None:
    noon = Noon(sqlite_ledger, Schedule(A, opening=Opening(EVERY_SIX)), while_paused="keep")
    let_pass(sqlite_ledger, NOW - INSTANT)
    # The clock has not looked at the opening yet.
    noon.update(1, A)
    noon.switch(1, paused=True)
    assert noon.runs(2) == [(1, 1)]


@pytest.mark.rule("9.10")
class TestLongQueue:
    """Very many updates cost their number, not its square: a reading and a judgement of each, counted."""

    def test_many_decisions_are_made_in_several_transactions(
        self, new_sqlite: NewLedger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(store, "MOST_DECISIONS", 3)
        killed, later = new_sqlite(), NOW + timedelta(seconds=1)
        deploy(killed, A | B, intake=Intake(max_events=4))
        made = [
            killed.writer.events.record([given], at)[0][1]
            for given, at in ((update(*[A] * 30), NOW), (update(B, B), later))
        ]
        assert list(map(len, made)) == [3, 0]
        # Another process goes on.
        with Ledger.open(killed.place) as ledger:
            slices: list[int] = []
            while (passed := ledger.writer.clock.run(later, END)).next is not None and passed.next <= later:
                slices.append(len(passed.decisions))
            decisions = ledger.reader.decisions.find()[::-1]
            consumed = ledger.reader.decisions.events_of(decisions)
        assert max(slices) == 3
        assert [len(consumed[each.id]) for each in decisions] == [4, 4, 4, 4, 4, 4, 4, 2, 2]
        assert [each.made for each in decisions] == [NOW] * 8 + [later]


def test_an_opening_does_not_overtake_queues_of_which_a_look_takes_only_some(
    sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assetflow.ledger.write.consumers.AT_ONCE", 1)
    noon = Noon(sqlite_ledger, Schedule((A & B).within(hours(1)), Partitioning(), opening=Opening(EVERY_SIX)))
    deploy(sqlite_ledger, Schedule((A & C).within(hours(0.5)), Partitioning()), "flow/other")
    noon.passes(0)
    events = [noon.update(hour, A, key=key).events[0] for key, hour in (("x", 0.1), ("y", 0.2), ("z", 0.3))]
    noon.passes(24)
    found = [receipt for event in events for receipt in sqlite_ledger.reader.receipts.of_event(event.id)]
    expired = [each.at for each in found if each.consumer_name == "flow/one"]
    assert expired == [NOW + hours(1 + place / 10) for place in (1, 2, 3)]
