"""`assetflow explain`: why something runs, or why it does not."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from rich.console import RenderableType

from assetflow.cli.output import print_json, show
from assetflow.cli.telling import consumer_parts, decision_parts, event_parts, partition_parts
from assetflow.cli.values import EventName
from assetflow.core.explanation import (
    ConsumerExplanation,
    DecisionExplanation,
    EventExplanation,
    PartitionExplanation,
)
from assetflow.core.lineage import loops_through
from assetflow.errors import InvalidCall
from assetflow.ledger.explanations import (
    consumer_explanation,
    event_explanation,
    partition_explanation,
    run_explanation,
)
from assetflow.ledger.lookup import find_consumer, find_event
from assetflow.ledger.reader import Reader

Explanation = ConsumerExplanation | PartitionExplanation | DecisionExplanation | EventExplanation


def explain(
    consumer: str | None = None,
    /,
    *,
    partition: str | None = None,
    run: UUID | None = None,
    event: EventName | None = None,
    json: bool = False,
) -> None:
    """Say why a consumer runs or does not, why a run exists, or what became of an event.

    Parameters
    ----------
    consumer
        flow/deployment, its id, or a flow with one consumer.
    partition
        With a consumer: one pending partition of it.
    run
        A flow run's id instead: which decision started it, and which update completed its condition.
    event
        An event's id instead, or its number: where it came from, and each of its receipts.
    json
        Print one JSON document.
    """
    if sum(each is not None for each in (consumer, run, event)) != 1 or (partition is not None and consumer is None):
        raise InvalidCall(
            "one of a consumer, --run and --event is needed, and --partition goes with a consumer",
            fix="Write `assetflow explain flow/deployment`",
        )
    with Reader.open() as reader:
        if event is not None:
            told: Explanation = event_explanation(reader, find_event(reader, event))
        elif run is not None:
            told = run_explanation(reader, run)
        else:
            told = _of_consumer(reader, consumer or "", partition)
    if json:
        print_json(told.as_json())
    else:
        show(*_parts(told))


def _of_consumer(reader: Reader, name: str, partition: str | None) -> ConsumerExplanation | PartitionExplanation:
    record = find_consumer(reader, name)
    if partition is None:
        loops = loops_through(reader.edges_of, record.consumer.name)
        return consumer_explanation(reader, record, datetime.now(UTC), loops=loops)
    if not record.consumer.schedule.is_partitioned:
        raise InvalidCall(f"{record.consumer.name} is not partitioned", fix="Leave --partition out")
    return partition_explanation(reader, record, partition)


def _parts(told: Explanation) -> list[RenderableType]:
    match told:
        case ConsumerExplanation():
            return consumer_parts(told)
        case PartitionExplanation():
            return partition_parts(told)
        case DecisionExplanation():
            return decision_parts(told)
        case EventExplanation():
            return event_parts(told)
