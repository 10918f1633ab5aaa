"""A rebuilt ledger takes over earlier decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from assetflow.core.rules.adoption import Decided
from assetflow.core.shapes import as_json
from assetflow.core.time.timetables import CronTriggerTimetable
from assetflow.core.values.events import Recording
from assetflow.core.values.schedules import Schedule
from assetflow.core.values.timing import Deadline, Intake, Opening
from assetflow.ledger import Ledger
from assetflow.ledger.read.explanations import decision_explanation
from tests.ledger.making import NOW, A, B, declared, deploy, event, recording

HOUR = timedelta(hours=1)


def test_a_run_that_is_taken_over_makes_later_updates_wait(ledger: Ledger) -> None:
    consumer = deploy(ledger, A | B, coalesce=True)
    found, lost, later = event(A), event(A), event(B)
    earlier = Decided(uuid4(), consumer.deployment_id, None, frozenset([found.id, lost.id]), NOW)
    ledger.writer.events.begin_adoption([earlier])
    ledger.writer.events.record([recording(found), recording(later)], NOW)
    ledger.writer.events.end_adoption(NOW)
    assert [each.id for each in ledger.reader.decisions.find(limit=10)] == [earlier.id]
    assert [each.id for each in ledger.reader.queues.events(consumer.id, None)] == [later.id]
    ledger.writer.decisions.ended("Completed", NOW, decision_id=earlier.id)
    assert ledger.reader.queues.events(consumer.id, None) == []


def test_a_changed_schedule_decides_nothing_that_was_decided_before(ledger: Ledger) -> None:
    """A restored backup: its queue holds events that were consumed together with events that it does not know."""
    consumer = deploy(ledger, A & B)
    queued, missing = event(A), event(B)
    ledger.writer.events.record([recording(queued)], NOW)
    earlier = Decided(uuid4(), consumer.deployment_id, None, frozenset([queued.id, missing.id]), NOW)
    ledger.writer.events.begin_adoption([earlier])
    _, decisions = ledger.writer.consumers.change(consumer.id, declared(A | B), NOW)
    assert decisions == []
    ((_, decisions),) = ledger.writer.events.record([recording(missing)], NOW)
    assert [each.id for each in decisions] == [earlier.id]


def test_events_that_another_process_found_are_taken_over(ledger: Ledger) -> None:
    """The evaluator that began the rebuild was killed, and nothing more is found for this consumer."""
    consumer = deploy(ledger, A & B)
    found, lost, later = event(A), event(A), event(B)
    earlier = Decided(uuid4(), consumer.deployment_id, None, frozenset([found.id, lost.id]), NOW)
    ledger.writer.events.begin_adoption([earlier])
    ledger.writer.events.record([recording(found)], NOW)
    ledger.writer.events.begin_adoption([earlier])
    ledger.writer.events.end_adoption(NOW)
    assert [each.id for each in ledger.reader.decisions.find(limit=10)] == [earlier.id]
    assert ledger.writer.events.record([recording(later)], NOW)[0][1] == []


def test_a_cooldown_counts_from_a_run_none_of_whose_updates_is_found(ledger: Ledger) -> None:
    """They were recorded in the lost ledger only. A later update waits for the end of the cooldown."""
    consumer = deploy(ledger, A | B, intake=Intake(cooldown=HOUR))
    earlier = Decided(uuid4(), consumer.deployment_id, None, frozenset([uuid4()]), NOW)
    older = replace(earlier, id=uuid4(), made=NOW - HOUR)
    ledger.writer.events.begin_adoption([older, earlier])
    later = event(A)
    ledger.writer.events.record([Recording(later.id, (later,), durable=NOW + HOUR / 2)], NOW + 3 * HOUR)
    ledger.writer.events.end_adoption(NOW + 3 * HOUR)
    ledger.writer.clock.run(NOW + 3 * HOUR, NOW + 3 * HOUR)
    made = {each.id: each.made for each in ledger.reader.decisions.find(limit=10)}
    assert made.pop(earlier.id) == NOW
    assert made.pop(older.id) == NOW - HOUR
    assert list(made.values()) == [NOW + HOUR]
    record = ledger.reader.decisions.get(earlier.id)
    assert record is not None
    assert as_json(decision_explanation(ledger.reader, record))


def test_a_decision_that_another_process_adopted_is_adopted_once(ledger: Ledger) -> None:
    consumer = deploy(ledger, A)
    found = event(A)
    earlier = Decided(uuid4(), consumer.deployment_id, None, frozenset([found.id]), NOW)
    ledger.writer.events.begin_adoption([earlier])
    ledger.writer.events.record([recording(found)], NOW)
    ledger.writer.events.end_adoption(NOW)
    assert [each.id for each in ledger.reader.decisions.find(limit=10)] == [earlier.id]


def test_the_run_of_an_opening_closes_it_and_no_deadline_of_it_is_told(ledger: Ledger) -> None:
    opening = Opening(CronTriggerTimetable("0 * * * *"))
    consumer = deploy(ledger, Schedule(A & B, opening=opening), deadline=Deadline(HOUR / 2))
    a, b, more = event(A), event(B), [event(A), event(B)]
    made = NOW.replace(minute=0, second=0) + HOUR * 1.1
    earlier = Decided(uuid4(), consumer.deployment_id, None, frozenset([a.id, b.id]), made)
    ledger.writer.events.begin_adoption([earlier])
    found = [Recording(each.id, (each,), durable=made) for each in (a, b)]
    found.append(Recording(uuid4(), tuple(more), durable=made + HOUR / 10))
    ledger.writer.events.record(found, made + HOUR / 2)
    ledger.writer.events.end_adoption(made + HOUR / 2)
    ledger.writer.clock.run(made + HOUR / 2, made + HOUR / 2)
    assert [each.id for each in ledger.reader.decisions.find(limit=10)] == [earlier.id]
    assert not ledger.writer.clock.to_announce(10)
    ledger.writer.clock.run(made + HOUR, made + HOUR)
    assert len(ledger.reader.decisions.find(limit=10)) == 2


def test_updates_before_a_rebuild_keep_their_instants(ledger: Ledger) -> None:
    """Recovered from Prefect, `a` and `b` stay as far apart as they came."""
    ledger.writer.events.begin_adoption([])
    opening = Opening(CronTriggerTimetable("0 * * * *"))
    deploy(ledger, Schedule((A & B).within(HOUR), opening=opening))
    for asset, before in ((A, 3 * HOUR), (B, HOUR)):
        found = event(asset)
        ledger.writer.events.record([Recording(found.id, (found,), durable=NOW - before)], NOW)
    ledger.writer.events.end_adoption(NOW)
    ledger.writer.clock.run(NOW + 2 * HOUR, NOW + 2 * HOUR)
    assert ledger.reader.decisions.find(limit=10) == []


def test_a_cooldown_that_is_deployed_later_counts_from_the_latest_of_the_adopted_runs(ledger: Ledger) -> None:
    """The later one was found first."""
    consumer = deploy(ledger, A)
    found = [event(A), event(A)]
    earlier, later = (
        Decided(uuid4(), consumer.deployment_id, None, frozenset([each.id]), NOW + number * HOUR)
        for number, each in enumerate(found)
    )
    ledger.writer.events.begin_adoption([earlier, later])
    ledger.writer.events.record([recording(found[1])], NOW + 3 * HOUR)
    ledger.writer.events.record([recording(found[0])], NOW + 3 * HOUR)
    ledger.writer.events.end_adoption(NOW + 3 * HOUR)
    ledger.writer.consumers.change(consumer.id, declared(A, intake=Intake(cooldown=3 * HOUR)), NOW + 3 * HOUR)
    ledger.writer.events.record([recording(event(A))], NOW + 3.5 * HOUR)
    assert len(ledger.reader.decisions.find()) == 2
    ledger.writer.clock.run(NOW + 4 * HOUR, NOW + 4 * HOUR)
    assert len(ledger.reader.decisions.find()) == 3
