"""Decisions that a rebuilt ledger takes over, on the ledger."""

from __future__ import annotations

from uuid import uuid4

from assetflow.core.adoption import Decided
from assetflow.ledger import Ledger
from tests.ledger.making import NOW, A, B, deploy, event, recording


def test_a_run_that_is_taken_over_makes_later_updates_wait(ledger: Ledger) -> None:
    consumer = deploy(ledger, A | B, coalesce=True)
    found, lost, later = event(A), event(A), event(B)
    earlier = Decided(uuid4(), consumer.deployment_id, None, frozenset([found.id, lost.id]), NOW)
    ledger.writer.begin_adoption([earlier])
    ledger.writer.record([recording(found), recording(later)], NOW)
    ledger.writer.end_adoption(NOW)
    assert [each.id for each in ledger.reader.decisions(limit=10)] == [earlier.id]
    assert [each.id for each in ledger.reader.queue(consumer.id, None)] == [later.id]
    ledger.writer.ended("Completed", NOW, decision_id=earlier.id)
    assert ledger.reader.queue(consumer.id, None) == []
