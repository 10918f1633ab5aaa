"""Explanations from a ledger: what they start from is read here, for the command line, the API and the pages alike."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from assetflow.core.consumers import Decision
from assetflow.core.events import AssetEvent
from assetflow.core.explanation import (
    MOST_EVENTS,
    ConsumerExplanation,
    ConsumerFacts,
    DecisionExplanation,
    DecisionFacts,
    EventExplanation,
    Names,
    PartitionExplanation,
    QueuedEvents,
    RunFacts,
    explain_consumer,
    explain_decision,
    explain_event,
    explain_partition,
)
from assetflow.core.lineage import Node
from assetflow.core.schedules import Schedule
from assetflow.errors import UnknownEvent
from assetflow.ledger.reader import Reader
from assetflow.ledger.records import ConsumerRecord, DecisionRecord

# Of a long queue so many events are read, and behind them the first of each asset and key.
READ_FIRST = 500
MOST_RECEIPTS = 1_000
PARTITIONS = 20


def consumer_explanation(
    reader: Reader,
    record: ConsumerRecord,
    now: datetime,
    *,
    loops: Sequence[Sequence[str]] = (),
    partitions: int = PARTITIONS,
) -> ConsumerExplanation:
    """Why a consumer runs, or why it does not; see `explain_consumer` and `consumer_facts`."""
    return explain_consumer(consumer_facts(reader, record, loops=loops, partitions=partitions), now)


def partition_explanation(reader: Reader, record: ConsumerRecord, target_key: str) -> PartitionExplanation:
    """What a target key of a partitioned consumer has, and what it waits for. One that has nothing yet has it too."""
    consumer = record.consumer
    queue = queued_events(reader, consumer.id, target_key)
    return explain_partition(consumer.schedule, queue, names_of(reader, consumer.schedule))


def run_explanation(reader: Reader, flow_run_id: UUID) -> DecisionExplanation:
    """Why a flow run exists.

    Raises:
        UnknownEvent: no decision started it.
    """
    record = reader.decision_of_run(flow_run_id)
    if record is None:
        raise UnknownEvent(
            f"no decision started the flow run {flow_run_id}",
            fix="It was started by hand, by time or by something else, or it belongs to another ledger",
        )
    return decision_explanation(reader, record)


def decision_explanation(reader: Reader, record: DecisionRecord) -> DecisionExplanation:
    """Why a decision was made, and what became of it, by the schedule that its consumer has now."""
    consumer = reader.consumer(record.consumer_name)
    same = consumer is not None and consumer.consumer.id == record.consumer
    schedule = consumer.consumer.schedule if consumer is not None and same else None
    names = Names() if schedule is None else names_of(reader, schedule)
    return explain_decision(decision_facts(reader, record), schedule, names)


def event_explanation(
    reader: Reader, event_id: UUID, *, limit: int = MOST_RECEIPTS, offset: int = 0
) -> EventExplanation:
    """Where an event came from, and its receipts, or so many of them behind the first ones.

    Raises:
        UnknownEvent: there is none with this id.
    """
    event = reader.event(event_id)
    if event is None:
        raise UnknownEvent(
            f"there is no event {event_id}", fix="`assetflow events ls` lists the events, with --refused the refused"
        )
    receipts = reader.receipts(event_id, limit=limit, offset=offset)
    consumers = {each.receipt.consumer: each.consumer_name or "" for each in receipts}
    made = reader.decisions_with({each.receipt.decision for each in receipts if each.receipt.decision is not None})
    total = sum(reader.event_catalog.receipts_of([event.sequence or 0])[event.sequence or 0].values())
    return explain_event(
        event,
        [each.receipt for each in receipts],
        {number: name for number, name in consumers.items() if number is not None},
        [DecisionFacts(_decision(record, ()), record.consumer_name, _run(record)) for record in made],
        total=total,
    )


def consumer_facts(
    reader: Reader, record: ConsumerRecord, *, loops: Sequence[Sequence[str]] = (), partitions: int = PARTITIONS
) -> ConsumerFacts:
    """A consumer with its queue and its latest decision.

    Parameters:
        loops: the ways from its own runs back to itself.
        partitions: how many pending partitions are looked at, in the order of their keys.
    """
    consumer = record.consumer
    keys, size = reader.queue_size(consumer.id)
    shown: Sequence[str | None] = [None] if size else []
    if consumer.schedule.is_partitioned:
        shown = reader.pending_keys(consumer.id, limit=partitions)
    last = [decision_facts(reader, each) for each in reader.decisions(consumer=consumer.id, limit=1)]
    return ConsumerFacts(
        consumer=consumer,
        names=names_of(reader, consumer.schedule),
        queues=[queued_events(reader, consumer.id, key) for key in shown],
        pending_keys=keys,
        queued=size,
        since=record.since,
        last=last[0] if last else None,
        running=_running(reader, consumer.id) if consumer.coalesces else frozenset(),
        loops=loops,
        removed=record.removed_at,
    )


def decision_facts(reader: Reader, record: DecisionRecord) -> DecisionFacts:
    """A decision with the events that it consumed and what became of it."""
    found = reader.oldest_consumed(record, most=MOST_EVENTS)
    return DecisionFacts(_decision(record, found.events), record.consumer_name, _run(record), found.total)


def names_of(reader: Reader, schedule: Schedule) -> Names:
    """The names and links that a schedule speaks of."""
    tokens = schedule.judging_tokens
    aliases = {token.value for token in tokens if token.kind == "alias"}
    names = {token.value: reader.owner_of(token.value) for token in tokens if token.kind == "name"}
    owners = {name: uri for name, uri in names.items() if uri is not None}
    return Names(owners, _links(reader, aliases) if aliases else {})


def queued_events(reader: Reader, consumer: int, target_key: str | None) -> QueuedEvents:
    """What is queued for a consumer and key: of each asset and key at least the oldest event."""
    found = reader.oldest_queued(consumer, target_key, most=READ_FIRST)
    return QueuedEvents(found.events, found.counts, target_key)


def _decision(record: DecisionRecord, events: tuple[AssetEvent, ...]) -> Decision:
    return Decision(
        record.id, record.consumer, record.deployment_id, record.target_key, events, record.made, record.kind
    )


def _run(record: DecisionRecord) -> RunFacts:
    return RunFacts(
        flow_run_id=record.flow_run_id,
        undeliverable=record.status == "undeliverable",
        error=record.error,
        attempts=record.attempts,
        launched=record.launched,
        ended=record.ended,
        state=record.run_state,
    )


def _running(reader: Reader, consumer: int) -> frozenset[str | None]:
    waiting = reader.decisions(consumer=consumer, status="waiting")
    launched = reader.decisions(consumer=consumer, status="launched")
    return frozenset(record.target_key for record in (*waiting, *launched))


def _links(reader: Reader, aliases: Collection[str]) -> dict[str, list[str]]:
    links: dict[str, list[str]] = {}
    for edge in reader.edges_of([Node("alias", alias) for alias in aliases]):
        if edge.kind == "links":
            links.setdefault(edge.target.value, []).append(edge.source.value)
    return links
