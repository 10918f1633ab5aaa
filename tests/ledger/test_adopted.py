"""A rebuilt ledger takes over earlier decisions."""

from __future__ import annotations

from uuid import uuid4

from assetflow.core.rules.adoption import Decided
from assetflow.ledger import Ledger
from tests.ledger.making import NOW, A, B, declared, deploy, event, recording


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
