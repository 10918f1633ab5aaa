"""What of a ledger can be pruned: what is old and no longer needed.

An event is needed while it is queued, while a decision that consumed it has no run that has ended, and while it is
the newest event of its asset or of an alias. Events of one recording go together: the ledger knows all of a recording
that is found again in Prefect, or nothing of it.

What is not an event is needed while it is the newest of its kind, and while something that is not over refers to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from itertools import chain
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Table,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    not_,
    or_,
    select,
)

from assetflow.core.freshness.state.source import REMEMBERED
from assetflow.core.grouping import grouped
from assetflow.core.rules.ended_runs import FAILED_OUTCOMES, EndedRun, Failing, is_made_good
from assetflow.core.values.words import IdStart
from assetflow.ledger.read import Topic, given, newest_first
from assetflow.ledger.read.queues import LAST
from assetflow.ledger.sql.bulk import UtcTime, in_values
from assetflow.ledger.sql.freshness_tables import BACKFILL, KEPT_RUN, POLICY_CHANGE, TARGET
from assetflow.ledger.sql.rows import QUEUED, Rows
from assetflow.ledger.sql.tables import (
    ASSET_NAME,
    CONSUMER,
    DECISION,
    EDGE,
    ENDED_RUN,
    EVENT,
    EVENT_ALIAS,
    FAILED_CHECKS,
    MISSED_DEADLINE,
    NO_KEY,
    RECEIPT,
    REFUSED,
)

BEFORE = bindparam("before", type_=UtcTime())


def is_old(row: FromClause, table: Table, at: str, number: str = "number") -> ColumnElement[bool]:
    """Return the condition that a row is old, for a table whose numbers grow with time.

    What is young is not read, however much it is: it begins at the first young row, found from the oldest one on.
    """
    young = table.alias()
    first = select(young.c[number]).where(young.c[at] >= BEFORE).order_by(young.c[number]).limit(1).scalar_subquery()
    return and_(row.c[number] < func.coalesce(first, LAST), row.c[at] < BEFORE)


@dataclass(frozen=True)
class Pruned:
    """How many rows were pruned, or can be."""

    events: int = 0
    receipts: int = 0
    decisions: int = 0
    refused: int = 0
    runs: int = 0
    deadlines: int = 0
    changes: int = 0
    ends: int = 0
    checks: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


class PruningReader(Topic):
    """Reads what can be pruned.

    Parameters of all methods:
        before: what was recorded and occurred before this time is old.
    """

    def count(self, before: datetime) -> Pruned:
        """Return how many rows are old and no longer needed."""
        counts = [self._scalar(query, {"before": before}) for query in _COUNTS]
        return Pruned(*counts)

    def needed_recordings(self, recordings: Iterable[UUID], before: datetime) -> set[UUID]:
        """Return those of these recordings that the ledger has and that are not old, or still needed."""
        return set(self._scalars(_NEEDED_RECORDINGS, {"ids": list(recordings), "before": before}))

    def open_decisions(self, decisions: Iterable[UUID], before: datetime) -> set[UUID]:
        """Return those of these decisions that are not old, or whose run has not ended."""
        return set(self._scalars(_OPEN_DECISIONS, {"ids": list(decisions), "before": before}))

    def finished_runs(self, flow_runs: Iterable[UUID], before: datetime) -> set[UUID]:
        """Return those of these flow runs that have ended and belong to an old decision."""
        return set(self._scalars(_FINISHED_RUNS, {"ids": list(flow_runs), "before": before}))


def is_over(decision: FromClause) -> ColumnElement[bool]:
    """Return the condition that a decision is old and its run has ended."""
    columns = decision.c
    return and_(columns.made < BEFORE, columns.ended.is_not(None), columns.flow_run_id.is_not(None))


def is_needed(event: FromClause) -> ColumnElement[bool]:
    """Return the condition that an event is still needed, or is not old."""
    columns = event.c
    receipt, decision = RECEIPT.alias(), DECISION.alias()
    holding = (
        select(receipt.c.sequence)
        .select_from(receipt.outerjoin(decision, decision.c.number == receipt.c.decision))
        .where(receipt.c.sequence == columns.sequence)
        .where(or_(receipt.c.status == QUEUED, and_(receipt.c.decision.is_not(None), not_(is_over(decision)))))
    )
    same_asset, own, same_alias = EVENT.alias(), EVENT_ALIAS.alias(), EVENT_ALIAS.alias()
    newest = select(func.max(same_asset.c.sequence)).where(same_asset.c.uri == columns.uri)
    newest_of_alias = select(func.max(same_alias.c.sequence)).where(same_alias.c.alias == own.c.alias)
    last_through_alias = select(own.c.alias).where(
        own.c.sequence == columns.sequence, own.c.sequence == newest_of_alias.scalar_subquery()
    )
    return or_(
        columns.recorded >= BEFORE,
        columns.occurred >= BEFORE,
        exists(holding),
        columns.sequence == newest.scalar_subquery(),
        exists(last_through_alias),
    )


_TOGETHER = EVENT.alias()
_NEEDED_TOGETHER = exists().where(_TOGETHER.c.recording == EVENT.c.recording, is_needed(_TOGETHER))
# The first two follow from the third, and rule out most events at little cost.
IS_PRUNABLE = and_(EVENT.c.recorded < BEFORE, EVENT.c.occurred < BEFORE, not_(_NEEDED_TOGETHER))
"""No event of the recording of this event is needed."""
GOES_WITH_ITS_EVENTS = and_(DECISION.c.target_key == NO_KEY, is_over(DECISION))
"""The decision goes when all of its events are pruned.

Decisions for a key stay: they say for which keys something has run, and how often a backfill ran it.
"""
IS_OVER_BACKFILL = and_(
    BACKFILL.c.made < BEFORE, or_(func.coalesce(BACKFILL.c.ended < BEFORE, False), BACKFILL.c.begun.is_(None))
)
"""The backfill ended before, or never began."""


def _is_outlived(table: Table, *of: str) -> ColumnElement[bool]:
    """Return the condition that a row is not the last one with its values in these columns."""
    later = table.alias()
    return exists().where(*(later.c[name] == table.c[name] for name in of), later.c.number > table.c.number)


def goes_without_events() -> ColumnElement[bool]:
    """Return the condition that a decision goes, if it has no events: times, deadlines and Eager flows make such ones.

    The newest of its consumer, key and kind stays, and the last one of a target. Those of backfills stay while their
    backfill does; those for a key say for ever how often a backfill ran it.
    """
    columns, outlived = DECISION.c, _is_outlived(DECISION, "consumer", "target_key", "kind")
    of_target = exists().where(
        TARGET.c.consumer == columns.consumer,
        TARGET.c.target_key == columns.target_key,
        TARGET.c.decision == columns.id,
    )
    going_on = exists().where(BACKFILL.c.made <= columns.made, not_(IS_OVER_BACKFILL))
    of_backfill = and_(columns.kind == "backfill", or_(columns.target_key != NO_KEY, going_on))
    return and_(is_old(DECISION, DECISION, "made"), is_over(DECISION), outlived, not_(of_target), not_(of_backfill))


def _is_over_run() -> ColumnElement[bool]:
    """Return the condition that a run of a flow in the data graph is not needed.

    The last completed ones of a flow stay: they say how long it is expected to take (8.14).
    """
    columns, other, decision = KEPT_RUN.c, KEPT_RUN.alias(), DECISION.alias()
    completed: ColumnElement[str] = literal_column("'completed'")
    oldest_remembered = (
        select(other.c.ended)
        .where(other.c.consumer == columns.consumer, other.c.state == completed, other.c.kind != "manual")
        .order_by(other.c.ended.desc())
        .limit(1)
        .offset(REMEMBERED - 1)
        .scalar_subquery()
    )
    remembered = and_(
        columns.state == completed,
        columns.kind != "manual",
        or_(oldest_remembered.is_(None), columns.ended >= oldest_remembered),
    )
    goes_on = exists().where(decision.c.id == columns.id, not_(is_over(decision)))
    return and_(columns.ended < BEFORE, not_(remembered), not_(goes_on))


def _is_reported(table: Table, of: str) -> ColumnElement[bool]:
    """Return the condition that a row is old, Prefect has its event, and a later row has its value in a column."""
    return and_(is_old(table, table, "at"), table.c.stored.is_not(None), _is_outlived(table, of))


WITHOUT_EVENTS: Mapping[str, tuple[Table, ColumnElement[bool]]] = {
    "refused": (REFUSED, is_old(REFUSED, REFUSED, "at")),
    "runs": (KEPT_RUN, _is_over_run()),
    "deadlines": (MISSED_DEADLINE, _is_reported(MISSED_DEADLINE, "consumer")),
    "changes": (POLICY_CHANGE, _is_reported(POLICY_CHANGE, "uri")),
    "ends": (
        ENDED_RUN,
        and_(
            ENDED_RUN.c.ended < BEFORE,
            ENDED_RUN.c.stored.is_not(None),
            _is_outlived(ENDED_RUN, "deployment_id", "target_key"),
        ),
    ),
    "checks": (FAILED_CHECKS, and_(FAILED_CHECKS.c.at < BEFORE, FAILED_CHECKS.c.stored.is_not(None))),
}
"""The tables whose rows have no events, and the condition that a row is over, by the fields of `Pruned`.

What is told to Prefect stays until its log has it. The last missed deadline of a consumer stays, as do the last change
of a policy's state, and the last end of a run of a flow and key.
"""


def _counting(query: Any) -> Any:
    return select(func.count()).select_from(query.subquery())


def _counts() -> list[Any]:
    receipts = select(RECEIPT.c.sequence).join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence)
    consumed = select(RECEIPT.c.sequence).where(RECEIPT.c.decision == DECISION.c.number)
    kept = consumed.join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence).where(not_(IS_PRUNABLE))
    goes = or_(and_(GOES_WITH_ITS_EVENTS, exists(consumed)), goes_without_events())
    decisions = select(DECISION.c.number).where(goes, not_(exists(kept)))
    return [
        _counting(select(EVENT.c.sequence).where(IS_PRUNABLE)),
        _counting(receipts.where(IS_PRUNABLE)),
        _counting(decisions),
        *(_counting(select(*table.primary_key).where(is_over)) for table, is_over in WITHOUT_EVENTS.values()),
    ]


_COUNTS = _counts()
_NEEDED_RECORDINGS = select(EVENT.c.recording).where(in_values(EVENT.c.recording, "ids"), is_needed(EVENT))
_OPEN_DECISIONS = select(DECISION.c.id).where(in_values(DECISION.c.id, "ids"), not_(is_over(DECISION)))
_FINISHED_RUNS = select(DECISION.c.flow_run_id).where(in_values(DECISION.c.flow_run_id, "ids"), is_over(DECISION))


ENDED_RUNS = Rows(EndedRun, ENDED_RUN)
_ALL = select(*ENDED_RUNS.columns)
_R = ENDED_RUN.c
_HAS_FAILED = _R.outcome.in_(FAILED_OUTCOMES)
_MAKES = EDGE.outerjoin(ASSET_NAME, (ASSET_NAME.c.name == EDGE.c.value) & (EDGE.c.kind == "name"))
_MADE = func.coalesce(ASSET_NAME.c.uri, EDGE.c.value)
_OUTLETS = (
    select(EDGE.c.deployment_id, _MADE)
    .select_from(_MAKES)
    .where(EDGE.c.direction == "produces", EDGE.c.kind.in_(("uri", "name")))
)
_OUTLETS_OF = _OUTLETS.where(in_values(EDGE.c.deployment_id, "deployments"))
_DECLARED_OUTLETS = (
    select(_MADE)
    .select_from(_MAKES)
    .where(EDGE.c.direction == "produces", EDGE.c.kind.in_(("uri", "name")), ~EDGE.c.learned)
    .where(EDGE.c.deployment_id == bindparam("deployment"))
)
_UPDATED_BY = select(EVENT.c.uri).where(EVENT.c.flow_run_id == bindparam("run"))
_LIVE = or_(
    select(CONSUMER.c.id).where(CONSUMER.c.deployment_id == _R.deployment_id, CONSUMER.c.removed_at.is_(None)).exists(),
    select(EDGE.c.value).where(EDGE.c.deployment_id == _R.deployment_id, EDGE.c.direction == "produces").exists(),
)
_LATEST = (
    select(_R.deployment_id, _R.target_key, func.max(_R.ended).label("ended"))
    .where(_HAS_FAILED, _R.repeated.is_(False), _LIVE)
    .group_by(_R.deployment_id, _R.target_key)
    .subquery()
)
_GOOD, _OTHER = ENDED_RUN.alias("good"), ENDED_RUN.alias("other")
# Text order is time order.
_NO_TIME: ColumnElement[Any] = literal_column("''")


def _of_target(run: Any) -> tuple[ColumnElement[bool], ...]:
    return run.c.deployment_id == _LATEST.c.deployment_id, run.c.target_key == _LATEST.c.target_key


_COMPLETED = (
    select(func.max(_GOOD.c.ended)).where(*_of_target(_GOOD), _GOOD.c.outcome == "completed").correlate(_LATEST)
).scalar_subquery()
_SINCE_GOOD = (
    *_of_target(_OTHER),
    _OTHER.c.outcome.in_(FAILED_OUTCOMES),
    _OTHER.c.ended > func.coalesce(_COMPLETED, _NO_TIME),
)
_TIMES = select(func.count()).where(*_SINCE_GOOD).correlate(_LATEST).scalar_subquery()
_SINCE = select(func.min(_OTHER.c.ended)).where(*_SINCE_GOOD).correlate(_LATEST).scalar_subquery()
_FAILING = (
    select(*ENDED_RUNS.columns, _COMPLETED, _TIMES, _SINCE)
    .join(
        _LATEST,
        (_LATEST.c.deployment_id == _R.deployment_id)
        & (_LATEST.c.target_key == _R.target_key)
        & (_LATEST.c.ended == _R.ended),
    )
    .where(_HAS_FAILED, _LATEST.c.ended > func.coalesce(_COMPLETED, _NO_TIME))
    .order_by(_R.number.desc())
)
_UPDATED = (
    select(EVENT.c.occurred)
    .where(EVENT.c.uri == bindparam("uri"))
    .where(or_(EVENT.c.flow_run_id.is_(None), EVENT.c.flow_run_id != bindparam("run")))
    .order_by(EVENT.c.sequence.desc())
    .limit(1)
)
_UPDATED_KEY = _UPDATED.where(EVENT.c.partition_key == bindparam("key"))
_DAY = func.substr(_R.ended, 1, 10)
_DAYS = select(_DAY, func.count(), func.sum(case((_HAS_FAILED, 1), else_=0))).group_by(_DAY).order_by(_DAY)
_LAST_OF_DEPLOYMENTS = _ALL.where(
    _R.number.in_(
        select(func.max(_OTHER.c.number))
        .where(in_values(_OTHER.c.deployment_id, "deployments"))
        .group_by(_OTHER.c.deployment_id)
    )
)


_NEWEST = func.row_number().over(partition_by=_R.deployment_id, order_by=_R.number.desc())
_NUMBERED = (select(_R.number, _NEWEST.label("place")).where(in_values(_R.deployment_id, "deployments"))).subquery()
_LAST_RUNS = _ALL.where(_R.number.in_(select(_NUMBERED.c.number).where(_NUMBERED.c.place <= bindparam("most"))))


@dataclass(frozen=True)
class RunsOfDay:
    """How many runs ended on a day (UTC), and how many of them failed or crashed."""

    day: str
    ended: int
    failed: int


class EndedRunReader(Topic):
    """Reads runs that have ended."""

    def get(self, flow_run_id: UUID) -> EndedRun | None:
        """Return a run, if it has ended."""
        return next(iter(self._read(_ALL.where(_R.flow_run_id == flow_run_id))), None)

    def beginning(self, start: IdStart, most: int) -> list[UUID]:
        """Return the ids of runs that begin so, at most `most`; also of runs that go on, if a decision started them."""
        found = [
            self._scalars(select(column).where(column.between(start.first, start.last)).limit(most))
            for column in (_R.flow_run_id, DECISION.c.flow_run_id)
        ]
        return list(dict.fromkeys(chain(*found)))[:most]

    def find(
        self,
        *,
        failed: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
        flow: str | None = None,
        target_key: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[EndedRun]:
        """Return runs, newest first. To page on, give the number of the last one as `before`.

        Parameters:
            failed: only runs that failed or crashed.
            since, until: only runs that ended at this time or later; before this time.
            flow: only of this flow and deployment, `flow/deployment`.
        """
        query = _ALL.where(*given((_R.flow, flow), (_R.target_key, target_key)), *_between(since, until))
        if failed:
            query = query.where(_HAS_FAILED)
        return self._read(newest_first(query, _R.number, before, limit))

    def days(self, since: datetime, flow: str | None = None) -> list[RunsOfDay]:
        """Return how many runs ended on each day from a moment on, days without a run left out."""
        return [RunsOfDay(*row) for row in self._rows(_DAYS.where(*_between(since, None), *given((_R.flow, flow))))]

    def failing(self, flow: str | None = None) -> list[Failing]:
        """Return what failed and was not made good, the latest failure first.

        Parameters:
            flow: only of this flow and deployment, `flow/deployment`.
        """
        query = _FAILING.where(*given((_R.flow, flow)))
        with self._connect() as connection:
            rows = [(ENDED_RUNS.read(row), *row[-3:]) for row in connection.execute(query).all()]
            outlets = _outlets(connection, {run.deployment_id for run, *_ in rows})
            return [
                Failing(run, times, since)
                for run, completed, times, since in rows
                if not is_made_good(run, completed, _updates(connection, run, outlets.get(run.deployment_id, ())))
            ]

    def is_made_good(self, run: EndedRun) -> bool:
        """Return True if a run that failed was made good since."""
        completed = select(func.max(_R.ended)).where(
            _R.deployment_id == run.deployment_id,
            _R.target_key == (run.target_key or NO_KEY),
            _R.outcome == "completed",
        )
        with self._connect() as connection:
            outlets = _outlets(connection, {run.deployment_id}).get(run.deployment_id, ())
            return is_made_good(run, connection.scalar(completed), _updates(connection, run, outlets))

    def failed_makers(self, uris: Collection[str]) -> list[EndedRun]:
        """Return the last run of each maker of some assets that failed, and that nothing has made good."""
        found = {run.flow_run_id: run for runs in self.last_of_makers(uris).values() for run in runs if run.has_failed}
        return [run for run in found.values() if not self.is_made_good(run)]

    def last_of_makers(self, uris: Collection[str]) -> Mapping[str, Sequence[EndedRun]]:
        """Return the last ended run of each maker of some assets, by URI."""
        with self._connect() as connection:
            makers = connection.execute(_OUTLETS.where(in_values(_MADE, "uris")), {"uris": list(uris)}).all()
            deployments = list({deployment for deployment, _ in makers})
            rows = connection.execute(_LAST_OF_DEPLOYMENTS, {"deployments": deployments}).all()
        last = {run.deployment_id: run for run in map(ENDED_RUNS.read, rows)}
        return {
            uri: [last[deployment] for deployment, made in makers if made == uri and deployment in last] for uri in uris
        }

    def last_of(self, deployments: Collection[UUID], most: int) -> Mapping[UUID, Sequence[EndedRun]]:
        """Return the last ended runs of each of some deployments, at most `most` of each, oldest first."""
        rows = self._rows(_LAST_RUNS.order_by(_R.number), {"deployments": list(deployments), "most": most})
        return grouped((run.deployment_id, run) for run in map(ENDED_RUNS.read, rows))

    def _read(self, query: Any) -> list[EndedRun]:
        return list(map(ENDED_RUNS.read, self._rows(query)))


def _between(since: datetime | None, until: datetime | None) -> list[Any]:
    return [*([] if since is None else [_R.ended >= since]), *([] if until is None else [_R.ended < until])]


def _outlets(connection: Connection, deployments: Collection[UUID]) -> Mapping[UUID, list[str]]:
    """Return the URIs of the assets that each of some deployments makes."""
    return grouped(connection.execute(_OUTLETS_OF, {"deployments": list(deployments)}).tuples())


def not_made(connection: Connection, run: EndedRun) -> list[str]:
    """Return the URIs of the assets that the deployment of a run declares to make and that the run did not update."""
    declared = connection.scalars(_DECLARED_OUTLETS, {"deployment": run.deployment_id})
    updated = set(connection.scalars(_UPDATED_BY, {"run": run.flow_run_id}))
    return [uri for uri in declared if uri not in updated]


def _updates(connection: Connection, run: EndedRun, uris: Collection[str]) -> Mapping[str, datetime | None]:
    """Return when each of some assets was updated last by another run, for the key of this one."""
    key, query = {}, _UPDATED
    if run.target_key is not None:
        key, query = {"key": run.target_key}, _UPDATED_KEY
    return {uri: connection.scalar(query, {"uri": uri, "run": run.flow_run_id, **key}) for uri in uris}
