"""Store the runs of flows in the data graph that no decision asked for. Contract 8.6."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import bindparam, select, update

from assetflow.core.freshness.records import RunKind, Target
from assetflow.core.rules.keeping import begin_other_run, end_kept_run, retry_kept_run, start_kept_run
from assetflow.core.run_changes import RunEnd, RunGoingOn, is_news
from assetflow.core.values.consumers import Decision
from assetflow.ledger.sql.freshness_tables import KEPT_RUN
from assetflow.ledger.sql.tables import CONSUMER, DECISION
from assetflow.ledger.write.store import Store

_RUNS = select(KEPT_RUN.c.id, KEPT_RUN.c.consumer, KEPT_RUN.c.ended, KEPT_RUN.c.state_at)
_RUN = _RUNS.where(KEPT_RUN.c.id == bindparam("run"))
_RUN_OF_DECISION = _RUNS.join(DECISION, DECISION.c.id == KEPT_RUN.c.id).where(
    DECISION.c.flow_run_id == bindparam("run")
)
_HEARD = update(KEPT_RUN).where(KEPT_RUN.c.id == bindparam("run"))
_CONSUMER = select(CONSUMER.c.id).where(
    CONSUMER.c.deployment_id == bindparam("deployment"), CONSUMER.c.removed_at.is_(None)
)


class RunWriter:
    """Writes runs that a person or a timetable started. All methods raise `LedgerLocked` and `LedgerError`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def goes_on(self, run: RunGoingOn, now: datetime) -> list[Decision]:
        """Store that a run goes on, if what it makes is compared, and return the decisions of the pass.

        A second call changes nothing, whether or not the run has ended.
        """
        with self._store.reads() as connection:
            is_known = connection.execute(_RUN, {"run": run.run}).one_or_none() is not None
            consumer = connection.scalar(_CONSUMER, {"deployment": run.deployment})
        if is_known or consumer is None:
            return []
        kind: RunKind = "time" if run.by_time else "manual"
        with self._store.transaction(now) as unit:
            begin_other_run(unit.state, Target(consumer, run.partition_key), run.run, kind, min(run.asked, now))
            return self._store.keep_up_to_date(unit.state, [], now)

    def began(self, run: UUID, at: datetime, now: datetime) -> None:
        """Store when a run started, if it goes on and what it reads and makes is compared.

        The start that is stored first counts. Nothing is decided: while a run goes on, its target waits.

        Parameters:
            run: the flow run, of a decision or another.
        """
        with self._store.reads() as connection:
            row = connection.execute(_RUN_OF_DECISION, {"run": run}).one_or_none()
            row = row or connection.execute(_RUN, {"run": run}).one_or_none()
        if row is not None and row.ended is None:
            with self._store.transaction(now) as unit:
                start_kept_run(unit.state, row.consumer, row.id, at, now)

    def retried(self, run: UUID, state_at: datetime, now: datetime, at: datetime | None = None) -> bool:
        """Store that such a run goes on again, which had ended. Contract 4.7.

        Parameters:
            state_at: the time of its newest state, by Prefect's clock.
            at: when it left its final state; `None` if nobody knows: then as early as can be, at its end.

        Returns:
            False if there is no such run, it goes on, or its end is newer.
        """
        with self._store.transaction(now) as unit:
            row = unit.connection.execute(_RUN, {"run": run}).one_or_none()
            if row is None or row.ended is None or not is_news(state_at, row.state_at, row.ended):
                return False
            unit.connection.execute(_HEARD.values(state_at=state_at), {"run": run})
            retry_kept_run(unit.state, row.consumer, run, min(at or row.state_at, now))
            self._store.keep_up_to_date(unit.state, [], now)
            return True

    def ended(self, run: UUID, end: RunEnd, now: datetime, state_at: datetime | None = None) -> list[Decision] | None:
        """Store that such a run has ended, and return the decisions of the pass.

        Parameters:
            state_at: the time of its last state, by Prefect's clock. A run that ended before goes on again first.

        Returns:
            `None` if there is no such run, or it has ended with this state or a newer one.
        """
        with self._store.reads() as connection:
            row = connection.execute(_RUN, {"run": run}).one_or_none()
        if row is None or not is_news(state_at, row.state_at, row.ended):
            return None
        with self._store.transaction(now) as unit:
            unit.connection.execute(_HEARD.values(state_at=state_at), {"run": run})
            if row.ended is not None:
                retry_kept_run(unit.state, row.consumer, run, min(row.state_at, now))
            if end.began is not None:
                start_kept_run(unit.state, row.consumer, run, end.began, now)
            end_kept_run(unit.state, row.consumer, run, end.outcome, min(end.at or now, now))
            return self._store.keep_up_to_date(unit.state, [], now)
