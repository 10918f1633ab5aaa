"""Read from a ledger why a consumer ran, or did not, at a moment of the past."""

from __future__ import annotations

from datetime import datetime

from assetflow.core.explain import ConsumerFacts, PastExplanation, QueuedEvents, explain_then
from assetflow.ledger.read.explanations import PARTITIONS, decision_explanation, decision_facts, names_of
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord, DecisionRecord


def past_explanation(
    reader: Reader, record: ConsumerRecord, moment: datetime, target_key: str | None = None
) -> PastExplanation:
    """Explain why a consumer ran, or did not, at a moment.

    Parameters:
        target_key: only this partition.
    """
    consumer = record.consumer
    past = reader.past.at(consumer, record.since, moment)
    queues = {key: queue for key, queue in past.queues.items() if target_key in (None, key)}
    if target_key is not None and not queues:
        queues = {target_key: QueuedEvents(target_key=target_key)}
    last, following = _decision(reader, consumer.id, past.last), _decision(reader, consumer.id, past.next)
    facts = ConsumerFacts(
        consumer=consumer,
        names=names_of(reader, consumer.schedule),
        queues=list(queues.values())[:PARTITIONS],
        pending_keys=len(queues),
        queued=sum(queue.count for queue in queues.values()),
        since=record.since,
        last=None if last is None else decision_facts(reader, last),
        running=past.running,
        removed=record.removed_at if record.removed_at is not None and record.removed_at <= moment else None,
    )
    return explain_then(
        facts, moment, None if following is None else decision_explanation(reader, following), past.dropped
    )


def _decision(reader: Reader, consumer: int, number: int | None) -> DecisionRecord | None:
    found = [] if number is None else reader.decisions.find(consumer=consumer, before=number + 1, limit=1)
    return found[0] if found else None
