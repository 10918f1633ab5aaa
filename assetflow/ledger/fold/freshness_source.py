"""The source of the state of chapter 8: the tables as they were when the transaction began.

`FreshnessSource` says what each method returns. Each is one statement by an index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Connection, Select, and_, bindparam, exists, func, literal_column, or_, select

from assetflow.core.freshness.graph import DataGraph, Resolve, TokensOf
from assetflow.core.freshness.records import (
    Backfill,
    BackfillItem,
    FlowRecord,
    Item,
    ItemUpdate,
    Moment,
    PolicyRecord,
    Run,
    StepState,
    Target,
    TargetRecord,
    VersionRun,
)
from assetflow.core.freshness.state.source import REMEMBERED, FreshnessSource
from assetflow.ledger.fold.freshness_writing import track
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.freshness_tables import (
    BACKFILL,
    BACKFILL_EDGE,
    BACKFILL_TARGET,
    DATA_FLOW,
    EARLIER_INPUT,
    ITEM,
    ITEM_VERSION,
    KEPT_RUN,
    POLICY,
    POLICY_TOUCH,
    READING,
    TARGET,
    TARGET_KEY,
)
from assetflow.ledger.sql.rows import (
    BACKFILL_ITEMS,
    BACKFILLS,
    CONSUMER_COLUMNS,
    ITEM_UPDATES,
    KEPT_RUNS,
    POLICY_RECORDS,
    TARGET_RECORDS,
    consumer_from_row,
)
from assetflow.ledger.sql.tables import CONSUMER, DECISION, NO_KEY

PAGE = 100

_T, _E = BACKFILL_TARGET.c, BACKFILL_EDGE.c
IS_LIVE = and_(BACKFILL.c.begun.is_not(None), BACKFILL.c.ended.is_(None))
HAS_BACKFILLS = exists(select(BACKFILL.c.number).where(IS_LIVE))
_LIVE = select(*BACKFILLS.columns).where(IS_LIVE).order_by(BACKFILL.c.number)
_OF_TARGET = (
    select(*BACKFILLS.columns)
    .join(BACKFILL_TARGET, _T.backfill == BACKFILL.c.number)
    .where(BACKFILL.c.begun.is_not(None), _T.consumer == bindparam("consumer"), _T.target_key == bindparam("key"))
)
_STEPS = select(*BACKFILL_ITEMS.columns).where(_T.backfill == bindparam("backfill"))
_STEP = _STEPS.where(_T.consumer == bindparam("consumer"), _T.target_key == bindparam("key"))
_READY = (
    _STEPS.where(_T.state == literal_column("'todo'"), _T.waits == literal_column("0"), _T.place > bindparam("after"))
    .order_by(_T.place)
    .limit(PAGE)
)
_BELOW = (
    select(*BACKFILL_ITEMS.columns)
    .join(BACKFILL_EDGE, and_(_E.backfill == _T.backfill, _E.below == _T.place))
    .where(_E.backfill == bindparam("backfill"), in_values(_E.above, "places"))
    .distinct()
)
_IN_STATES = _STEPS.where(in_values(_T.state, "states"))


class BackfillTables(FreshnessSource):
    """Reads backfills and their targets from the tables.

    Attributes:
        connection: the connection of the current transaction.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def backfills(self) -> Iterable[Backfill]:
        return [BACKFILLS.read(row) for row in self._rows(_LIVE)]

    def backfills_of(self, target: Target) -> Iterable[Backfill]:
        return [BACKFILLS.read(row) for row in self._rows(_OF_TARGET, consumer=target.consumer, key=target.key)]

    def step(self, backfill: int, target: Target) -> BackfillItem | None:
        found = self._steps(_STEP, backfill, consumer=target.consumer, key=target.key)
        return found[0] if found else None

    def ready_steps(self, backfill: int) -> Iterator[BackfillItem]:
        after = -1
        while page := self._steps(_READY, backfill, after=after):
            yield from page
            after = page[-1].place
            if len(page) < PAGE:
                return

    def steps_below(self, backfill: int, places: Collection[int]) -> Iterable[BackfillItem]:
        return self._steps(_BELOW, backfill, places=list(places)) if places else ()

    def steps_in(
        self, backfill: int, states: Collection[StepState], consumer: int | None = None
    ) -> Iterable[BackfillItem]:
        query = _IN_STATES if consumer is None else _IN_STATES.where(_T.consumer == bindparam("consumer", consumer))
        return self._steps(query, backfill, states=states)

    def _steps(self, query: Select[Any], backfill: int, **values: Any) -> list[BackfillItem]:
        return [BACKFILL_ITEMS.read(row) for row in self._rows(query, backfill=backfill, **values)]

    def _rows(self, query: Select[Any], **values: Any) -> Sequence[Any]:
        return cast("Sequence[Any]", self.connection.execute(query, values).all())

    def _scalars(self, query: Select[Any], **values: Any) -> Sequence[Any]:
        return self.connection.scalars(query, values).all()


# So many items are looked up one by one.
FEW = 8

_V = ITEM_VERSION.c
_OF_ITEM = and_(_V.uri == bindparam("uri"), _V.partition_key == bindparam("key"))
_NEWEST_FIRST = (_V.sequence.desc(), _V.confirms.desc())
_OLDEST_FIRST = (_V.sequence, _V.confirms)
_HISTORY = select(*ITEM_UPDATES.columns).where(_OF_ITEM).order_by(*_NEWEST_FIRST)
_NEWEST = _HISTORY.limit(1)
# The newest updates of all items; a confirmation comes after the update that it confirms.
NEWEST_OF_ITEMS = (
    select(*ITEM_UPDATES.columns)
    .join(ITEM, and_(ITEM.c.uri == _V.uri, ITEM.c.partition_key == _V.partition_key, ITEM.c.sequence == _V.sequence))
    .order_by(_V.confirms)
)
_MANY_NEWEST = NEWEST_OF_ITEMS.where(ITEM.c.uri == bindparam("uri"), in_values(ITEM.c.partition_key, "keys"))
_AS_OF = _HISTORY.where(_V.sequence <= bindparam("sequence")).limit(1)
_FIRST = select(*ITEM_UPDATES.columns).where(_OF_ITEM).order_by(*_OLDEST_FIRST).limit(1)
_ENDED = (
    select(*ITEM_UPDATES.columns)
    .where(_OF_ITEM, _V.sequence >= bindparam("sequence"), _V.data_version != bindparam("version"))
    .order_by(*_OLDEST_FIRST)
    .limit(1)
)
_NEWEST_OF_UNTIL = (
    select(*ITEM_UPDATES.columns)
    .where(_V.uri == bindparam("uri"), _V.recorded <= bindparam("until"))
    .order_by(*_NEWEST_FIRST)
    .limit(1)
)
_OF_ASSET = select(*ITEM_UPDATES.columns).where(_V.uri == bindparam("uri")).order_by(*_NEWEST_FIRST)
_NEWEST_OF = _OF_ASSET.limit(1)
_FIRST_OF = (
    select(*ITEM_UPDATES.columns)
    .where(_V.uri == bindparam("uri"), _V.partition_key != NO_KEY, _V.sequence >= bindparam("place"))
    .order_by(_V.sequence)
    .limit(1)
)
_SEEN = select(_V.seen).where(_OF_ITEM, _V.sequence == bindparam("sequence"), _V.confirms == bindparam("confirms"))
_KEYS = (
    select(ITEM.c.partition_key)
    .where(ITEM.c.uri == bindparam("uri"), ITEM.c.partition_key != NO_KEY)
    .order_by(ITEM.c.partition_key.desc())
)
_KEY_COUNT = select(func.count()).where(ITEM.c.uri == bindparam("uri"), ITEM.c.partition_key != NO_KEY)
_CHANGED = (
    select(ITEM.c.partition_key)
    .where(ITEM.c.uri == bindparam("uri"), ITEM.c.sequence > bindparam("after"))
    .order_by(ITEM.c.sequence.desc())
)
_MANY_READINGS = (
    select(READING.c.target_key, READING.c.uri, READING.c.source_key)
    .where(READING.c.consumer == bindparam("consumer"), in_values(READING.c.target_key, "keys"))
    .order_by(READING.c.source_key)
)
_TARGET_KEYS = (
    select(TARGET_KEY.c.target_key)
    .where(TARGET_KEY.c.consumer == bindparam("consumer"))
    .order_by(TARGET_KEY.c.target_key.desc())
)
_TARGET_COUNT = select(func.count()).where(TARGET_KEY.c.consumer == bindparam("consumer"))
_HAS_TARGET = select(
    exists().where(TARGET_KEY.c.consumer == bindparam("consumer"), TARGET_KEY.c.target_key == bindparam("key"))
)
_TARGET = (TARGET.c.consumer, TARGET.c.target_key)
_IS_KNOWN = exists().where(TARGET_KEY.c.consumer == TARGET.c.consumer, TARGET_KEY.c.target_key == TARGET.c.target_key)
_VERDICTS = (
    select(TARGET.c.verdict, func.count())
    .where(TARGET.c.consumer == bindparam("consumer"), TARGET.c.verdict > literal_column("''"), _IS_KNOWN)
    .group_by(TARGET.c.verdict)
)
_RECORDS = select(*_TARGET, *TARGET_RECORDS.columns).where(
    in_values(TARGET.c.consumer, "consumers"), in_values(TARGET.c.target_key, "keys")
)
_WITH_VERDICT = (
    select(*_TARGET)
    .where(TARGET.c.consumer == bindparam("consumer"), TARGET.c.verdict == bindparam("verdict"))
    .order_by(TARGET.c.target_key.desc())
)
_WAITING_OF = select(*_TARGET).where(
    in_values(TARGET.c.consumer, "consumers"), TARGET.c.verdict == literal_column("'waits'")
)
_WAITING = select(TARGET.c.consumer).where(TARGET.c.verdict == literal_column("'waits'")).distinct()
_DUE_TARGETS = (
    select(*_TARGET)
    .where(TARGET.c.look <= bindparam("until"))
    .order_by(TARGET.c.look, TARGET.c.target_key.desc(), TARGET.c.consumer)
)
_RUNS = select(*KEPT_RUNS.columns)
_OPEN_RUNS = _RUNS.where(in_values(KEPT_RUN.c.consumer, "consumers"), KEPT_RUN.c.ended.is_(None)).order_by(
    KEPT_RUN.c.asked, KEPT_RUN.c.id
)
_RUN_OF = _RUNS.join(DECISION, DECISION.c.id == KEPT_RUN.c.id).where(DECISION.c.flow_run_id == bindparam("flow_run"))
_OTHER_RUN = _RUNS.where(KEPT_RUN.c.id == bindparam("flow_run"))
_DURATIONS = (
    select(KEPT_RUN.c.asked, KEPT_RUN.c.ended)
    .where(
        KEPT_RUN.c.consumer == bindparam("consumer"),
        KEPT_RUN.c.state == literal_column("'completed'"),
        KEPT_RUN.c.kind != literal_column("'manual'"),
    )
    .order_by(KEPT_RUN.c.ended.desc())
    .limit(REMEMBERED)
)
_FLOW = select(DATA_FLOW.c.record).where(DATA_FLOW.c.consumer == bindparam("consumer"))
# A backfill goes through the flows whether or not anything is compared.
_HAS_FLOWS = select(or_(exists(select(DATA_FLOW.c.consumer)), HAS_BACKFILLS))
_EARLIER_INPUTS = select(*EARLIER_INPUT.c).order_by(*EARLIER_INPUT.c)
_CONSUMERS = select(*CONSUMER_COLUMNS).where(CONSUMER.c.removed_at.is_(None)).order_by(CONSUMER.c.id)
NEXT_TARGET = select(func.min(TARGET.c.look))
POLICIES = select(POLICY.c.uri, *POLICY_RECORDS.columns).order_by(POLICY.c.uri)
_POLICY = select(*POLICY_RECORDS.columns).where(POLICY.c.uri == bindparam("uri"))
_DUE = select(POLICY.c.uri).where(POLICY.c.due <= bindparam("until")).order_by(POLICY.c.due, POLICY.c.uri)
_CHANGING = select(POLICY.c.uri).where(POLICY.c.next_change <= bindparam("until"))
_TOUCHED = select(POLICY_TOUCH.c.uri, POLICY_TOUCH.c.at).where(POLICY_TOUCH.c.at <= bindparam("until"))
NEXT_OF_POLICIES = tuple(select(func.min(column)) for column in (POLICY.c.due, POLICY.c.next_change, POLICY_TOUCH.c.at))


class FreshnessTables(BackfillTables):
    """Reads from the tables what the state of freshness does not know."""

    def graph(self, resolve: Resolve, tokens_of: TokensOf) -> DataGraph:
        has_flows = self.connection.scalar(_HAS_FLOWS)
        return self.whole_graph(resolve, tokens_of) if has_flows else super().graph(resolve, tokens_of)

    def whole_graph(self, resolve: Resolve, tokens_of: TokensOf) -> DataGraph:
        consumers = [consumer_from_row(row) for row in self._rows(_CONSUMERS)]
        return DataGraph(consumers, resolve, tokens_of, self._rows(_EARLIER_INPUTS))

    def track(self, makers: Mapping[str, Mapping[UUID, int]]) -> None:
        for uri, numbers in makers.items():
            track(self.connection, uri, numbers)

    def flow_record(self, consumer: int) -> FlowRecord | None:
        return self.connection.scalar(_FLOW, {"consumer": consumer})

    def newest(self, items: Collection[Item]) -> Iterable[tuple[Item, ItemUpdate]]:
        if len(items) > FEW and len({item.uri for item in items}) == 1:
            keys = [item.key for item in items]
            found = map(ITEM_UPDATES.read, self._rows(_MANY_NEWEST, uri=next(iter(items)).uri, keys=keys))
            return ((update.item, update) for update in found)
        each = ((item, self._update(_NEWEST, item)) for item in items)
        return [(item, update) for item, update in each if update is not None]

    def newest_of(self, uri: str, until: datetime | None = None) -> ItemUpdate | None:
        rows = self._rows(_NEWEST_OF, uri=uri) if until is None else self._rows(_NEWEST_OF_UNTIL, uri=uri, until=until)
        return ITEM_UPDATES.read(rows[0]) if rows else None

    def first_of(self, uri: str, since: Moment) -> ItemUpdate | None:
        last = self.newest_of(uri, since.at)
        # The moment may be one at which nothing was recorded, as that at which a policy falls due.
        place = min(since.place + (since.order > 0), 0 if last is None else last.sequence + 1)
        rows = self._rows(_FIRST_OF, uri=uri, place=place)
        return ITEM_UPDATES.read(rows[0]) if rows else None

    def first(self, item: Item) -> ItemUpdate | None:
        return self._update(_FIRST, item)

    def as_of(self, item: Item, sequence: int) -> ItemUpdate | None:
        return self._update(_AS_OF, item, sequence=sequence)

    def version_run(self, update: ItemUpdate) -> VersionRun:
        item = update.item
        ended = self._update(_ENDED, item, sequence=update.sequence, version=update.data_version)
        last = self._update(_NEWEST, item) if ended is None else self.as_of(item, ended.sequence - 1)
        return VersionRun(last or update, ended)

    def history(self, item: Item) -> Iterator[ItemUpdate]:
        yield from self._in_pages(_HISTORY, **_place(item))

    def of_asset(self, uri: str) -> Iterator[ItemUpdate]:
        yield from self._in_pages(_OF_ASSET, uri=uri)

    def keys(self, uri: str, most: int | None = None) -> Collection[str]:
        return self._scalars(_KEYS.limit(most), uri=uri)

    def count_keys(self, uri: str) -> int:
        return self.connection.scalar(_KEY_COUNT, {"uri": uri}) or 0

    def changed(self, uri: str, after: int) -> Iterable[Item]:
        return [Item(uri, key) for key in self._scalars(_CHANGED, uri=uri, after=after)]

    def seen(self, update: ItemUpdate) -> datetime | None:
        place = {"sequence": update.sequence, "confirms": update.confirms}
        return self.connection.scalar(_SEEN, {**_place(update.item), **place})

    def readings_of(self, consumer: int, keys: Collection[str]) -> Iterable[tuple[str, str, str]]:
        return [(target, uri, key) for target, uri, key in self._rows(_MANY_READINGS, consumer=consumer, keys=keys)]

    def target_keys(self, consumer: int, most: int | None = None) -> Collection[str]:
        return self._scalars(_TARGET_KEYS.limit(most), consumer=consumer)

    def has_target(self, target: Target) -> bool:
        return bool(self.connection.scalar(_HAS_TARGET, {"consumer": target.consumer, "key": target.key}))

    def count_targets(self, consumer: int) -> int:
        return self.connection.scalar(_TARGET_COUNT, {"consumer": consumer}) or 0

    def records(self, targets: Collection[Target]) -> Iterable[tuple[Target, TargetRecord]]:
        consumers = list(dict.fromkeys(target.consumer for target in targets))
        keys = list(dict.fromkeys(target.key for target in targets))
        rows = self._rows(_RECORDS, consumers=consumers, keys=keys)
        found = ((Target(*row[:2]), TARGET_RECORDS.read(row[2:])) for row in rows)
        wanted = set(targets)
        return [pair for pair in found if pair[0] in wanted]

    def with_verdict(self, verdict: str, consumer: int, most: int | None = None) -> Iterable[Target]:
        return [Target(*row) for row in self._rows(_WITH_VERDICT.limit(most), verdict=verdict, consumer=consumer)]

    def verdicts(self, consumer: int) -> Mapping[str, int]:
        return dict(map(tuple, self._rows(_VERDICTS, consumer=consumer)))

    def consumers_with(self, verdict: str) -> Iterable[int]:
        assert verdict == "waits", "there is an index for this verdict alone"
        return self._scalars(_WAITING)

    def due_targets(self, until: datetime, most: int | None = None) -> Iterable[Target]:
        return [Target(*row) for row in self._rows(_DUE_TARGETS.limit(most), until=until)]

    def next_due_target(self) -> datetime | None:
        return self.connection.scalar(NEXT_TARGET)

    def waiting(self, consumers: Collection[int]) -> Iterable[Target]:
        return [Target(*row) for row in self._rows(_WAITING_OF, consumers=list(consumers))]

    def runs(self, consumers: Collection[int]) -> Iterable[Run]:
        return [KEPT_RUNS.read(row) for row in self._rows(_OPEN_RUNS, consumers=list(consumers))]

    def run_of(self, flow_run: UUID) -> Run | None:
        rows = self._rows(_RUN_OF, flow_run=flow_run) or self._rows(_OTHER_RUN, flow_run=flow_run)
        return KEPT_RUNS.read(rows[0]) if rows else None

    def policy(self, uri: str) -> PolicyRecord | None:
        rows = self._rows(_POLICY, uri=uri)
        return POLICY_RECORDS.read(rows[0]) if rows else None

    def policies(self) -> Iterable[tuple[str, PolicyRecord]]:
        return [(uri, POLICY_RECORDS.read(record)) for uri, *record in self._rows(POLICIES)]

    def due(self, until: datetime) -> Iterable[str]:
        return self._scalars(_DUE, until=until)

    def next_look(self) -> datetime | None:
        found = (self.connection.scalar(query) for query in NEXT_OF_POLICIES)
        return min((moment for moment in found if moment is not None), default=None)

    def changing(self, until: datetime) -> Iterable[str]:
        return self._scalars(_CHANGING, until=until)

    def touched(self, until: datetime) -> Iterable[tuple[str, datetime]]:
        return [(uri, at) for uri, at in self._rows(_TOUCHED, until=until)]

    def durations(self, consumer: int) -> Iterable[timedelta]:
        return [ended - asked for asked, ended in reversed(self._rows(_DURATIONS, consumer=consumer))]

    def _update(self, query: Select[Any], item: Item, **values: Any) -> ItemUpdate | None:
        rows = self._rows(query, **_place(item), **values)
        return ITEM_UPDATES.read(rows[0]) if rows else None

    def _in_pages(self, query: Select[Any], **values: Any) -> Iterator[ItemUpdate]:
        rows = self._rows(query.limit(PAGE), **values)
        while len(rows) == PAGE:
            page = [ITEM_UPDATES.read(row) for row in rows]
            # A confirmation has the place of its update, which may be on the next page.
            last = page[-1].sequence
            yield from (each for each in page if each.sequence > last)
            rows = self._rows(query.where(_V.sequence <= last).limit(PAGE), **values)
        yield from map(ITEM_UPDATES.read, rows)


def _place(item: Item) -> dict[str, str | None]:
    return {"uri": item.uri, "key": item.key}
