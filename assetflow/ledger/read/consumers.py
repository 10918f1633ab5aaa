"""Consumers: as they are stored, and as lists show them with their queues and latest decisions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, and_, case, exists, func, literal, or_, select, union_all

from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.grouping import grouped
from assetflow.core.rules.ended_runs import FAILED_OUTCOMES
from assetflow.core.rules.evaluation import Pending, facts_of
from assetflow.core.rules.timers import Timer
from assetflow.core.shapes import shape
from assetflow.core.values.announcements import MissedDeadlineRecord
from assetflow.core.values.conditions import AssetAll, Leaf, Token
from assetflow.core.values.words import count
from assetflow.core.wire.deployments import RefusedDeployment
from assetflow.ledger.read import Topic, given, newest_first
from assetflow.ledger.read.decisions import DECISIONS, decision_from_row
from assetflow.ledger.records import (
    ConsumerFilter,
    ConsumerOrder,
    ConsumerRecord,
    DecisionRecord,
    DecisionStatus,
    TimerRecord,
)
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.rows import CONSUMER_COLUMNS, Rows, consumer_from_row
from assetflow.ledger.sql.tables import (
    ALIAS_LINK,
    ASSET_NAME,
    CONSUMER,
    DECISION,
    ENDED_RUN,
    MISSED_DEADLINE,
    NO_KEY,
    PENDING,
    TIMER,
)

_CONSUMERS = select(
    *CONSUMER_COLUMNS, CONSUMER.c.flow_id, CONSUMER.c.automation_id, CONSUMER.c.since, CONSUMER.c.removed_at
)
_LIVE = CONSUMER.c.removed_at.is_(None)
_LISTED = and_(_LIVE, CONSUMER.c.listed)
# The text of a declaration shows that there is a timetable; most consumers have none and need not be decoded.
_WITH_TIMETABLE = CONSUMER.c.declaration.contains('"timetable":', autoescape=True)
_IS_LAZY = CONSUMER.c.declaration.contains('"kind":"lazy"', autoescape=True)
_TIMERS = Rows(
    TimerRecord,
    TIMER,
    name=CONSUMER.c.name,
    deployment_id=CONSUMER.c.deployment_id,
    timer=(Timer, TIMER.c.timetable, TIMER.c.reached, TIMER.c.paused, TIMER.c.held),
)
# A row for each asset of a plain queue, and one for all pending partitions.
_PLAIN_URI = case((PENDING.c.target_key == NO_KEY, PENDING.c.uri))
_PENDING = (
    select(PENDING.c.consumer, _PLAIN_URI, func.count(PENDING.c.target_key.distinct()), func.sum(PENDING.c.count))
    .where(in_values(PENDING.c.consumer, "numbers"))
    .group_by(PENDING.c.consumer, _PLAIN_URI)
)
_TOKENS = union_all(
    select(ASSET_NAME.c.uri, literal("name"), ASSET_NAME.c.name).where(in_values(ASSET_NAME.c.uri, "uris")),
    select(ALIAS_LINK.c.uri, literal("alias"), ALIAS_LINK.c.alias).where(in_values(ALIAS_LINK.c.uri, "uris")),
)
_LATER = DECISION.alias("later")
_IS_WAITING = exists().where(PENDING.c.consumer == CONSUMER.c.id)
_NEWEST, _END, _LATER_END = DECISION.alias("newest"), ENDED_RUN.alias("last_end"), ENDED_RUN.alias("later_end")
_LAST_NUMBER = (
    select(func.coalesce(func.max(_LATER.c.number), 0))
    .where(_LATER.c.consumer == CONSUMER.c.id)
    .correlate(CONSUMER)
    .scalar_subquery()
)
_QUEUED = (
    select(func.coalesce(func.sum(PENDING.c.count), 0))
    .where(PENDING.c.consumer == CONSUMER.c.id)
    .correlate(CONSUMER)
    .scalar_subquery()
)
_ORDERS: dict[ConsumerOrder, tuple[ColumnElement[Any], ...]] = {
    "name": (),
    "-name": (CONSUMER.c.name.desc(),),
    "decided": (_LAST_NUMBER.desc(),),
    "-decided": (_LAST_NUMBER,),
    "queued": (_QUEUED.desc(),),
    "-queued": (_QUEUED,),
}
_LAST_END = (
    select(func.max(_LATER_END.c.ended))
    .where(_LATER_END.c.deployment_id == CONSUMER.c.deployment_id)
    .correlate(CONSUMER)
    .scalar_subquery()
)
# Its last decision was not delivered; or its last run, whoever started it, failed, and no decision came since.
_HAS_FAILED = or_(
    exists().where(_NEWEST.c.number == _LAST_NUMBER, _NEWEST.c.status == "undeliverable"),
    exists().where(
        _END.c.deployment_id == CONSUMER.c.deployment_id,
        _END.c.outcome.in_(FAILED_OUTCOMES),
        _END.c.ended == _LAST_END,
        ~exists().where(_NEWEST.c.number == _LAST_NUMBER, _NEWEST.c.ended.is_(None)),
    ),
)
_LAST = DECISIONS.where(
    in_values(DECISION.c.consumer, "numbers"),
    DECISION.c.number
    == select(func.max(_LATER.c.number)).where(_LATER.c.consumer == DECISION.c.consumer).scalar_subquery(),
)


@dataclass(frozen=True)
class ConsumerOverview:
    """A consumer with the state of its queue.

    Attributes:
        updated: the number of assets of its condition that have been updated.
        pending: the number of target keys for which something is queued.
        queued: the number of events that are queued.
        last: its latest decision; `None` if it has none, or if nobody looked.
        refused: why its newest declaration cannot be used; `None` if it can, or if nobody looked.
        plan: what an Eager or Lazy consumer would run now; `None` for others, or if nobody looked.
    """

    record: ConsumerRecord
    updated: int
    pending: int
    queued: int
    last: DecisionRecord | None
    refused: RefusedDeployment | None = None
    plan: PlannedConsumer | None = None

    @property
    def name(self) -> str:
        return self.record.consumer.name

    @property
    def condition(self) -> str:
        return self.record.consumer.schedule.describe()

    @property
    def state(self) -> str:
        """How far its condition is: `1 of 2 updated`, `waiting for one of 3 assets`, `2 keys pending`.

        Of an Eager or Lazy consumer what it would run now. Without assets: `time only` or `no schedule`.
        """
        if self.plan is not None:
            return self.plan.state
        schedule = self.record.consumer.schedule
        if not schedule.tokens:
            return schedule.kind_without_assets
        if schedule.is_partitioned:
            return f"{count(self.pending, 'key')} pending"
        needed = isinstance(schedule.condition, AssetAll) and all(
            isinstance(each, Leaf) for each in schedule.condition.members
        )
        if self.updated:
            return f"{self.updated} of {len(schedule.tokens)} updated" if needed else f"{self.updated} updated"
        one_of = "" if needed or len(schedule.tokens) == 1 else "one of "
        return f"waiting for {one_of}{count(len(schedule.tokens), 'asset')}"

    @property
    def paused(self) -> str:
        consumer = self.record.consumer
        return ", ".join(word for word, is_so in (("paused", consumer.paused), ("held", consumer.held)) if is_so)

    def shown(self) -> ShownConsumer:
        """Return the overview as the API and `--json` show it."""
        consumer, last = self.record.consumer, self.last
        return ShownConsumer(
            id=consumer.id,
            name=consumer.name,
            deployment_id=consumer.deployment_id,
            automation_id=self.record.automation_id,
            schedule=self.condition,
            assets=len(consumer.schedule.tokens),
            updated=self.updated,
            queued=self.queued,
            pending_partitions=self.pending if consumer.schedule.is_partitioned else None,
            words=self.state,
            paused=consumer.paused,
            held=consumer.held,
            active=not (consumer.paused or consumer.held),
            last_decision=None if last is None else LastDecision(last.id, last.made, last.status, last.flow_run_id),
            refused=self.refused,
        )


@shape
class LastDecision:
    """The latest decision of a consumer."""

    id: UUID
    made: datetime
    status: DecisionStatus
    flow_run_id: UUID | None


@shape
class ShownConsumer:
    """A consumer with the state of its queue."""

    id: int
    name: str
    deployment_id: UUID
    automation_id: UUID | None
    schedule: str
    assets: int
    updated: int
    queued: int
    pending_partitions: int | None
    """Of a partitioned consumer: how many keys are pending."""
    words: str
    """How far it is in a few words: `1 of 2 updated`, `up to date`, `failed on this data`."""
    paused: bool
    """Its automation is switched off."""
    held: bool
    """Its deployment is paused."""
    active: bool
    """It is neither paused nor held."""
    last_decision: LastDecision | None
    refused: RefusedDeployment | None
    """Why its newest declaration cannot be used."""


class ConsumerReader(Topic):
    """Reads consumers."""

    def get(self, number: int) -> ConsumerRecord | None:
        """Return the consumer with this id, unless it was removed."""
        return next(iter(self._read(_CONSUMERS.where(CONSUMER.c.id == number, _LIVE))), None)

    def named(self, name: str) -> ConsumerRecord | None:
        """Return the consumer with this name, `flow/deployment`, unless it was removed."""
        return next(iter(self._read(_CONSUMERS.where(CONSUMER.c.name == name, _LIVE))), None)

    def called(self, names: Collection[str]) -> list[ConsumerRecord]:
        """Return the consumers with these names that are scheduled on something."""
        query = _CONSUMERS.where(in_values(CONSUMER.c.name, "names"), _LISTED)
        return [_record(row) for row in self._rows(query, {"names": list(names)})]

    def number_of(self, text: str) -> int | None:
        """Return the id of the consumer called `flow/deployment`, `flow.deployment` or by its deployment's id."""
        called: list[ColumnElement[bool]] = [CONSUMER.c.name == text, func.replace(CONSUMER.c.name, "/", ".") == text]
        with suppress(ValueError):
            called.append(CONSUMER.c.deployment_id == UUID(text))
        return self._scalar(select(CONSUMER.c.id).where(_LIVE, or_(*called)).order_by(CONSUMER.c.id).limit(1))

    def names(self) -> list[str]:
        """Return the names of all consumers."""
        return sorted(self._scalars(select(CONSUMER.c.name).where(_LISTED)))

    def lazy(self) -> set[str]:
        """Return the names of the consumers that run as late as freshness policies allow. Contract 8.14."""
        return set(self._scalars(select(CONSUMER.c.name).where(_LISTED, _IS_LAZY)))

    def all(self, *, removed: bool = False) -> list[ConsumerRecord]:
        """Return all consumers by id, or those that were removed."""
        wanted = and_(~_LIVE, CONSUMER.c.listed) if removed else _LISTED
        return self._read(_CONSUMERS.where(wanted).order_by(CONSUMER.c.id))

    def page(self, where: ConsumerFilter, *, after: int = 0, limit: int | None = None) -> list[ConsumerRecord]:
        """Return consumers by id, from the first id after `after` on."""
        query = _CONSUMERS.where(*_conditions(where), CONSUMER.c.id > after)
        return self._read(query.order_by(CONSUMER.c.id).limit(limit))

    def listed(
        self, where: ConsumerFilter, order: ConsumerOrder = "name", *, limit: int = 100, offset: int = 0
    ) -> tuple[list[ConsumerRecord], int]:
        """Return a page of consumers, and the number of all consumers that match."""
        # With the number beside them, the conditions are looked at once; and only what is shown is read whole.
        found = select(CONSUMER.c.id, func.count().over()).where(*_conditions(where))
        found = found.order_by(*_ORDERS[order], CONSUMER.c.name)
        with self._connect() as connection:
            rows = connection.execute(found.limit(limit).offset(offset)).all()
            if not rows and offset:
                rest = connection.execute(found.limit(1)).first()
                return [], 0 if rest is None else rest[1]
            query = _CONSUMERS.where(in_values(CONSUMER.c.id, "numbers"))
            shown = connection.execute(query, {"numbers": [number for number, _ in rows]}).all()
        records = {each.consumer.id: each for each in map(_record, shown)}
        return [records[number] for number, _ in rows if number in records], rows[0][1] if rows else 0

    def unlisted(self) -> dict[UUID, tuple[str, str]]:
        """Return the flows that stand in the data graph only, by deployment: their names and their declarations."""
        query = select(CONSUMER.c.deployment_id, CONSUMER.c.name, CONSUMER.c.declaration)
        rows = self._rows(query.where(_LIVE, ~CONSUMER.c.listed))
        return {number: (name, text) for number, name, text in rows}

    def overviews(self, records: Sequence[ConsumerRecord], *, with_last: bool = True) -> list[ConsumerOverview]:
        """Return these consumers as lists show them, in a constant number of statements.

        Parameters:
            with_last: whether to look for the latest decision of each, which is most of the work.
        """
        numbers = {"numbers": [record.consumer.id for record in records]}
        with self._connect() as connection:
            queues = grouped((consumer, row) for consumer, *row in connection.execute(_PENDING, numbers))
            uris = {"uris": {uri for queue in queues.values() for uri, _, _ in queue if uri is not None}}
            tokens = grouped((uri, Token(kind, value)) for uri, kind, value in connection.execute(_TOKENS, uris))
            decisions = connection.execute(_LAST, numbers) if with_last else ()
            last = {each.consumer: each for each in map(decision_from_row, decisions)}
        known = {uri: frozenset((Token("uri", uri), *tokens.get(uri, ()))) for uri in uris["uris"]}
        return [
            _overview(record, queues.get(record.consumer.id, ()), last.get(record.consumer.id), known)
            for record in records
        ]

    def with_times(self) -> list[ConsumerRecord]:
        """Return the consumers that the clock starts, by id. Contract 6.1."""
        found = self._read(_CONSUMERS.where(_WITH_TIMETABLE, _LISTED).order_by(CONSUMER.c.id))
        return [each for each in found if each.consumer.schedule.has_times]

    def timers(self) -> list[TimerRecord]:
        """Return the timers of all consumers, including those of consumers that were removed since."""
        return list(map(_TIMERS.read, self._rows(select(*_TIMERS.columns).join(CONSUMER))))

    def _read(self, query: Select[Any]) -> list[ConsumerRecord]:
        return [_record(row) for row in self._rows(query)]


def _overview(
    record: ConsumerRecord,
    queue: Collection[Sequence[Any]],
    last: DecisionRecord | None,
    tokens: Mapping[str, frozenset[Token]],
) -> ConsumerOverview:
    """Return a consumer as lists show it.

    Parameters:
        queue: its rows of `_PENDING`, each with a URI, a number of keys and a number of events.
    """
    schedule = record.consumer.schedule
    pending: Pending = {uri: {None: 1} for uri, _, _ in queue if uri is not None}
    facts = facts_of(schedule, None, pending, lambda uri: tokens[uri])
    keys = sum(keys for uri, keys, _ in queue if uri is None)
    return ConsumerOverview(record, len(facts.keys() & schedule.tokens), keys, sum(int(row[2]) for row in queue), last)


def _conditions(where: ConsumerFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = [_LISTED]
    if where.search:
        found.append(CONSUMER.c.name.icontains(where.search, autoescape=True))
    stopped = or_(CONSUMER.c.paused, CONSUMER.c.held)
    wanted = (
        (CONSUMER.c.paused, where.paused),
        (CONSUMER.c.held, where.held),
        (~stopped, where.active),
        (_IS_WAITING, where.waiting),
        (_HAS_FAILED, where.failed),
    )
    return [*found, *(holds if is_wanted else ~holds for holds, is_wanted in wanted if is_wanted is not None)]


def _record(row: Sequence[Any]) -> ConsumerRecord:
    flow_id, automation_id, since, removed_at = row[len(CONSUMER_COLUMNS) : len(CONSUMER_COLUMNS) + 4]
    return ConsumerRecord(consumer_from_row(row), flow_id, row[3], automation_id, since, removed_at)


_MISSED = Rows(
    MissedDeadlineRecord,
    MISSED_DEADLINE,
    consumer_name=CONSUMER.c.name,
    deployment_id=CONSUMER.c.deployment_id,
    automation_id=CONSUMER.c.automation_id,
)
MISSED = select(*_MISSED.columns).select_from(
    MISSED_DEADLINE.join(CONSUMER, CONSUMER.c.id == MISSED_DEADLINE.c.consumer)
)
missed_from_row = _MISSED.read


class DeadlineReader(Topic):
    """Reads missed deadlines."""

    def missed(
        self, *, consumer: int | None = None, before: int | None = None, limit: int = 100
    ) -> list[MissedDeadlineRecord]:
        """Return missed deadlines, newest first. To page on, give the number of the last one as `before`."""
        query = MISSED.where(*given((MISSED_DEADLINE.c.consumer, consumer)))
        page = newest_first(query, MISSED_DEADLINE.c.number, before, limit)
        return list(map(missed_from_row, self._rows(page)))


def missed_after(connection: Connection, number: int, limit: int) -> list[MissedDeadlineRecord]:
    """Return the missed deadlines after the one with this number, oldest first."""
    query = MISSED.where(MISSED_DEADLINE.c.number > number).order_by(MISSED_DEADLINE.c.number).limit(limit)
    return list(map(missed_from_row, connection.execute(query)))
