"""Decisions, what they consumed, and what became of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, bindparam, exists, func, literal_column, or_, select, union, union_all

from assetflow.core.freshness.records import Asked
from assetflow.core.grouping import grouped
from assetflow.core.rules.ended_runs import FAILED
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.words import IdStart
from assetflow.ledger.read import Topic, given, newest_first
from assetflow.ledger.read.queues import EventSample, sample
from assetflow.ledger.records import DecisionRecord, DecisionStatus, KeyDecisions
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.freshness_tables import KEPT_RUN
from assetflow.ledger.sql.rows import EVENT_COLUMNS, Rows, event_from_row, readable_name
from assetflow.ledger.sql.tables import CONSUMER, DECISION, EVENT, NO_KEY, RECEIPT

_ONE = RECEIPT.alias("one")
_FIRST = EVENT.alias("first")
_OF_ONE = (_ONE.c.decision == DECISION.c.number, _ONE.c.decision.is_not(None))
_DECISIONS = DECISION.join(
    _FIRST, _FIRST.c.sequence == select(func.min(_ONE.c.sequence)).where(*_OF_ONE).scalar_subquery()
)
_OF_THESE = in_values(DECISION.c.number, "decisions")
# The asset of the first update, with the number of all updates.
_FIRST_ASSETS = (
    select(
        DECISION.c.number,
        _FIRST.c.uri,
        _FIRST.c.asset_name,
        readable_name(_FIRST.c.uri),
        select(func.count()).select_from(_ONE).where(*_OF_ONE).scalar_subquery(),
        _FIRST.c.sequence.label("sequence"),
    )
    .select_from(_DECISIONS)
    .where(_OF_THESE)
)
_OTHERS = (
    select(DECISION.c.number, func.min(RECEIPT.c.sequence).label("sequence"), func.count().label("events"))
    .select_from(
        _DECISIONS.join(RECEIPT, RECEIPT.c.decision == DECISION.c.number).join(
            EVENT, EVENT.c.sequence == RECEIPT.c.sequence
        )
    )
    .where(_OF_THESE, RECEIPT.c.decision.is_not(None), RECEIPT.c.sequence > _FIRST.c.sequence)
    .where(EVENT.c.uri != _FIRST.c.uri)
    .group_by(DECISION.c.number, EVENT.c.uri)
    .subquery()
)
_OTHER_ASSETS = select(
    _OTHERS.c.number,
    EVENT.c.uri,
    EVENT.c.asset_name,
    readable_name(EVENT.c.uri),
    _OTHERS.c.events,
    _OTHERS.c.sequence,
).select_from(_OTHERS.join(EVENT, EVENT.c.sequence == _OTHERS.c.sequence))
# Sorting a hundred thousand updates by asset takes long, so those of the first asset are not among them.
_ASSETS = union_all(_FIRST_ASSETS, _OTHER_ASSETS).order_by("sequence")


@dataclass(frozen=True)
class ConsumedAsset:
    """An asset of which a decision consumed events, and how many.

    Attributes:
        name: the name that its first event gave it: the run is called by it.
        shown: what people call it (1.2).
    """

    uri: str
    name: str
    shown: str
    events: int


def consumed_assets(connection: Connection, decisions: Collection[int]) -> dict[int, list[ConsumedAsset]]:
    """Return the assets of which decisions consumed events, in the order of their first event, by the numbers."""
    rows = connection.execute(_ASSETS, {"decisions": list(decisions)}).all()
    found = grouped((number, ConsumedAsset(*asset)) for number, *asset, _ in rows)
    for number, (first, *others) in found.items():
        # The first row counts the updates of all assets.
        found[number][0] = replace(first, events=first.events - sum(each.events for each in others))
    return found


_RECORDS = Rows(DecisionRecord, DECISION, consumer_name=CONSUMER.c.name, automation_id=CONSUMER.c.automation_id)
DECISIONS = select(*_RECORDS.columns).select_from(DECISION.join(CONSUMER, CONSUMER.c.id == DECISION.c.consumer))
decision_from_row = _RECORDS.read
_KNOWN = select(DECISION.c.id).where(in_values(DECISION.c.id, "ids"))
_CONSUMED = (
    select(*EVENT_COLUMNS, RECEIPT.c.decision)
    .join(RECEIPT, RECEIPT.c.sequence == EVENT.c.sequence)
    .where(in_values(RECEIPT.c.decision, "numbers"), RECEIPT.c.decision.is_not(None))
    .order_by(RECEIPT.c.sequence)
)
_IS_COMPARED = select(
    or_(
        exists(
            select(KEPT_RUN.c.id)
            .join(DECISION, DECISION.c.id == KEPT_RUN.c.id)
            .where(DECISION.c.flow_run_id == bindparam("flow_run"))
        ),
        exists().where(KEPT_RUN.c.id == bindparam("flow_run")),
    )
)
_ENDED = union(
    select(DECISION.c.flow_run_id).where(in_values(DECISION.c.flow_run_id, "runs"), DECISION.c.ended.is_not(None)),
    select(KEPT_RUN.c.id).where(in_values(KEPT_RUN.c.id, "runs"), KEPT_RUN.c.ended.is_not(None)),
)
_TRIED = select(KEPT_RUN.c.id, KEPT_RUN.c.tried, KEPT_RUN.c.predecessor).where(in_values(KEPT_RUN.c.id, "ids"))
_WITHOUT_NOTE = DECISIONS.where(DECISION.c.noted.is_(None), DECISION.c.flow_run_id.is_not(None))
_STATES = {"waiting": "Waiting", "launched": "Running", "undeliverable": "Undeliverable"}


class DecisionReader(Topic):
    """Reads decisions."""

    def get(self, decision_id: UUID) -> DecisionRecord | None:
        """Return the decision with this id."""
        return next(iter(self._read(DECISIONS.where(DECISION.c.id == decision_id))), None)

    def with_ids(self, ids: Iterable[UUID]) -> list[DecisionRecord]:
        """Return the decisions with these ids."""
        return self._read(DECISIONS.where(in_values(DECISION.c.id, "ids")), ids=list(ids))

    def of_run(self, flow_run_id: UUID) -> DecisionRecord | None:
        """Return the decision that led to a flow run."""
        return next(iter(self._read(DECISIONS.where(DECISION.c.flow_run_id == flow_run_id).limit(1))), None)

    def beginning(self, start: IdStart, most: int) -> list[UUID]:
        """Return the ids of decisions whose id, or whose flow run's id, begins so, at most `most`."""
        begins = (column.between(start.first, start.last) for column in (DECISION.c.id, DECISION.c.flow_run_id))
        return list(self._scalars(select(DECISION.c.id).where(or_(*begins)).limit(most)))

    def is_compared(self, flow_run_id: UUID) -> bool:
        """Return True if the ledger knows a flow run, and what it makes is compared (8.6)."""
        return bool(self._scalar(_IS_COMPARED, {"flow_run": flow_run_id}))

    def ended(self, flow_runs: Collection[UUID]) -> Sequence[UUID]:
        """Return those of some flow runs whose end is in the ledger, whoever started them."""
        return self._scalars(_ENDED, {"runs": list(flow_runs)})

    def find(
        self,
        *,
        consumer: int | None = None,
        target_key: str | None = None,
        status: DecisionStatus | None = None,
        has_run: bool = False,
        before: int | None = None,
        limit: int = 100,
    ) -> list[DecisionRecord]:
        """Return decisions, newest first. To page on, give the number of the last one as `before`.

        Parameters:
            has_run: only decisions that have a flow run.
        """
        query = DECISIONS.where(*given((DECISION.c.consumer, consumer), (DECISION.c.target_key, target_key)))
        if has_run:
            query = query.where(DECISION.c.flow_run_id.is_not(None))
        if status in ("waiting", "launched"):
            query = query.where(DECISION.c.ended.is_(None), DECISION.c.status == status)
        elif status is not None:
            query = query.where(DECISION.c.status == literal_column(f"'{status}'"))
        return self._read(newest_first(query, DECISION.c.number, before, limit))

    def waiting(
        self, *, limit: int = 100, besides: Collection[int] = ()
    ) -> list[tuple[DecisionRecord, tuple[AssetEvent, ...]]]:
        """Return the decisions that wait for their run, oldest first, with the events that they consumed.

        Parameters:
            besides: ids of consumers whose decisions are left out.
        """
        query = _in_progress("waiting", limit)
        if besides:
            query = query.where(DECISION.c.consumer.not_in(besides))
        with self._connect() as connection:
            return decisions_with_events(connection, query)

    def asked(self, decisions: Collection[DecisionRecord]) -> Mapping[UUID, Asked]:
        """Return what Eager and Lazy flows were asked for by some decisions; other decisions are left out."""
        kept = {each.id: (each.kind, each.because) for each in decisions if each.because}
        if not kept:
            return {}
        rows = self._rows(_TRIED, {"ids": list(kept)})
        return {
            number: Asked(kind, because, tried.code_versions, tried.reads, predecessor)
            for number, tried, predecessor in rows
            for kind, because in [kept[number]]
            if kind == "eager" or kind == "lazy"
        }

    def running(self, *, limit: int | None = None) -> list[DecisionRecord]:
        """Return the decisions whose run has started and not ended, oldest first."""
        return self._read(_in_progress("launched", limit))

    def open_runs(self, limit: int, after: UUID | None = None) -> Sequence[UUID]:
        """Return the open flow runs of decisions in the ledger, in the order of their ids.

        Parameters:
            after: only runs whose ids come after this one; `None` for all.
        """
        query = _OPEN_RUNS if after is None else _OPEN_RUNS.where(DECISION.c.flow_run_id > after)
        return self._scalars(query.limit(limit))

    def failed_runs(self, consumer: int, key: str | None = None, limit: int | None = None) -> Sequence[UUID]:
        """Return the flow runs of a consumer's decisions that failed, the newest decision first.

        Parameters:
            key: only of this target key.
        """
        of = given((DECISION.c.consumer, consumer), (DECISION.c.target_key, key))
        query = select(DECISION.c.flow_run_id).where(*of, DECISION.c.run_state.in_(FAILED))
        query = query.where(DECISION.c.flow_run_id.is_not(None)).order_by(DECISION.c.number.desc()).limit(limit)
        return self._scalars(query)

    def without_note(self, *, limit: int = 100) -> list[DecisionRecord]:
        """Return the decisions whose run has no note yet that says why it ran, oldest first."""
        return self._read(_WITHOUT_NOTE.order_by(DECISION.c.number).limit(limit))

    def undeliverable(
        self, consumer: int | None = None, *, uri: str | None = None, event_id: UUID | None = None
    ) -> list[UUID]:
        """Return the undeliverable decisions: of a consumer, or those that consumed events of an asset or one event."""
        of_consumer = given((DECISION.c.consumer, consumer))
        query = select(DECISION.c.id).where(DECISION.c.status == literal_column("'undeliverable'"), *of_consumer)
        of_event = given((EVENT.c.uri, uri), (EVENT.c.id, event_id))
        if of_event:
            consumed = select(RECEIPT.c.decision).join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence).where(*of_event)
            of_decision = (RECEIPT.c.decision == DECISION.c.number, RECEIPT.c.decision.is_not(None))
            query = query.where(consumed.where(*of_decision).exists())
        return list(self._scalars(query.order_by(DECISION.c.number)))

    def by_key(self, consumer: int) -> Mapping[str, KeyDecisions]:
        """Return the target keys for which a consumer has decisions, in the order of their latest decisions."""
        columns = (
            DECISION.c.target_key,
            DECISION.c.id,
            DECISION.c.kind,
            DECISION.c.status,
            DECISION.c.run_state,
            DECISION.c.flow_run_id,
            DECISION.c.made,
        )
        query: Any = select(*columns).where(DECISION.c.consumer == consumer, DECISION.c.target_key != NO_KEY)
        found: dict[str, KeyDecisions] = {}
        for key, number, kind, status, run_state, run, made in self._rows(query.order_by(DECISION.c.number)):
            before = found.pop(key, None)
            backfills = (before.backfills if before else 0) + (kind == "backfill")
            found[key] = replace(KeyDecisions(number, _STATES.get(status) or run_state, run, made), backfills=backfills)
        return found

    def known(self, ids: Iterable[UUID]) -> set[UUID]:
        """Return those of the ids that are decisions of this ledger."""
        with self._connect() as connection:
            return known_decisions(connection, ids)

    def last_made(self, until: datetime) -> datetime | None:
        """Return when the newest decision was made, without those that a clock which was ahead made after `until`."""
        newest = select(DECISION.c.made).where(DECISION.c.made <= until).order_by(DECISION.c.number.desc()).limit(1)
        return self._scalar(newest)

    def events_of(self, decisions: Sequence[DecisionRecord]) -> dict[UUID, tuple[AssetEvent, ...]]:
        """Return the events that decisions consumed, oldest first, by the decisions' ids."""
        with self._connect() as connection:
            events = events_of(connection, [each.number for each in decisions])
        return {each.id: events[each.number] for each in decisions}

    def sample_of(self, decision: DecisionRecord, *, most: int) -> EventSample:
        """Return the events that a decision consumed; of more than `most` those that an explanation needs."""
        with self._connect() as connection:
            consumed = RECEIPT.c.decision == decision.number
            events = sample(connection, consumed, most)
            total = connection.scalar(select(func.count()).select_from(RECEIPT).where(consumed))
        return EventSample(events, total or 0)

    def consumed_assets(self, decisions: Collection[int]) -> dict[int, list[ConsumedAsset]]:
        """Return the assets of which decisions consumed events, by the decisions' numbers."""
        with self._connect() as connection:
            return consumed_assets(connection, decisions)

    def _read(self, query: Select[Any], **values: Any) -> list[DecisionRecord]:
        return list(map(decision_from_row, self._rows(query, values)))


def events_of(connection: Connection, decisions: Sequence[int]) -> dict[int, tuple[AssetEvent, ...]]:
    """Return the events that decisions consumed, oldest first, by the decisions' numbers."""
    rows = connection.execute(_CONSUMED, {"numbers": list(decisions)}).all()
    found = grouped((row[-1], event_from_row(row)) for row in rows)
    return {number: tuple(found.get(number, ())) for number in decisions}


def decisions_with_events(
    connection: Connection, query: Select[Any]
) -> list[tuple[DecisionRecord, tuple[AssetEvent, ...]]]:
    """Return the decisions that a query for `DECISIONS` finds, each with the events that it consumed, oldest first."""
    found = [decision_from_row(row) for row in connection.execute(query)]
    events = events_of(connection, [each.number for each in found])
    return [(each, events[each.number]) for each in found]


_OPEN_RUNS = (
    select(DECISION.c.flow_run_id)
    .where(DECISION.c.ended.is_(None), DECISION.c.status == "launched")
    .order_by(DECISION.c.flow_run_id)
)


def known_decisions(connection: Connection, ids: Iterable[UUID]) -> set[UUID]:
    """Return those of the ids that are decisions of this ledger."""
    return set(connection.scalars(_KNOWN, {"ids": list(ids)}))


def _in_progress(status: DecisionStatus, limit: int | None) -> Select[Any]:
    query = DECISIONS.where(DECISION.c.ended.is_(None), DECISION.c.status == status)
    return query.order_by(DECISION.c.number).limit(limit)
