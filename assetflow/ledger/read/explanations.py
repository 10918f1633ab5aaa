"""Read from a ledger what explanations start from, for the command line, the API and the pages alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from assetflow.core.explain import (
    MOST_EVENTS,
    ConsumerExplanation,
    ConsumerFacts,
    DecisionExplanation,
    DecisionFacts,
    EventExplanation,
    KnownNames,
    PartitionExplanation,
    QueuedEvents,
    RunFacts,
    explain_consumer,
    explain_decision,
    explain_event,
    explain_partition,
    explain_then,
)
from assetflow.core.explain.facts import DecisionBefore
from assetflow.core.explain.status import MOST_CAUSES, AssetExplanation, ReadVersion
from assetflow.core.explain.what_if import WhatIf, if_recorded, if_resumed
from assetflow.core.graph.lineage import Node
from assetflow.core.grouping import grouped
from assetflow.core.rules.ended_runs import Named
from assetflow.core.rules.state.state import prefetch
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer, Receipt
from assetflow.core.values.events import AssetEvent, Recording
from assetflow.core.values.keeping import Cause
from assetflow.core.values.schedules import Schedule
from assetflow.core.values.words import SHOWN
from assetflow.errors import UnknownConsumer, UnknownEvent
from assetflow.ledger.read.partitions import StateTopic
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord, DecisionRecord, EventFilter

# Of a long queue, and for a page of a large decision, this many events are read, and after them the first of each asset
# and key.
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
    events: int = MOST_EVENTS,
) -> ConsumerExplanation:
    """Explain why a consumer runs, or why it does not.

    Parameters:
        loops, partitions, events: as for `consumer_facts`.
    """
    facts = consumer_facts(reader, record, now, loops=loops, partitions=partitions, events=events)
    keeps = record.consumer.schedule.keeping is not None
    plan = next(iter(reader.freshness.plan(now, record.consumer.id)), None) if keeps else None
    told = explain_consumer(replace(facts, plan=plan), now)
    notes = [*told.notes, *_failed_makers(reader, facts.consumer.schedule, facts.names)]
    return replace(told, notes=notes, failing=reader.ended_runs.failing(told.name))


def _failed_makers(reader: Reader, schedule: Schedule, names: KnownNames) -> list[str]:
    """Return which makers of what a consumer may wait for have failed."""
    tokens = schedule.judging_tokens
    uris = [token.value if token.kind == "uri" else names.owners.get(token.value, "") for token in tokens]
    failed = reader.ended_runs.failed_makers([uri for uri in dict.fromkeys(uris) if uri])
    return [run.as_maker() for run in failed]


def asset_explanation(reader: Reader, uri: str, key: str | None, now: datetime) -> AssetExplanation:
    """Explain whether an asset, or one of its partitions, is up to date, and which makers of it have failed."""
    makers = [run for run in reader.ended_runs.failed_makers([uri]) if key is None or run.target_key in (None, key)]
    told = reader.freshness.explained(uri, key, now)
    return replace(told, reads=told.reads or _inputs_then(reader, uri, key), failed_makers=makers)


def _inputs_then(reader: Reader, uri: str, key: str | None) -> list[ReadVersion]:
    """Return what the run of the newest update of an asset read, beside what is there now."""

    def newest(uri: str, key: str | None = None, until: int | None = None) -> AssetEvent | None:
        wanted = EventFilter(uri=uri, partition_key=key, to_sequence=until)
        return next(iter(reader.events.find(wanted, newest_first=True, limit=1)), None)

    made = newest(uri, key)
    inputs = [] if made is None else list(made.inputs.items())[:MOST_CAUSES]
    return [ReadVersion.of_events(each, newest(each, until=sequence), newest(each)) for each, sequence in inputs]


def partition_explanation(reader: Reader, record: ConsumerRecord, target_key: str) -> PartitionExplanation:
    """Explain what is queued for a target key of a partitioned consumer, what it waits for, and its last run."""
    consumer, now = record.consumer, datetime.now(UTC)
    queue = queued_events(reader, consumer, target_key, now)
    decided = reader.decisions.find(consumer=consumer.id, target_key=target_key, limit=1)
    last = decision_explanation(reader, decided[0]) if decided else None
    plans = reader.freshness.plan(now, consumer.id, target_key) if consumer.schedule.keeping is not None else []
    plan = next((target for each in plans for target in each.targets), None)
    names = names_of(reader, consumer.schedule)
    told = explain_partition(consumer.schedule, queue, names, last=last, plan=plan)
    failing = [each for each in reader.ended_runs.failing(consumer.name) if each.last.target_key == target_key]
    return replace(told, notes=_failed_makers(reader, consumer.schedule, names), failing=failing)


def run_explanation(reader: Reader, run: UUID) -> DecisionExplanation:
    """Explain why a flow run exists.

    Parameters:
        run: its id, or that of its decision.

    Raises:
        UnknownEvent: no decision started the run.
    """
    record = reader.decisions.of_run(run) or reader.decisions.get(run)
    if record is None:
        raise UnknownEvent(
            f"no decision started the flow run {run}",
            fix="It was started by hand, by time or by something else, or it belongs to another ledger",
        )
    return decision_explanation(reader, record)


def decision_explanation(reader: Reader, record: DecisionRecord, events: int = MOST_EVENTS) -> DecisionExplanation:
    """Explain why a decision was made and what became of it, by the schedule that its consumer has now.

    Parameters:
        events: as for `decision_facts`.
    """
    named = reader.consumers.named(record.consumer_name)
    found = named.consumer if named is not None and named.consumer.id == record.consumer else None
    names = names_of(reader, None if found is None else found.schedule, record.because)
    return explain_decision(decision_facts(reader, record, found, events), found, names)


def event_explanation(
    reader: Reader, event_id: UUID, *, limit: int = MOST_RECEIPTS, offset: int = 0
) -> EventExplanation:
    """Explain where an event came from and what became of it.

    Parameters:
        limit, offset: which of its receipts to show.

    Raises:
        UnknownEvent: no event has this id.
    """
    event = reader.events.get(event_id)
    if event is None:
        raise UnknownEvent(
            f"there is no event {event_id}", fix="`assetflow events ls` lists the events, with --refused the refused"
        )
    receipts = reader.receipts.of_event(event_id, limit=limit, offset=offset)
    consumers = {each.receipt.consumer: each.consumer_name or "" for each in receipts}
    made = reader.decisions.with_ids({each.receipt.decision for each in receipts if each.receipt.decision is not None})
    consumed = reader.decisions.consumed_assets([record.number for record in made])
    total = sum(reader.receipts.counts([event.sequence or 0])[event.sequence or 0].values())
    return explain_event(
        event,
        [each.receipt for each in receipts],
        {number: name for number, name in consumers.items() if number is not None},
        [
            DecisionFacts(record.with_events(()), record.consumer_name, _run(record, consumed.get(record.number, ())))
            for record in made
        ],
        total=total,
    )


def consumer_facts(
    reader: Reader,
    record: ConsumerRecord,
    now: datetime,
    *,
    loops: Sequence[Sequence[str]] = (),
    partitions: int = PARTITIONS,
    events: int = MOST_EVENTS,
) -> ConsumerFacts:
    """Read a consumer with its queue and its latest decision.

    Parameters:
        loops: the paths on which its own runs start it again.
        partitions: the number of pending partitions to read, in the order of their keys.
        events: of its latest decision, as for `decision_facts`.
    """
    consumer = record.consumer
    found = reader.decisions.find(consumer=consumer.id, limit=1)
    names = names_of(reader, consumer.schedule, [cause for each in found for cause in each.because])
    keys, size = reader.queues.size(consumer.id)
    shown: Sequence[str | None] = [None] if size or consumer.is_timed else []
    if consumer.schedule.is_partitioned:
        shown = reader.queues.pending_keys(consumer.id, limit=partitions)
    last = [decision_facts(reader, each, consumer, events) for each in found]
    queues = [queued_events(reader, consumer, key, now) for key in shown]
    return ConsumerFacts(
        consumer=consumer,
        names=names,
        queues=queues,
        pending_keys=keys,
        queued=size,
        since=record.since,
        last=last[0] if last else None,
        running=_running(reader, consumer.id) if consumer.coalesces else frozenset(),
        loops=loops,
        removed=record.removed_at,
        refused=reader.refused_deployment(consumer.deployment_id),
        newest=_newest(reader, consumer, names, queues),
    )


def _newest(
    reader: Reader, consumer: Consumer, names: KnownNames, queues: Sequence[QueuedEvents]
) -> Sequence[tuple[AssetEvent, Receipt | None]]:
    """Return the newest event of the first assets that a plain consumer waits for, with its receipt."""
    condition = consumer.schedule.condition
    if condition is None or consumer.is_partitioned or consumer.paused:
        return ()
    queued = {event.uri for queue in queues for event in queue.events}
    tokens = [leaf.token for leaf in condition.leaves]
    uris = dict.fromkeys(names.owners.get(token.value, token.value) for token in tokens if token.kind != "alias")
    waited = [uri for uri in uris if uri not in queued][:SHOWN]
    return reader.receipts.of_newest(consumer.id, waited) if waited else ()


def decision_facts(
    reader: Reader, record: DecisionRecord, consumer: Consumer | None, events: int = MOST_EVENTS
) -> DecisionFacts:
    """Read a decision with the events that it consumed and what became of it.

    Parameters:
        consumer: its consumer as it is now; `None` if it is removed.
        events: the number of events to read; of more, the oldest and the first of each asset and key.
    """
    found = reader.decisions.sample_of(record, most=events)
    run = _run(record, reader.decisions.consumed_assets([record.number]).get(record.number, ()))
    reads = reader.freshness.reads_of(record.id) if record.kind in ("eager", "lazy", "backfill") else ()
    before = None if consumer is None else _before(reader, record, consumer)
    return DecisionFacts(
        record.with_events(found.events), record.consumer_name, run, found.total, reads=reads, before=before
    )


def _before(reader: Reader, record: DecisionRecord, consumer: Consumer) -> DecisionBefore | None:
    """Return the decision before another one, if the consumer waits for its run or counts from it."""
    if not consumer.coalesces and consumer.cooldown is None:
        return None
    found = reader.decisions.find(consumer=consumer.id, target_key=record.target_key, before=record.number, limit=1)
    return DecisionBefore(found[0].made, found[0].ended) if found else None


def names_of(reader: Reader, schedule: Schedule | None, causes: Iterable[Cause] = ()) -> KnownNames:
    """Read the names and links of a schedule, and the names of the assets of causes."""
    tokens = frozenset[Token]() if schedule is None else schedule.judging_tokens
    aliases = {token.value for token in tokens if token.kind == "alias"}
    names = {token.value: reader.assets.owner_of(token.value) for token in tokens if token.kind == "name"}
    owners = {name: uri for name, uri in names.items() if uri is not None}
    links = _links(reader, aliases) if aliases else {}
    uris = {token.value for token in tokens if token.kind == "uri"}.union(
        owners.values(), *links.values(), (cause.uri for cause in causes)
    )
    return KnownNames(owners, links, reader.assets.names(uris))


def queued_events(reader: Reader, consumer: Consumer, target_key: str | None, now: datetime) -> QueuedEvents:
    """Read what is queued for a consumer and target key: at least the oldest event of each asset and key."""
    found = reader.queues.sample_of(consumer.id, target_key, most=READ_FIRST)
    return QueuedEvents(found.events, found.counts, target_key, reader.queues.waiting(consumer, target_key, now))


def _run(record: DecisionRecord, consumed: Iterable[Named]) -> RunFacts:
    return RunFacts(
        flow_run_id=record.flow_run_id,
        name=record.run_name(consumed),
        undeliverable=record.status == "undeliverable",
        error=record.error,
        attempts=record.attempts,
        launched=record.launched,
        ended=record.ended,
        state=record.run_state,
    )


def _running(reader: Reader, consumer: int) -> frozenset[str | None]:
    waiting = reader.decisions.find(consumer=consumer, status="waiting")
    launched = reader.decisions.find(consumer=consumer, status="launched")
    return frozenset(record.target_key for record in (*waiting, *launched))


def _links(reader: Reader, aliases: Collection[str]) -> dict[str, list[str]]:
    edges = reader.lineage.edges_of([Node("alias", alias) for alias in aliases])
    return grouped((edge.target.value, edge.source.value) for edge in edges if edge.kind == "links")


def past_explanation(
    reader: Reader, record: ConsumerRecord, moment: datetime, target_key: str | None = None
) -> ConsumerExplanation:
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
        names=names_of(reader, consumer.schedule, () if last is None else last.because),
        queues=list(queues.values())[:PARTITIONS],
        pending_keys=len(queues),
        queued=sum(queue.count for queue in queues.values()),
        since=record.since,
        last=None if last is None else decision_facts(reader, last, consumer),
        running=past.running,
        updated=_updated(reader, consumer, None if last is None else last.made, moment),
        removed=record.removed_at if record.removed_at is not None and record.removed_at <= moment else None,
    )
    return explain_then(
        facts, moment, None if following is None else decision_explanation(reader, following), past.dropped
    )


def _updated(reader: Reader, consumer: Consumer, since: datetime | None, moment: datetime) -> list[AssetEvent]:
    """Return the newest update of each input of an Eager or Lazy consumer that came after `since`, by a moment."""
    if consumer.schedule.keeping is None:
        return []
    inputs = reader.freshness.inputs_of(consumer.id)
    wanted = (EventFilter(uri=uri, after=since, until=moment) for uri in inputs)
    found = [event for each in wanted for event in reader.events.find(each, newest_first=True, limit=1)]
    return sorted(found, key=lambda event: event.occurred, reverse=True)


def _decision(reader: Reader, consumer: int, number: int | None) -> DecisionRecord | None:
    found = [] if number is None else reader.decisions.find(consumer=consumer, before=number + 1, limit=1)
    return found[0] if found else None


class WhatIfReader(StateTopic):
    """Tells what would happen. Nothing is written."""

    def recorded(self, recordings: Sequence[Recording], now: datetime) -> WhatIf:
        """Return what would happen if these recordings came now, one after the other."""
        with self._states.open(now) as state:
            prefetch(state, recordings)
            return if_recorded(state, recordings, now)

    def resumed(self, consumer: int, now: datetime) -> WhatIf:
        """Return what would happen if a consumer were resumed now.

        Raises:
            UnknownConsumer: no consumer has this id.
        """
        with self._states.open(now) as state:
            found = state.consumers.find(consumer)
            if found is None:
                raise UnknownConsumer(f"there is no consumer {consumer}", fix="`assetflow consumers ls` lists them")
            return if_resumed(state, found, now)
