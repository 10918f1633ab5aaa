"""Flow runs that have ended, and which failures nothing has made good. Contract 4.8, 4.9."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, bindparam, case, func, literal_column, or_, select

from assetflow.core.rules.ended_runs import FAILED_OUTCOMES, EndedRun, Failing, is_made_good
from assetflow.core.values.words import IdStart
from assetflow.ledger.read import Topic, given, newest_first
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.rows import Rows
from assetflow.ledger.sql.tables import ASSET_NAME, CONSUMER, DECISION, EDGE, ENDED_RUN, EVENT, NO_KEY

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

    def _read(self, query: Any) -> list[EndedRun]:
        return list(map(ENDED_RUNS.read, self._rows(query)))


def _between(since: datetime | None, until: datetime | None) -> list[Any]:
    return [*([] if since is None else [_R.ended >= since]), *([] if until is None else [_R.ended < until])]


def _outlets(connection: Connection, deployments: Collection[UUID]) -> Mapping[UUID, list[str]]:
    """Return the URIs of the assets that each of some deployments makes."""
    found: dict[UUID, list[str]] = {}
    for deployment, uri in connection.execute(_OUTLETS_OF, {"deployments": list(deployments)}):
        found.setdefault(deployment, []).append(uri)
    return found


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
