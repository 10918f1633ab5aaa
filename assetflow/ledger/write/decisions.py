"""Store what becomes of decisions: launched, given up, replayed, ended; and make those of a backfill."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, Update, bindparam, func, literal_column, select, update

from assetflow.core.freshness.records import RunState
from assetflow.core.rules import clock, registry
from assetflow.core.rules.ended_runs import RunEnd, RunGoingOn, is_news
from assetflow.core.rules.fold import Touched
from assetflow.core.rules.keeping import end_kept_run, hear_going_on, retry_kept_run, start_kept_run
from assetflow.core.rules.registry import NamedEvents, touch_ended
from assetflow.core.rules.timers import backfill_decisions
from assetflow.core.values.consumers import Decision
from assetflow.errors import UnknownEvent
from assetflow.ledger.read import given
from assetflow.ledger.read.decisions import known_decisions
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.freshness_tables import KEPT_RUN
from assetflow.ledger.sql.rows import QUEUED
from assetflow.ledger.sql.tables import DECISION, EVENT, PENDING, RECEIPT
from assetflow.ledger.write.consumers import find_consumer
from assetflow.ledger.write.store import Operations, UnitOfWork

_BACKFILL: ColumnElement[str] = literal_column("'backfill'")
_RUNS = select(
    *(DECISION.c[name] for name in ("id", "consumer", "target_key", "ended", "state_at", "earlier_ends")),
)
_NOTED = update(DECISION).where(in_values(DECISION.c.id, "ids"))


class DecisionWriter(Operations):
    """Writes decisions."""

    def launched(self, decision_id: UUID, flow_run_id: UUID, now: datetime) -> None:
        """Store the run of a decision. A second call changes nothing.

        Raises:
            UnknownEvent: no decision has this id.
        """
        waiting = _update(decision_id).where(DECISION.c.status != "launched", DECISION.c.status != "ended")
        values = {"status": "launched", "flow_run_id": flow_run_id, "launched": now, "ended": None, "error": ""}
        with self._store.writes() as connection:
            _queue_of(connection, decision_id)
            connection.execute(waiting.values(values))

    def noted(self, decisions: Collection[UUID], now: datetime) -> None:
        """Store that the runs of these decisions have their notes."""
        with self._store.writes() as connection:
            connection.execute(_NOTED.values(noted=now), {"ids": decisions})

    def attempt_failed(self, decision_id: UUID, error: str) -> None:
        """Count a failed attempt to start the run of a decision, and store its error."""
        with self._store.writes() as connection:
            connection.execute(_update(decision_id).values(attempts=DECISION.c.attempts + 1, error=error))

    def undeliverable(self, decision_id: UUID, reason: str, now: datetime, *, late: bool = False) -> list[Decision]:
        """Give a decision up: it will have no run. A pass follows, as at the end of a run. Contract 4.6, 4.7.

        Parameters:
            late: as in `ended`.

        Returns:
            The decisions of the pass.

        Raises:
            UnknownEvent: no decision has this id.
        """
        with self._store.transaction(now) as unit:
            consumer, key = _queue_of(unit.connection, decision_id)
            self._settle(unit, consumer, now, late)
            _give_up(unit.connection, decision_id, reason, now)
            return self._pass_over_ended(unit, decision_id, consumer, key, "failed", now, late)

    def give_up(self, decision_id: UUID, *, by: str, why: str, now: datetime, late: bool = False) -> list[Decision]:
        """Give up a decision that waits for its run, as an operator. A pass follows, as after `undeliverable`.

        Parameters:
            by, why: who gives it up, and the reason; the decision keeps both.
            late: as in `ended`.

        Raises:
            UnknownEvent: no decision has this id, or it does not wait for its run.
        """
        with self._store.transaction(now) as unit:
            consumer, key = _queue_of(unit.connection, decision_id)
            self._settle(unit, consumer, now, late)
            if not _give_up(unit.connection, decision_id, f"given up by {by}: {why}", now):
                raise UnknownEvent(
                    f"decision {decision_id} does not wait for its run",
                    fix="`assetflow decisions ls --waiting` lists those that do",
                )
            return self._pass_over_ended(unit, decision_id, consumer, key, "failed", now, late)

    def replay(self, decision_id: UUID, now: datetime) -> None:
        """Let an undeliverable decision wait for its run again. Contract 4.6, 4.7.

        Raises:
            UnknownEvent: no undeliverable decision has this id.
        """
        given_up = _RUNS.where(DECISION.c.id == decision_id, DECISION.c.status == "undeliverable")
        with self._store.transaction(now) as unit:
            row = unit.connection.execute(given_up).one_or_none()
            if row is None:
                raise UnknownEvent(
                    f"there is no undeliverable decision {decision_id}",
                    fix="`assetflow decisions ls` lists the decisions",
                )
            values = {"status": "waiting", "error": "", "attempts": 0, "ended": None, **_earlier_ends(row, now)}
            unit.connection.execute(_update(decision_id).values(values))
            retry_kept_run(unit.state, row.consumer, decision_id, now)
            self._store.keep_up_to_date(unit.state, [], now)

    def retried(
        self, flow_run_id: UUID, state_at: datetime, now: datetime, *, late: bool = False, at: datetime | None = None
    ) -> bool:
        """Store that the ended run of a decision runs again. Contract 4.7.

        Parameters:
            state_at: the time of its newest state, by Prefect's clock.
            late: as in `ended`.
            at: when it left its final state; `None` if nobody knows: then as early as can be, at its end.

        Returns:
            False if no decision has this run, it has not ended, or its end is newer.
        """
        with self._store.transaction(now) as unit:
            row = unit.connection.execute(_RUNS.where(DECISION.c.flow_run_id == flow_run_id)).one_or_none()
            if row is None or row.ended is None or not is_news(state_at, row.state_at, row.ended):
                return False
            self._settle(unit, row.consumer, now, late)
            values = {"status": "launched", "ended": None, "run_state": "", "state_at": state_at}
            unit.connection.execute(_update(row.id).values(values | _earlier_ends(row, at or state_at)))
            unit.state.decisions.renew()
            retry_kept_run(unit.state, row.consumer, row.id, min(at or row.state_at, now))
            self._store.keep_up_to_date(unit.state, [], now)
            return True

    def ended(
        self,
        state: str,
        now: datetime,
        *,
        flow_run_id: UUID | None = None,
        decision_id: UUID | None = None,
        late: bool = False,
        outcome: RunState = "completed",
        at: datetime | None = None,
        began: datetime | None = None,
        state_at: datetime | None = None,
    ) -> list[Decision] | None:
        """Store that the run of a decision has ended; a pass follows. Contract 4.7, 8.16.

        Parameters:
            state: the name of the run's last state.
            outcome: the type of the run's last state.
            flow_run_id, decision_id: one of them.
            late: updates which came before the end may not be recorded yet. Then nothing is decided for a timed queue.
            at: when the run ended; `None` for now. What is kept up to date by it counts from then (8.6).
            began: when the run started, if Prefect knows it.
            state_at: the time of the run's last state, by Prefect's clock. If it had ended, it runs again first.

        Returns:
            The decisions of the pass; `None` if no decision has this run or id, or it has ended with this state or a
            newer one.
        """
        of_run = given((DECISION.c.flow_run_id, flow_run_id), (DECISION.c.id, decision_id))
        with self._store.transaction(now) as unit:
            row = unit.connection.execute(_RUNS.where(*of_run)).one_or_none()
            if row is None or not is_news(state_at, row.state_at, row.ended):
                return None
            self._settle(unit, row.consumer, now, late)
            if row.ended is not None:
                retry_kept_run(unit.state, row.consumer, row.id, min(row.state_at, now))
            values = {"status": "ended", "ended": now, "run_state": state, "state_at": state_at}
            # Nobody has heard of it going on in between.
            unit.connection.execute(_update(row.id).values(values | _earlier_ends(row, now)))
            return self._pass_over_ended(unit, row.id, row.consumer, row.target_key, outcome, now, late, at, began)

    def backfill(
        self, consumer: int, attempts: Mapping[str, int], *, at_once: int, now: datetime
    ) -> Sequence[Decision]:
        """Make the next decisions of a backfill, so that at most `at_once` runs of the consumer's backfills are open.

        Call it again until all decisions are made: each is made once, whoever calls and whenever a caller is killed.

        Parameters:
            attempts: the number of the attempt of each target key, in the order in which they are to run.

        Raises:
            UnknownConsumer: no consumer has this id.
        """
        going_on = DECISION.c.consumer == consumer, DECISION.c.kind == _BACKFILL, DECISION.c.ended.is_(None)
        with self._store.transaction(now) as unit:
            wanted = backfill_decisions(find_consumer(unit, consumer), attempts, now)
            known = known_decisions(unit.connection, [each.id for each in wanted])
            free = at_once - unit.connection.execute(select(func.count()).where(*going_on)).scalar_one()
            made = [each for each in wanted if each.id not in known][: max(free, 0)]
            for decision in made:
                unit.state.decide(decision)
            self._store.keep_up_to_date(unit.state, made, now)
            return made

    def _settle(self, unit: UnitOfWork, number: int, now: datetime, late: bool) -> None:
        """Decide what is due before a run ends, unless its end is found late, and forget which runs are under way."""
        consumer = unit.state.consumers.find(number)
        if consumer is not None and consumer.is_timed and not late:
            self._store.keep_up_to_date(unit.state, clock.settle(unit.state, consumer, now), now)
            unit.state.decisions.renew()

    def _pass_over_ended(
        self,
        unit: UnitOfWork,
        decision: UUID,
        consumer: int,
        key: str | None,
        outcome: RunState,
        now: datetime,
        late: bool,
        at: datetime | None = None,
        began: datetime | None = None,
    ) -> list[Decision]:
        """Make the passes that follow the end of a run, and return their decisions."""
        if began is not None:
            start_kept_run(unit.state, consumer, decision, began, now)
        end_kept_run(unit.state, consumer, decision, outcome, min(at or now, now))
        touched: Touched = {}
        touch_ended(unit.state, consumer, [key], touched)
        return self._store.pass_over_changed(unit.state, touched, now, late=late)


def _earlier_ends(row: Row[Any], again: datetime) -> dict[str, tuple[Any, ...]]:
    """Return what to store of the end of a run that goes on again; nothing of one that had not ended.

    Parameters:
        again: when it went on.
    """
    return {} if row.ended is None else {"earlier_ends": (*(row.earlier_ends or ()), (row.ended, again))}


def _update(decision_id: UUID) -> Update:
    return update(DECISION).where(DECISION.c.id == decision_id)


def _queue_of(connection: Connection, decision_id: UUID) -> tuple[int, str | None]:
    """Return the consumer and the target key of a decision, or raise `UnknownEvent`."""
    query = select(DECISION.c.consumer, DECISION.c.target_key).where(DECISION.c.id == decision_id)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise UnknownEvent(f"there is no decision {decision_id}", fix="`assetflow decisions ls` lists the decisions")
    return row[0], row[1]


def _give_up(connection: Connection, decision_id: UUID, reason: str, now: datetime) -> bool:
    """Make a decision undeliverable if it waits for its run, and return True if it did."""
    waiting = _update(decision_id).where(DECISION.c.status == "waiting")
    return connection.execute(waiting.values(status="undeliverable", error=reason, ended=now)).rowcount > 0


_KEPT_RUNS = select(KEPT_RUN.c.id, KEPT_RUN.c.consumer, KEPT_RUN.c.ended, KEPT_RUN.c.state_at)
_RUN = _KEPT_RUNS.where(KEPT_RUN.c.id == bindparam("run"))
_RUN_OF_DECISION = _KEPT_RUNS.join(DECISION, DECISION.c.id == KEPT_RUN.c.id).where(
    DECISION.c.flow_run_id == bindparam("run")
)
_HEARD = update(KEPT_RUN).where(KEPT_RUN.c.id == bindparam("run"))


class RunWriter(Operations):
    """Writes runs that a person or a timetable started."""

    def goes_on(self, run: RunGoingOn, now: datetime) -> list[Decision]:
        """Store that a run is open, if what it makes is compared, and return the decisions of the pass.

        A second call changes nothing, whether or not the run has ended.
        """
        with self._store.transaction(now) as unit:
            hear_going_on(unit.state, run, now)
            return self._store.keep_up_to_date(unit.state, [], now)

    def began(self, run: UUID, at: datetime, now: datetime) -> None:
        """Store when an open run started, if what it reads and makes is compared.

        The start that is stored first counts. Nothing is decided: while its target runs, it waits.

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
        """Store that such a run, which had ended, runs again. Contract 4.7.

        Parameters:
            state_at: the time of its newest state, by Prefect's clock.
            at: when it left its final state; `None` if nobody knows: then as early as can be, at its end.

        Returns:
            False if the ledger does not know the run, the run has not ended, or its end is newer.
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
            state_at: the time of its last state, by Prefect's clock. If it had ended already, it runs again first.

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


class QueueWriter(Operations):
    """Writes queues."""

    def remove(
        self,
        consumer: int | None,
        *,
        uri: str | None = None,
        event_id: UUID | None = None,
        before: datetime | None = None,
        target_key: str | None = None,
        by: str = "",
        why: str = "",
        now: datetime,
        late: bool = False,
    ) -> int:
        """Remove queued events and return the number of receipts that say so.

        Parameters:
            consumer: its id; `None` for all consumers that have events of `uri`, or this event, queued.
            uri: only events of this asset.
            event_id: only this event.
            before: only events that were recorded before this time.
            target_key: the pending partition; `None` for the plain queue.
            by, why: who removes them, and the reason; the receipts keep both.
            late: updates of before now may not be recorded yet. Then nothing is decided for a timed queue.

        Raises:
            UnknownConsumer: no consumer has this id.
        """
        named = NamedEvents(uri, event_id, before)
        with self._store.transaction(now) as unit:
            numbers = _holders(unit.connection, uri, event_id) if consumer is None else [consumer]
            consumers = [find_consumer(unit, number) for number in numbers]
            removed = 0
            for each in consumers:
                settled = [] if late else clock.settle(unit.state, each, now)
                removed += registry.remove_queued(unit.state, each, named.has, [target_key], by=by, why=why)
                touched: Touched = {each.id: (each, {target_key})}
                self._store.pass_over_changed(unit.state, touched, now, late=late, settled=settled)
            return removed


def _holders(connection: Connection, uri: str | None, event_id: UUID | None) -> list[int]:
    """Return the consumers with events of this asset, or with this event, in their plain queues."""
    if uri is not None:
        query: Any = select(PENDING.c.consumer).where(PENDING.c.uri == uri).distinct().order_by(PENDING.c.consumer)
    else:
        query = select(RECEIPT.c.consumer).join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence)
        query = query.where(EVENT.c.id == event_id, RECEIPT.c.status == QUEUED).distinct().order_by(RECEIPT.c.consumer)
    return list(connection.scalars(query))
