"""Run backfills (contract 8.18), store the final states of runs (4.8), and say what is still to be told to Prefect."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Connection, Update, and_, bindparam, delete, exists, func, or_, select, update

from assetflow.core.freshness.backfilling import go_on, resume_backfill, stop_backfill
from assetflow.core.freshness.records import Backfill
from assetflow.core.graph.lineage import flows_after
from assetflow.core.grouping import grouped
from assetflow.core.rules.ended_runs import EndedRun, FailedForGood
from assetflow.core.values.announcements import FailedChecks, Materialized
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent
from assetflow.core.wire.fields import time_or_none
from assetflow.crash_points import reach
from assetflow.errors import Conflict, UnknownBackfill
from assetflow.ledger.read.backfills import Planned
from assetflow.ledger.read.events import FAILED
from assetflow.ledger.read.graph import LineageReader
from assetflow.ledger.read.pruning import ENDED_RUNS, not_made
from assetflow.ledger.sql.bulk import Bulk, in_values, insert_rows, upsert_rows
from assetflow.ledger.sql.freshness_tables import BACKFILL, BACKFILL_EDGE, BACKFILL_TARGET, KEPT_RUN, TARGET
from assetflow.ledger.sql.rows import BACKFILL_ITEMS, BACKFILLS, EVENT_COLUMNS, event_from_row
from assetflow.ledger.sql.tables import (
    ASSET_NAME,
    CONSUMER,
    CURSOR,
    DECISION,
    EDGE,
    ENDED_RUN,
    EVENT,
    FAILED_CHECKS,
    LEDGER,
)
from assetflow.ledger.write.store import Operations, Store, UnitOfWork

# The number of rows in one transaction, for which other writers wait.
AT_ONCE = 2_000

_ADD_BACKFILL = insert_rows(*BACKFILLS.columns)
_ADD_STEPS = insert_rows(BACKFILL_TARGET.c.backfill, *BACKFILL_ITEMS.columns)
_ADD_EDGES = insert_rows(*BACKFILL_EDGE.c)


class BackfillWriter(Operations):
    """Writes backfills."""

    def begin(self, wanted: Backfill, planned: Planned, now: datetime) -> tuple[Backfill, list[Decision]]:
        """Write a backfill in as many transactions as it needs, and let it begin with the last one.

        If the process dies before the last one, nothing of it has run, and nothing will.

        Parameters:
            wanted: the backfill; it gets the next free number.

        Returns:
            The backfill with its number, and its first decisions.
        """
        steps, edges = planned.steps, planned.edges
        with self._store.writes() as connection:
            backfill = _allocate(connection, replace(wanted, todo=len(steps)))
        number = backfill.number
        self._write(_ADD_STEPS, [(number, *BACKFILL_ITEMS.row(step)) for step in steps])
        self._write(_ADD_EDGES, [(number, above, below) for above, below in edges])
        reach("between-backfill-and-begin")
        with self._store.transaction(now) as unit:
            _prepare(unit)
            go_on(unit.state.freshness, backfill, planned.names, now)
            return backfill, self._store.keep_up_to_date(unit.state, [], now)

    def stop(self, number: int, now: datetime) -> list[Decision]:
        """Ask for nothing more of a backfill. Its runs continue; its other targets are free again.

        Returns:
            The decisions for targets that it held back.

        Raises:
            UnknownBackfill: no backfill has this number.
            Conflict: it has ended, or it never began.
        """
        with self._store.transaction(now) as unit:
            backfill, begun = _find(unit.connection, number)
            if not begun or backfill.ended is not None:
                raise Conflict(f"backfill {number} does not run", fix="`assetflow backfill ls` lists those that do")
            _prepare(unit)
            if backfill.stopped is None:
                stop_backfill(unit.state.freshness, backfill, now)
            return self._store.keep_up_to_date(unit.state, [], now)

    def resume(self, number: int, now: datetime) -> list[Decision]:
        """Run what is left of a backfill, and again what failed, with what that took off.

        Returns:
            The next decisions.

        Raises:
            UnknownBackfill: no backfill has this number.
            Conflict: it never began, or nothing of it is left.
        """
        with self._store.transaction(now) as unit:
            backfill, begun = _find(unit.connection, number)
            if not begun:
                raise Conflict(
                    f"backfill {number} never began: its command was ended while it wrote the targets",
                    fix="Give the command again",
                )
            if backfill.ended is not None and not (backfill.failed or backfill.removed):
                raise Conflict(f"backfill {number} is completed", fix="Begin another one")
            _prepare(unit)
            resume_backfill(unit.state.freshness, backfill, now)
            return self._store.keep_up_to_date(unit.state, [], now)

    def _write(self, adding: Bulk, rows: Sequence[tuple[Any, ...]]) -> None:
        for first in range(0, len(rows), AT_ONCE):
            with self._store.writes() as connection:
                adding.run(connection, rows[first : first + AT_ONCE])


def _prepare(unit: UnitOfWork) -> None:
    # A backfill goes through the flows, also if nothing is compared.
    unit.state.freshness.admit_all()
    unit.forget_elsewhere()


def _allocate(connection: Connection, wanted: Backfill) -> Backfill:
    # On Postgres, writers wait for each other here.
    connection.execute(select(LEDGER.c.number).with_for_update())
    last = connection.scalar(select(func.max(BACKFILL.c.number))) or 0
    backfill = replace(wanted, number=last + 1)
    _ADD_BACKFILL.run(connection, [BACKFILLS.row(backfill)])
    return backfill


def _find(connection: Connection, number: int) -> tuple[Backfill, bool]:
    """Return a backfill, and whether it has begun."""
    query = select(*BACKFILLS.columns, BACKFILL.c.begun).where(BACKFILL.c.number == number)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise UnknownBackfill.numbered(number)
    return BACKFILLS.read(row), row[-1] is not None


# The database counts the runs.
_ADD = insert_rows(*ENDED_RUNS.columns[1:], ENDED_RUN.c.stored)
_KNOWN = select(ENDED_RUN.c.flow_run_id, ENDED_RUN.c.state_at).where(in_values(ENDED_RUN.c.flow_run_id, "runs"))
_DROP = delete(ENDED_RUN).where(in_values(ENDED_RUN.c.flow_run_id, "runs"))
# A deployment that is a consumer and declares outlets has both names, which are one.
_FLOWS = (
    select(CONSUMER.c.deployment_id, CONSUMER.c.name)
    .where(CONSUMER.c.removed_at.is_(None), in_values(CONSUMER.c.deployment_id, "deployments"))
    .union(
        select(EDGE.c.deployment_id, EDGE.c.name).where(
            EDGE.c.direction == "produces", in_values(EDGE.c.deployment_id, "deployments")
        )
    )
)
_GOES_ON = or_(
    exists().where(DECISION.c.id == ENDED_RUN.c.decision, DECISION.c.ended.is_(None)),
    exists().where(KEPT_RUN.c.id == ENDED_RUN.c.flow_run_id, KEPT_RUN.c.ended.is_(None)),
)
_RETRY = (
    select(TARGET.c.retry_at)
    .join(CONSUMER, CONSUMER.c.id == TARGET.c.consumer)
    .where(CONSUMER.c.deployment_id == ENDED_RUN.c.deployment_id, CONSUMER.c.removed_at.is_(None))
    .where(and_(TARGET.c.target_key == ENDED_RUN.c.target_key, TARGET.c.retry_at > ENDED_RUN.c.ended))
    .exists()
)
_TO_TELL = (
    select(*ENDED_RUNS.columns, _RETRY, ENDED_RUN.c.posted)
    .where(ENDED_RUN.c.stored.is_(None), ~_GOES_ON)
    .order_by(ENDED_RUN.c.number)
)


_CHECKS_TO_TELL = select(*FAILED.columns).where(FAILED_CHECKS.c.stored.is_(None)).order_by(FAILED_CHECKS.c.number)


class ReportWriter(Operations):
    """Writes which rows of a table were reported to Prefect."""

    _of_numbers: Update

    def posted(self, numbers: Collection[int], now: datetime) -> None:
        """Store that the events of these rows are sent to Prefect now."""
        self._set(numbers, posted=now)

    def stored(self, numbers: Collection[int], now: datetime) -> None:
        """Store that Prefect's log has the events of these rows."""
        self._set(numbers, stored=now)

    def _set(self, numbers: Collection[int], **values: object) -> None:
        with self._store.writes() as connection:
            connection.execute(self._of_numbers.values(values), {"numbers": numbers})


class EndedRunWriter(ReportWriter):
    """Writes final states."""

    _of_numbers = update(ENDED_RUN).where(in_values(ENDED_RUN.c.number, "numbers"))

    def add(self, runs: Sequence[EndedRun], now: datetime) -> int:
        """Store the final states of runs of consumers and makers, in their order, and return how many are new.

        The newest state of a run counts. Runs of other deployments are left out.

        Parameters:
            runs: without their numbers, and without the names of their flows.
        """
        given = {"deployments": list({each.deployment_id for each in runs})}
        with self._store.writes() as connection:
            flows: Mapping[UUID, str] = dict(connection.execute(_FLOWS, given).tuples().all())
            wanted = {each.flow_run_id: each for each in runs if each.deployment_id in flows}
            known: Mapping[UUID, datetime] = dict(connection.execute(_KNOWN, {"runs": list(wanted)}).tuples().all())
            new = [each for run, each in wanted.items() if run not in known or known[run] < _state_at(each)]
            connection.execute(_DROP, {"runs": [each.flow_run_id for each in new]})
            named = [replace(each, flow=flows[each.deployment_id]) for each in new]
            # Of one that did not fail, there is nothing to tell.
            rows = [(*ENDED_RUNS.row(each)[1:], None if each.has_failed else now) for each in named]
            _ADD.run(connection, rows)
        return len(new)

    def go_on(self, states: Mapping[UUID, datetime]) -> None:
        """Forget the final states of runs that go on again, because somebody retried them.

        Parameters:
            states: the time of the newest state of each run, by Prefect's clock.
        """
        with self._store.reads() as connection:
            again = _older(connection, states)
        if again:
            with self._store.writes() as connection:
                connection.execute(_DROP, {"runs": _older(connection, states)})

    def to_tell(self, limit: int) -> list[FailedForGood]:
        """Return the runs that failed for good and that Prefect's log was not seen to have, oldest first.

        A run whose end has led to no pass yet is left out: a retry of 8.7 may follow it.
        """
        with self._store.reads() as connection:
            rows = connection.execute(_TO_TELL.limit(limit)).all()
        repeated = [row[0] for row in rows if row[-2]]
        if repeated:
            self._set(repeated, repeated=True, stored=ENDED_RUN.c.ended)
        edges_of = LineageReader(self._store.reads).edges_of
        runs = [(ENDED_RUNS.read(row), row[-1]) for row in rows if not row[-2]]
        with self._store.reads() as connection:
            return [
                FailedForGood(run, flows_after(edges_of, [run.flow])[0], posted, not_made(connection, run))
                for run, posted in runs
            ]


class FailedChecksWriter(ReportWriter):
    """Writes which failed checks Prefect knows of. Contract 12.6."""

    _of_numbers = update(FAILED_CHECKS).where(in_values(FAILED_CHECKS.c.number, "numbers"))

    def to_tell(self, limit: int) -> list[FailedChecks]:
        """Return what failed a check and Prefect's log was not seen to have, oldest first."""
        with self._store.reads() as connection:
            return list(map(FAILED.read, connection.execute(_CHECKS_TO_TELL.limit(limit))))


def _older(connection: Connection, states: Mapping[UUID, datetime]) -> list[UUID]:
    """Return those of the runs whose stored final state is older than their newest state."""
    return [run for run, at in connection.execute(_KNOWN, {"runs": list(states)}) if at < states[run]]


def _state_at(run: EndedRun) -> datetime:
    assert run.state_at is not None, "what is read from Prefect has the time of its state"
    return run.state_at


_NAME = "native events"
# What Prefect did not take in so long, it never will.
GIVEN_UP = timedelta(days=1)
_SET_CURSOR = upsert_rows(*CURSOR.c)
_NEWEST = select(EVENT.c.recorded).order_by(EVENT.c.sequence.desc()).limit(1)
_LAST = select(func.max(EVENT.c.sequence))
_AFTER = (
    select(*EVENT_COLUMNS)
    .where(EVENT.c.sequence > bindparam("after"), EVENT.c.recorded > bindparam("since"))
    .where(EVENT.c.task_run_id.is_not(None))
    .order_by(EVENT.c.sequence)
)
_READ = (
    select(EDGE.c.deployment_id, func.coalesce(ASSET_NAME.c.uri, EDGE.c.value))
    .outerjoin(ASSET_NAME, (ASSET_NAME.c.name == EDGE.c.value) & (EDGE.c.kind == "name"))
    .where(EDGE.c.direction == "reads", EDGE.c.kind.in_(("uri", "name")), ~EDGE.c.learned)
    .where(in_values(EDGE.c.deployment_id, "deployments"))
    .order_by(EDGE.c.value)
)


class MaterializedWriter(Operations):
    """Reads which updates are still to be told to Prefect as its own asset events, and stores what its log has.

    Updates are told in the order of the ledger, so that two places in it say what is done, and no update has a mark.
    Contract 2.10.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._open: dict[int, Materialized] = {}
        self._read_to: int | None = None
        # Up to this place, an earlier process has posted, the last time at this moment.
        self._posted_to = 0
        self._posted_at: datetime | None = None

    def to_tell(self, limit: int) -> list[Materialized]:
        """Return the updates by tasks that Prefect's log was not seen to have, oldest first."""
        with self._store.reads() as connection:
            if self._read_to is None:
                self._begin(connection)
            newest = connection.scalar(_NEWEST)
            if newest is None:
                return []
            since = newest - GIVEN_UP
            self._open = {number: each for number, each in self._open.items() if each.recorded > since}
            while len(self._open) < limit and self._read_more(connection, since, limit - len(self._open)):
                pass
        return list(self._open.values())[:limit]

    def posted(self, numbers: Collection[int], now: datetime) -> None:
        """Store that the events of these updates are sent to Prefect now."""
        self._open |= {each: replace(self._open[each], posted=now) for each in numbers}
        self._posted_to, self._posted_at = max([self._posted_to, *numbers]), now
        self._save()

    def stored(self, numbers: Collection[int], now: datetime) -> None:  # noqa: ARG002 (an outbox takes it)
        """Store that Prefect's log has the events of these updates."""
        for each in numbers:
            del self._open[each]
        self._save()

    def _begin(self, connection: Connection) -> None:
        kept = connection.scalar(select(CURSOR.c.value).where(CURSOR.c.name == _NAME))
        if kept is None:
            # A rebuilt ledger: an earlier one may have posted them all.
            self._read_to, self._posted_to = 0, connection.scalar(_LAST) or 0
            self._posted_at = datetime.fromtimestamp(0, UTC)
        else:
            told = cast("Mapping[str, Any]", kept)
            self._read_to, self._posted_to = told["stored"], told["posted"]
            self._posted_at = time_or_none(told["at"])

    def _read_more(self, connection: Connection, since: datetime, limit: int) -> bool:
        """Read the next updates, and return True if there may be more."""
        given = {"after": self._read_to, "since": since}
        events = [event_from_row(row) for row in connection.execute(_AFTER.limit(limit), given)]
        told = [event for event in events if event.origin.kind == "task"]
        reads = _reads(connection, told)
        for event in told:
            number = cast("int", event.sequence)
            posted = self._posted_at if number <= self._posted_to else None
            run = event.source_flow_run
            inputs = reads.get(run.deployment_id, ()) if run is not None and run.deployment_id else ()
            self._open[number] = Materialized(number, event, tuple(inputs), posted)
        if events:
            self._read_to = events[-1].sequence
        return len(events) == limit

    def _save(self) -> None:
        stored = min(self._open) - 1 if self._open else self._read_to
        at = None if self._posted_at is None else self._posted_at.isoformat()
        with self._store.writes() as connection:
            _SET_CURSOR.run(connection, [(_NAME, {"stored": stored, "posted": self._posted_to, "at": at})])


def _reads(connection: Connection, events: Sequence[AssetEvent]) -> Mapping[UUID, list[str]]:
    """Return the URIs that the deployments of some events declare to read."""
    runs = [event.source_flow_run for event in events]
    deployments = {run.deployment_id for run in runs if run is not None and run.deployment_id is not None}
    return grouped(connection.execute(_READ, {"deployments": list(deployments)}).tuples()) if deployments else {}
