"""Events, what checks found in them, what was refused as one, and the feed of all that is new."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import eq, ge, gt, itemgetter, le, lt
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, bindparam, exists, func, or_, select

from assetflow.core.grouping import grouped
from assetflow.core.values.announcements import FailedChecks, MissedDeadlineRecord
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.consumers import Receipt
from assetflow.core.values.events import AssetEvent, CheckedData, Pin, Recording, SourceFlowRun
from assetflow.core.values.words import IdStart
from assetflow.core.wire.events import origin_from_json
from assetflow.ledger.read import Topic, named, newest_first
from assetflow.ledger.read.consumers import missed_after
from assetflow.ledger.read.decisions import DECISIONS, decisions_with_events
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import (
    DecisionRecord,
    EventFilter,
    Order,
    ReceiptRecord,
    RefusedRecord,
)
from assetflow.ledger.sql.bulk import begins_with, in_values, text_at
from assetflow.ledger.sql.rows import (
    EVENT_COLUMNS,
    RECEIPT_COLUMNS,
    RECEIPTS,
    SHOWN_EVENT,
    Rows,
    event_from_row,
    readable_name,
    receipt_from_row,
)
from assetflow.ledger.sql.tables import (
    ASSET,
    CONSUMER,
    DECISION,
    EVENT,
    EVENT_ALIAS,
    FAILED_CHECKS,
    LEDGER,
    MISSED_DEADLINE,
    RECEIPT,
    REFUSED,
)

_NAME = readable_name(EVENT.c.uri)
_FLOW = text_at(EVENT.c.origin, "flow_run", "flow_name")
_DEPLOYMENT = text_at(EVENT.c.origin, "flow_run", "deployment_name")
_RUN = text_at(EVENT.c.origin, "flow_run", "name")
_TASK = text_at(EVENT.c.origin, "task_run", "name")
_SOURCE = _FLOW + func.coalesce("." + _DEPLOYMENT, "")
_ORDER: dict[str, Any] = {
    "timestamp": EVENT.c.occurred,
    "id": EVENT.c.sequence,
    "source_task_id": _TASK,
    "source_dag_id": _SOURCE,
    "source_run_id": EVENT.c.flow_run_id,
}
# Names of runs have no index: they are looked for among so many updates, in so many rows.
_SEARCHED = 5_000
_SEARCHED_ROWS = 200
_REFUSED = Rows(RefusedRecord, REFUSED)
_KNOWN = (
    select(EVENT.c.id)
    .where(in_values(EVENT.c.id, "ids"))
    .union(select(REFUSED.c.id).where(in_values(REFUSED.c.id, "ids")))
)
FAILED = Rows(FailedChecks, FAILED_CHECKS)
_F, _E = FAILED_CHECKS.c, EVENT.c
# For people: the asset has the name by which everybody calls it.
_SHOWN = tuple(readable_name(_F.uri) if each is _F.name else each for each in FAILED.columns)
_NEWEST_FAILED = select(*_SHOWN).order_by(_F.number.desc())
_UPDATES = select(_E.occurred, _E.partition_key, _E.id, _E.flow_run_id, _E.checks).order_by(_E.sequence.desc())


class EventReader(Topic):
    """Reads events."""

    def get(self, event_id: UUID) -> AssetEvent | None:
        """Return the event with this id."""
        return next(map(event_from_row, self._rows(select(*SHOWN_EVENT).where(EVENT.c.id == event_id))), None)

    def beginning(self, start: IdStart, most: int) -> list[UUID]:
        """Return the ids of events that begin so, at most `most`."""
        query = select(EVENT.c.id).where(EVENT.c.id.between(start.first, start.last)).limit(most)
        return list(self._scalars(query))

    def find(
        self,
        where: EventFilter | None = None,
        *,
        newest_first: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[AssetEvent]:
        """Return events by sequence. `newest_first=True, limit=1` reads one row.

        To page on, give the next sequence as `from_sequence` or `to_sequence` of the filter.
        """
        where = where or EventFilter()
        sequence = _sequence(where)
        query = _matching(select(*SHOWN_EVENT), where).order_by(sequence.desc() if newest_first else sequence)
        return [event_from_row(row) for row in self._rows(query.limit(limit).offset(offset or None))]

    def count(self, where: EventFilter | None = None) -> int:
        """Return the number of events."""
        query = _matching(select(func.count()).select_from(EVENT), where or EventFilter())
        return self._scalar(query)

    def page(
        self, where: EventFilter, order: Order = (("timestamp", False),), *, limit: int = 100, offset: int = 0
    ) -> tuple[list[tuple[AssetEvent, int]], int]:
        """Return a page of events, each with the number of its asset, and the number of all events that match.

        Parameters:
            order: `timestamp`, `id`, `source_task_id`, `source_dag_id` or `source_run_id`, each with whether it
                descends.
        """
        columns = [_ORDER[name].desc() if descends else _ORDER[name] for name, descends in order]
        last = EVENT.c.sequence.desc() if order and order[0][1] else EVENT.c.sequence
        page = _matching(select(*SHOWN_EVENT), where).order_by(*columns, last).limit(limit).offset(offset)
        numbers = select(ASSET.c.uri, ASSET.c.id).where(in_values(ASSET.c.uri, "uris"))
        with self._connect() as connection:
            total = connection.execute(_matching(select(func.count()).select_from(EVENT), where)).scalar_one()
            events = [event_from_row(row) for row in connection.execute(page)]
            number = {row[0]: row[1] for row in connection.execute(numbers, {"uris": {event.uri for event in events}})}
        return [(event, number[event.uri]) for event in events], total

    def recordings(self, *, after: int = 0) -> list[Recording]:
        """Return all recordings with their events, in the order of the ledger: the fold starts from these.

        Parameters:
            after: only events after this sequence.
        """
        query = select(*EVENT_COLUMNS, EVENT.c.recording).where(EVENT.c.sequence > after).order_by(EVENT.c.sequence)
        with self._connect() as connection:
            # A recording is written whole, so its sequences are neighbours.
            groups = groupby(connection.execute(query), itemgetter(-1))
            return [Recording(number, tuple(event_from_row(row) for row in group)) for number, group in groups]

    def last_sequence(self) -> int:
        """Return the sequence of the newest event; 0 if there is none."""
        return self._scalar(select(LEDGER.c.last_event))

    def runs_called(self, text: str, *, limit: int) -> list[SourceFlowRun]:
        """Return the runs that made the newest updates and whose name begins so, the newest first."""
        newest = select(func.coalesce(func.max(EVENT.c.sequence), 0)).scalar_subquery()
        query = select(EVENT.c.origin).where(
            EVENT.c.sequence > newest - _SEARCHED, EVENT.c.flow_run_id.is_not(None), begins_with(_RUN, text)
        )
        rows = self._scalars(query.order_by(EVENT.c.sequence.desc()).limit(_SEARCHED_ROWS))
        found = (origin_from_json(origin).flow_run for origin in rows)
        return list({run.id: run for run in found if run is not None}.values())[:limit]

    def known(self, ids: Iterable[UUID]) -> set[UUID]:
        """Return those of the ids that are recorded or refused."""
        return set(self._scalars(_KNOWN, {"ids": list(ids)}))

    def newest(self, uris: Iterable[str]) -> Mapping[str, Pin]:
        """Return the newest event of each of these assets that has one. Contract 8.2."""
        newest = select(EVENT.c.sequence, EVENT.c.id, EVENT.c.recorded).order_by(EVENT.c.sequence.desc()).limit(1)
        with self._connect() as connection:
            found = {uri: connection.execute(newest.where(EVENT.c.uri == uri)).first() for uri in uris}
        return {uri: Pin(*row) for uri, row in found.items() if row is not None}

    def refused(self, *, before: int | None = None, limit: int = 100) -> list[RefusedRecord]:
        """Return what was refused as an event, newest first: with `before`, what was so earlier. Contract 2.6."""
        page = newest_first(select(*_REFUSED.columns), REFUSED.c.number, before, limit)
        return list(map(_REFUSED.read, self._rows(page)))


def _sequence(where: EventFilter) -> Any:
    """Return the column of the sequence, from the index that finds the events."""
    return EVENT.c.sequence if where.alias is None else EVENT_ALIAS.c.sequence


def _matching(query: Any, where: EventFilter) -> Any:
    sequence = _sequence(where)
    if where.alias is not None:
        query = query.join(EVENT_ALIAS, EVENT_ALIAS.c.sequence == EVENT.c.sequence)
        query = query.where(EVENT_ALIAS.c.alias == where.alias)
    for column, compare, value in (
        (EVENT.c.uri, eq, where.uri),
        (EVENT.c.occurred, ge, where.since),
        (EVENT.c.occurred, gt, where.after),
        (EVENT.c.occurred, le, where.until),
        (EVENT.c.occurred, lt, where.before),
        (sequence, ge, where.from_sequence),
        (sequence, le, where.to_sequence),
        (EVENT.c.partition_key, eq, where.partition_key),
        (EVENT.c.flow_run_id, eq, where.flow_run_id),
        (_SOURCE, eq, where.source),
    ):
        if value is not None:
            query = query.where(compare(column, value))
    if where.consumer is not None:
        received = select(RECEIPT.c.sequence).where(
            RECEIPT.c.sequence == sequence, RECEIPT.c.consumer == where.consumer
        )
        query = query.where(exists(received))
    return query.where(*_conditions_on_names(where))


def _conditions_on_names(where: EventFilter) -> Sequence[ColumnElement[bool]]:
    found = named(_NAME, where.name, where.name_prefix)
    if where.task is None:
        return found
    # Prefect names a task run by its task, a hyphen and three characters.
    length = len(where.task)
    is_run = and_(func.length(_TASK) == length + 4, func.substr(_TASK, 1, length) == where.task)
    return [or_(eq(_TASK, where.task), is_run), *found]


_COUNTS = (
    select(RECEIPT.c.sequence, RECEIPT.c.status, func.count())
    .where(in_values(RECEIPT.c.sequence, "sequences"))
    .group_by(RECEIPT.c.sequence, RECEIPT.c.status)
    .order_by(RECEIPT.c.sequence, RECEIPT.c.status)
)
_NEWEST = select(func.max(EVENT.c.sequence)).where(EVENT.c.uri == ASSET.c.uri).correlate(ASSET).scalar_subquery()
_OF_NEWEST = (
    select(*SHOWN_EVENT, *RECEIPT_COLUMNS)
    .select_from(
        EVENT.outerjoin(
            RECEIPT, and_(RECEIPT.c.sequence == EVENT.c.sequence, RECEIPT.c.consumer == bindparam("consumer"))
        ).outerjoin(DECISION, DECISION.c.number == RECEIPT.c.decision)
    )
    .where(EVENT.c.sequence.in_(select(_NEWEST).where(in_values(ASSET.c.uri, "uris"))))
    .order_by(EVENT.c.sequence)
)
_OTHER = RECEIPT.alias("other")
_CONSUMED = (
    select(
        RECEIPT.c.sequence,
        DECISION.c.id,
        CONSUMER.c.name,
        DECISION.c.target_key,
        DECISION.c.made,
        DECISION.c.status,
        DECISION.c.flow_run_id,
        DECISION.c.launched,
        DECISION.c.ended,
        DECISION.c.run_state,
        select(func.max(_OTHER.c.sequence))
        .where(_OTHER.c.decision == RECEIPT.c.decision, _OTHER.c.decision.is_not(None))
        .scalar_subquery(),
    )
    .select_from(
        RECEIPT.join(DECISION, DECISION.c.number == RECEIPT.c.decision).join(
            CONSUMER, CONSUMER.c.id == DECISION.c.consumer
        )
    )
    .where(in_values(RECEIPT.c.sequence, "sequences"))
    .order_by(RECEIPT.c.sequence, DECISION.c.number)
)


@dataclass(frozen=True)
class ConsumedBy:
    """A decision that consumed an event; `newest` is the sequence of the newest event that it consumed."""

    decision: UUID
    consumer_name: str
    target_key: str | None
    made: datetime
    status: str
    flow_run_id: UUID | None
    launched: datetime | None
    ended: datetime | None
    run_state: str
    newest: int


class ReceiptReader(Topic):
    """Reads receipts."""

    def of_event(self, event_id: UUID, *, limit: int | None = None, offset: int = 0) -> list[ReceiptRecord]:
        """Return the receipts of an event, by consumer and target key."""
        query = select(*RECEIPT_COLUMNS, CONSUMER.c.name, RECEIPT.c.at).select_from(
            RECEIPTS.outerjoin(CONSUMER, CONSUMER.c.id == RECEIPT.c.consumer)
        )
        query = query.where(EVENT.c.id == event_id).order_by(RECEIPT.c.consumer, RECEIPT.c.target_key)
        rows = self._rows(query.limit(limit).offset(offset or None))
        return [ReceiptRecord(receipt_from_row(row), row[-2], row[-1]) for row in rows]

    def of_newest(self, consumer: int, uris: Collection[str]) -> list[tuple[AssetEvent, Receipt | None]]:
        """Return the newest event of each of these assets, with its receipt for a consumer, or `None` without one."""
        rows = self._rows(_OF_NEWEST, {"consumer": consumer, "uris": list(uris)})
        width = len(SHOWN_EVENT)
        return [(event_from_row(row), None if row[width] is None else receipt_from_row(row[width:])) for row in rows]

    def counts(self, sequences: Collection[int]) -> dict[int, dict[str, int]]:
        """Return how many receipts of each status these events have, by the events' sequences."""
        found: defaultdict[int, dict[str, int]] = defaultdict(dict)
        for sequence, status, number in self._rows(_COUNTS, {"sequences": list(sequences)}):
            found[sequence][status] = number
        return found

    def consumed_by(self, sequences: Collection[int]) -> dict[int, list[ConsumedBy]]:
        """Return the decisions that consumed these events, by the events' sequences."""
        rows = self._rows(_CONSUMED, {"sequences": list(sequences)})
        return grouped((sequence, ConsumedBy(*consumed)) for sequence, *consumed in rows)


# The cursor that holds the newest event of which it is known that this ledger decided when it was recorded.
DECIDED_UNTIL = "decided-until"
_KINDS = ("api", "cli", "watcher")


def only_here(reader: Reader) -> Sequence[Recording]:
    """Return the updates from the API, the command line and watchers after `DECIDED_UNTIL`, as Prefect takes them.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    known = reader.cursor(DECIDED_UNTIL)
    if not isinstance(known, int):
        return []
    told = [_unplaced(each) for each in reader.events.recordings(after=known)]
    return [each for each in told if each.events]


def _unplaced(recording: Recording) -> Recording:
    events = (event for event in recording.events if event.origin.kind in _KINDS)
    return replace(recording, events=tuple(replace(each, sequence=None, recorded=None) for each in events))


_FIRST = (
    select(EVENT_ALIAS.c.alias, func.min(EVENT_ALIAS.c.sequence))
    .where(in_values(EVENT_ALIAS.c.alias, "aliases"))
    .group_by(EVENT_ALIAS.c.alias)
)


@dataclass(frozen=True)
class Position:
    """A position in the feed: the last number of each kind that has been read."""

    asset: int = 0
    event: int = 0
    decision: int = 0
    deadline: int = 0


@dataclass(frozen=True)
class FeedPage:
    """New assets, events, decisions and missed deadlines, each in the order in which they came.

    Attributes:
        assets: each with its number.
        events: each with the aliases that it was the first to come through.
        decisions: each with the events that it consumed.
        deadlines: the deadlines that were missed.
    """

    assets: Sequence[tuple[int, Asset]]
    events: Sequence[tuple[AssetEvent, Sequence[AssetAlias]]]
    decisions: Sequence[tuple[DecisionRecord, tuple[AssetEvent, ...]]]
    deadlines: Sequence[MissedDeadlineRecord] = ()


class FeedReader(Topic):
    """Reads the feed."""

    def end(self) -> Position:
        """Return the position after the newest change, for a reader that starts now."""
        numbers = select(LEDGER.c.last_event, LEDGER.c.last_decision)
        with self._connect() as connection:
            event, decision = connection.execute(numbers).one()
            asset, deadline = (
                connection.scalar(select(func.max(of))) or 0 for of in (ASSET.c.id, MISSED_DEADLINE.c.number)
            )
            return Position(asset, event, decision, deadline)

    def after(self, position: Position, *, limit: int = 100) -> FeedPage:
        """Return what came after a position, at most `limit` of each kind.

        No event comes before its asset, and no decision before its events. Therefore they are read in the opposite
        order: a commit in between cannot reverse it.
        """
        with self._connect() as connection:
            deadlines = missed_after(connection, position.deadline, limit)
            made = DECISIONS.where(DECISION.c.number > position.decision).order_by(DECISION.c.number).limit(limit)
            decisions = decisions_with_events(connection, made)
            events = _events(connection, position.event, limit)
            assets = _assets(connection, position.asset, limit)
        if len(assets) == limit:
            return FeedPage(assets, (), ())
        if len(events) == limit:
            return FeedPage(assets, events, ())
        return FeedPage(assets, events, decisions, deadlines)


def _assets(connection: Connection, after: int, limit: int) -> list[tuple[int, Asset]]:
    query = select(ASSET.c.id, ASSET.c.uri, readable_name(ASSET.c.uri), ASSET.c.group, ASSET.c.extra)
    rows = connection.execute(query.where(ASSET.c.id > after).order_by(ASSET.c.id).limit(limit)).all()
    return [(number, Asset.known(uri, name, group, extra)) for number, uri, name, group, extra in rows]


def _events(connection: Connection, after: int, limit: int) -> list[tuple[AssetEvent, list[AssetAlias]]]:
    query = select(*EVENT_COLUMNS).where(EVENT.c.sequence > after).order_by(EVENT.c.sequence).limit(limit)
    events = [event_from_row(row) for row in connection.execute(query)]
    aliases = dict.fromkeys(alias for event in events for alias in event.aliases)
    rows = connection.execute(_FIRST, {"aliases": aliases}).all() if aliases else ()
    new = grouped((sequence, AssetAlias(alias)) for alias, sequence in rows)
    return [(event, new.get(event.sequence or 0, [])) for event in events]


class CheckReader(Topic):
    """Reads what checks found."""

    def history(self, uri: str, partition_key: str | None = None, *, limit: int = 30) -> list[CheckedData]:
        """Return what the checks of an asset found in its last updates, and in data that was held back, newest first.

        Parameters:
            partition_key: only in this partition; `None` for all of them.
            limit: so many updates are looked at.
        """
        updates = _UPDATES.where(_E.uri == uri).limit(limit)
        held_back = _NEWEST_FAILED.where(_F.uri == uri, _F.held_back).limit(limit)
        if partition_key is not None:
            updates = updates.where(_E.partition_key == partition_key)
            held_back = held_back.where(_F.partition_key == partition_key)
        failed = map(FAILED.read, self._rows(held_back))
        found = [
            *(CheckedData(*row) for row in self._rows(updates) if row.checks),
            *(CheckedData(each.at, each.partition_key, None, each.flow_run_id, each.checks) for each in failed),
        ]
        return sorted(found, key=lambda each: each.at, reverse=True)[:limit]

    def not_made_good(self, since: datetime) -> list[FailedChecks]:
        """Return what failed a check since a moment and no later update has made good: the newest of asset and key."""
        newest: dict[tuple[str, str | None], FailedChecks] = {}
        for each in self.failed(since):
            newest.setdefault((each.uri, each.partition_key), each)
        return [each for each in newest.values() if not self._is_made_good(each)]

    def _is_made_good(self, failed: FailedChecks) -> bool:
        updates = _UPDATES.where(_E.uri == failed.uri)
        if failed.partition_key is not None:
            updates = updates.where(_E.partition_key == failed.partition_key)
        last = next(iter(self._rows(updates.limit(1))), None)
        return last is not None and last.occurred > failed.at and all(each.passed for each in last.checks)

    def failed(self, since: datetime, *, limit: int = 100) -> list[FailedChecks]:
        """Return what failed a check since a moment, newest first."""
        return list(map(FAILED.read, self._rows(_NEWEST_FAILED.where(_F.at >= since).limit(limit))))
