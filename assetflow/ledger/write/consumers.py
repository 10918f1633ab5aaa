"""Deploy, change, switch and remove consumers, and let time act on their timers and queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, bindparam, delete, select, update

from assetflow.core.freshness import deploying as freshness
from assetflow.core.freshness.asset_freshness import StateChange
from assetflow.core.freshness.demands import judge_states, settle_states
from assetflow.core.freshness.recording import check_retry, retry
from assetflow.core.rules import clock, opening_hours, registry
from assetflow.core.rules.ended_runs import RunGoingOn
from assetflow.core.rules.fold import Touched
from assetflow.core.rules.keeping import hear_going_on
from assetflow.core.values.announcements import MissedDeadlineRecord
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.wire import FlowDeclaration, declaration_from_text
from assetflow.errors import UnknownConsumer
from assetflow.ledger.fold.source import due_queues, next_due
from assetflow.ledger.read.consumers import MISSED, missed_from_row
from assetflow.ledger.read.freshness import CHANGES, changes_of
from assetflow.ledger.records import TimerRecord
from assetflow.ledger.sql.bulk import in_values, upsert_rows
from assetflow.ledger.sql.freshness_tables import POLICY_CHANGE
from assetflow.ledger.sql.tables import CONSUMER, MISSED_DEADLINE, TIMER
from assetflow.ledger.write.backfills import ReportWriter
from assetflow.ledger.write.store import Operations, UnitOfWork
from assetflow.ledger.write.watchers import drop_edges, replace_edges, replace_watchers

_KEEP_TIMERS = upsert_rows(*TIMER.c)
_LIVE = select(CONSUMER.c.id).where(CONSUMER.c.removed_at.is_(None))
_OF_DEPLOYMENT = _LIVE.where(CONSUMER.c.deployment_id == bindparam("wanted"))
_NAMED = _LIVE.where(CONSUMER.c.name == bindparam("wanted"))


class ConsumerWriter(Operations):
    """Writes consumers."""

    def deploy(
        self,
        name: str,
        deployment_id: UUID,
        flow_id: UUID | None,
        declaration_text: str,
        paused: bool,
        held: bool,
        now: datetime,
        *,
        late: bool = False,
        created: datetime | None = None,
        going_on: Sequence[RunGoingOn] = (),
    ) -> tuple[Consumer, list[Decision]]:
        """Add a deployment as a new consumer with an empty queue, and make the pass that follows. Contract 3.6.

        A consumer of the same name that another deployment left behind is removed first. If the deployment is a
        consumer already, its declaration changes; it stays paused or held as it is, unless it stood in the data graph
        only.

        Parameters:
            late: as in `change`.
            created: when the deployment was made; in a rebuilt ledger its policies begin then (8.17).
            going_on: the runs that go on. An Eager flow waits for those of makers that nothing read before (8.6).

        Raises:
            NameTaken: the name of an asset belongs to another URI (1.2); nothing is changed.
            InvalidSchedule: the declaration cannot be read; nothing is changed.
        """
        declaration = declaration_from_text(declaration_text, where=name)
        with self._store.transaction(now) as unit:
            known = _live(unit, _OF_DEPLOYMENT, deployment_id)
            if known is not None:
                if not known.options.takes_part:
                    known = replace(known, paused=paused, held=held)
                return self._change(unit, known, declaration_text, declaration, now, late, going_on)
            left_behind = _live(unit, _NAMED, name)
            if left_behind is not None:
                _remove(unit, left_behind, now)
            consumer = Consumer(unit.next_consumer(), name, deployment_id, declaration.options, paused, held, now)
            unit.declare(consumer.id, declaration_text, flow_id)
            registry.deploy(unit.state, consumer)
            since = (created or now) if self._store.adoption is not None else None
            touched = _follow(unit, None, consumer, declaration, now, going_on, since)
            decisions = self._store.passing(unit.state, touched, now)
            return consumer, self._store.keep_up_to_date(unit.state, decisions, now)

    def change(
        self,
        consumer: int,
        declaration_text: str,
        now: datetime,
        *,
        late: bool = False,
        going_on: Sequence[RunGoingOn] = (),
    ) -> tuple[Consumer, list[Decision]]:
        """Give a consumer another declaration, and make the pass that follows. Contract 4.4, 5.6.

        Parameters:
            late: the evaluator found the change when it started, or when Prefect came back, so that updates which
                came before it are not recorded yet. Then the clock goes through what is past by the new declaration,
                without openings and deadlines, and makes the pass of a timed consumer (9.6).
            going_on: as in `deploy`.

        Raises:
            UnknownConsumer, NameTaken, InvalidSchedule: nothing is changed.
        """
        declaration = declaration_from_text(declaration_text, where=f"consumer {consumer}")
        with self._store.transaction(now) as unit:
            known = find_consumer(unit, consumer)
            return self._change(unit, known, declaration_text, declaration, now, late, going_on)

    def switch(
        self, consumer: int, *, paused: bool | None = None, held: bool | None = None, now: datetime, late: bool = False
    ) -> tuple[Consumer, list[Decision]]:
        """Pause or resume, hold or release a consumer; a pass follows a resume or a release. Contract 3.4, 4.3.

        Parameters:
            late: as in `change`.

        Raises:
            UnknownConsumer: no consumer has this id.
        """
        with self._store.transaction(now) as unit:
            before = find_consumer(unit, consumer)
            settled = [] if late else clock.settle(unit.state, before, now)
            if late:
                before = replace(before, deployed=now, switched_late=True)
            changed = registry.switch(unit.state, before, paused=paused, held=held, now=now)
            touched = registry.touched_by_switch(unit.state, before, changed)
            return changed, self._store.pass_over_changed(unit.state, touched, now, late=late, settled=settled)

    def remove(self, consumer: int, now: datetime) -> None:
        """Remove a consumer; what is queued for it is superseded. Contract 3.6.

        Raises:
            UnknownConsumer: no consumer has this id.
        """
        with self._store.transaction(now) as unit:
            _remove(unit, find_consumer(unit, consumer), now)
            self._store.keep_up_to_date(unit.state, [], now)

    def forget(self, deployment_id: UUID, now: datetime) -> None:
        """Remove what a deployment reads, makes and watches, and its consumer if it is one: it was deleted."""
        with self._store.transaction(now) as unit:
            known = _live(unit, _OF_DEPLOYMENT, deployment_id)
            drop_edges(unit.connection, deployment_id, learned=True)
            if known is None:
                replace_watchers(unit.connection, deployment_id, (), now)
            else:
                _remove(unit, known, now)
                self._store.keep_up_to_date(unit.state, [], now)

    def set_automation(self, consumer: int, automation_id: UUID | None) -> None:
        """Store which automation shows a consumer."""
        changed = update(CONSUMER).where(CONSUMER.c.id == consumer).values(automation_id=automation_id)
        with self._store.writes() as connection:
            connection.execute(changed)

    def keep_timers(self, timers: Sequence[TimerRecord]) -> None:
        """Store how far the timers of consumers have come. Contract 6.1."""
        rows = [
            (each.consumer, each.timer.timetable, each.timer.after, each.timer.paused, each.timer.held, each.inherited)
            for each in timers
        ]
        with self._store.writes() as connection:
            _KEEP_TIMERS.run(connection, rows)

    def drop_timers(self, consumers: Sequence[int]) -> None:
        """Remove the timers of consumers that no longer have a timetable."""
        with self._store.writes() as connection:
            connection.execute(delete(TIMER).where(in_values(TIMER.c.consumer, "numbers")), {"numbers": consumers})

    def _change(
        self,
        unit: UnitOfWork,
        consumer: Consumer,
        text: str,
        declaration: FlowDeclaration,
        now: datetime,
        late: bool,
        going_on: Sequence[RunGoingOn],
    ) -> tuple[Consumer, list[Decision]]:
        unit.declare(consumer.id, text)
        settled = [] if late else clock.settle(unit.state, consumer, now)
        if not late:
            settle_states(unit.state.freshness, consumer.id, now)
        changed = registry.change(unit.state, replace(consumer, deployed=now, switched_late=False), declaration.options)
        touched = _follow(unit, consumer, changed, declaration, now, going_on)
        return changed, self._store.pass_over_changed(unit.state, touched, now, late=late, settled=settled)


def find_consumer(unit: UnitOfWork, number: int) -> Consumer:
    """Return the consumer with this id.

    Raises:
        UnknownConsumer: no consumer has this id.
    """
    consumer = unit.state.consumers.find(number)
    if consumer is None:
        raise UnknownConsumer(f"there is no consumer {number}", fix="`assetflow consumers ls` lists them")
    return consumer


def _follow(
    unit: UnitOfWork,
    before: Consumer | None,
    consumer: Consumer,
    declaration: FlowDeclaration,
    now: datetime,
    going_on: Sequence[RunGoingOn],
    since: datetime | None = None,
) -> Touched:
    """Let everything follow a declaration, and return the consumers to check.

    Parameters:
        before: the consumer as it was; `None` for a new one.
        going_on, since: as in `ConsumerWriter.deploy` and `core.freshness.deploying.follow`.
    """
    opening_hours.follow(unit.state, before, consumer, now)
    freshness.follow(unit.state.freshness, before, consumer, now, since)
    for run in going_on:
        hear_going_on(unit.state, run, now)
    touched = replace_edges(unit, consumer.deployment_id, consumer.name, declaration)
    replace_watchers(unit.connection, consumer.deployment_id, declaration.assets, now)
    return touched | registry.touched_by(unit.state, consumer)


def _live(unit: UnitOfWork, query: Select[tuple[int]], wanted: UUID | str) -> Consumer | None:
    number = unit.connection.scalar(query, {"wanted": wanted})
    return None if number is None else unit.state.consumers.find(number)


def _remove(unit: UnitOfWork, consumer: Consumer, now: datetime) -> None:
    registry.remove(unit.state, consumer)
    freshness.leave(unit.state.freshness, consumer.id, now)
    drop_edges(unit.connection, consumer.deployment_id)
    replace_watchers(unit.connection, consumer.deployment_id, (), now)


# A transaction goes through at most so many queues, so that others need not wait for long.
AT_ONCE = 500
_MISSED_TO_TELL = MISSED.where(MISSED_DEADLINE.c.stored.is_(None)).order_by(MISSED_DEADLINE.c.number)


@dataclass(frozen=True)
class TimePassed:
    """The result of letting time pass.

    Attributes:
        decisions: the decisions, in the order of their instants for each queue.
        next: the next instant at which time may change something; `None` if there is none.
        policy_changes: how many changes of states of freshness policies are to be reported.
    """

    decisions: list[Decision]
    next: datetime | None
    policy_changes: int = 0


class ClockWriter(Operations):
    """Lets time act."""

    def run(self, until: datetime, now: datetime) -> TimePassed:
        """Go through the instants up to one at which time changes something, in order; of very many, through some.

        Parameters:
            until: everything that counts up to then is recorded.
        """
        with self._store.reads() as connection:
            if (first := next_due(connection)) is None or first > until:
                return TimePassed([], first)
        with self._store.transaction(now) as unit:
            queues = due_queues(unit.connection, until, AT_ONCE)
            unit.state.clocks.load(queues)
            unit.state.queues.load_events(queues)
            decisions, _ = clock.run(unit.state, queues, until)
            decisions = self._store.keep_up_to_date(unit.state, decisions, until, recorded=True)
            unit.state.freshness.idle()
            judge_states(unit.state.freshness, until)
            policy_changes = len(unit.state.freshness.changes.policy_changes)
        with self._store.reads() as connection:
            return TimePassed(decisions, next_due(connection), policy_changes)


class DeadlineWriter(ReportWriter):
    """Stores which missed deadlines were reported to Prefect."""

    _of_numbers = update(MISSED_DEADLINE).where(in_values(MISSED_DEADLINE.c.number, "numbers"))

    def to_tell(self, limit: int) -> list[MissedDeadlineRecord]:
        """Return the missed deadlines that Prefect's log was not seen to have, oldest first."""
        with self._store.reads() as connection:
            return list(map(missed_from_row, connection.execute(_MISSED_TO_TELL.limit(limit))))


_TO_TELL = CHANGES.where(POLICY_CHANGE.c.stored.is_(None)).order_by(POLICY_CHANGE.c.number)


class FreshnessWriter(ReportWriter):
    """Retries targets, and stores which changes of states were reported to Prefect."""

    _of_numbers = update(POLICY_CHANGE).where(in_values(POLICY_CHANGE.c.number, "numbers"))

    def retry(self, consumer: int, key: str | None, now: datetime) -> list[Decision]:
        """Forget what an Eager or Lazy consumer tried and waived, and return the decisions of the pass that follows.

        Parameters:
            key: only of this target key; `None` for all targets.

        Raises:
            UnknownConsumer: no consumer has this id.
            InvalidCall: the consumer is neither Eager nor Lazy, or has no such key; `where` is `consumer` or `key`.
        """
        with self._store.transaction(now) as unit:
            freshness = unit.state.freshness
            retry(freshness, check_retry(freshness, find_consumer(unit, consumer), key), key, now)
            return self._store.keep_up_to_date(unit.state, [], now)

    def to_tell(self, limit: int) -> list[StateChange]:
        """Return the changes of states that Prefect's log was not seen to have, oldest first."""
        with self._store.reads() as connection:
            return changes_of(connection, _TO_TELL.limit(limit))
