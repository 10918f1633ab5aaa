"""What writes to the ledger: each operation is one transaction, and safe from any thread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from uuid import UUID, uuid5

from sqlalchemy import ColumnElement, insert, select, update

from assetflow.core import registry
from assetflow.core.adoption import Adoption, Decided
from assetflow.core.codec import FlowDeclaration, declaration_from_text
from assetflow.core.consumers import Consumer, Decision
from assetflow.core.events import AssetEvent, Recording, canonical_json
from assetflow.core.fold import Recorded, record_and_pass
from assetflow.errors import UnknownConsumer
from assetflow.ledger import backfills, edges, lease, notes, outcomes, prune, schema, standby, timers
from assetflow.ledger.among import among
from assetflow.ledger.book import LedgerBook
from assetflow.ledger.bulk import upsert_rows
from assetflow.ledger.lease import LEASE_SECONDS, Holder, Lease
from assetflow.ledger.queued import holders
from assetflow.ledger.records import TimerRecord
from assetflow.ledger.store import Store
from assetflow.ledger.tables import CONSUMER, CURSOR, DECISION, LEDGER, REFUSED

_NAMESPACE = UUID("0d6bb2f4-55a4-5d6e-9a44-3a0c3d5f6b1e")
_SET_CURSOR = upsert_rows((CURSOR.c.name,), (CURSOR.c.value,))


class Writer:
    """The operations on a ledger. All raise `LedgerLocked` and `LedgerError` when it cannot be written."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._adoption: Adoption | None = None

    # Events

    def record(self, recordings: Sequence[Recording], now: datetime) -> list[tuple[Recorded, list[Decision]]]:
        """Record, queue and decide, in one transaction for all, with a pass after each recording (3.1, 4.3).

        What is recorded already is left out: the same recordings may come as often as they like.

        Returns:
            For each recording in turn what became of it, and the decisions of its pass.
        """
        with self._store.transaction(now) as book:
            book.load(recordings)
            fold = record_and_pass if self._adoption is None else self._adoption.record_and_pass
            return [fold(book, recording, now) for recording in recordings]

    def begin_adoption(self, decided: Sequence[Decided]) -> int:
        """From now on, updates that these decisions consumed belong to them; how many are not in the ledger yet."""
        known = select(DECISION.c.id).where(among(DECISION.c.id, "ids"))
        with self._store.writes() as connection:
            there = set(connection.scalars(known, {"ids": [each.id for each in decided]}))
        adopted = [each for each in decided if each.id not in there]
        self._adoption = Adoption(adopted)
        return len(adopted)

    def end_adoption(self, now: datetime) -> list[Decision]:
        """All that can be found is recorded: decide as ever; the decisions that were left."""
        if self._adoption is None:
            return []
        with self._store.transaction(now) as book:
            decisions = self._adoption.finish(book, now)
        self._adoption = None
        return decisions

    def refuse(
        self, payload: object, reason: str, rule: str | None, source: str, event_id: UUID | None, now: datetime
    ) -> bool:
        """Keep what was sent as an event and is none, once per id (2.6).

        Parameters:
            payload: what was sent, as JSON data.
            source: where it came from, for a reader.
            event_id: its id; without one, the same payload counts once.

        Returns:
            Whether it is new.
        """
        number = event_id or uuid5(_NAMESPACE, f"{source}|{canonical_json(payload)}")
        row = {"id": number, "payload": payload, "reason": reason, "rule": rule, "source": source, "at": now}
        with self._store.writes() as connection:
            if connection.scalar(select(REFUSED.c.number).where(REFUSED.c.id == number)) is not None:
                return False
            connection.execute(insert(REFUSED), [row])
            return True

    # Consumers

    def deploy(
        self,
        name: str,
        deployment_id: UUID,
        flow_id: UUID | None,
        declaration_text: str,
        paused: bool,
        held: bool,
        now: datetime,
    ) -> tuple[Consumer, list[Decision]]:
        """Let a deployment take part as a new consumer, with an empty queue, and the pass that follows (3.6).

        A consumer of the same name that another deployment left behind is removed first. A deployment that takes part
        already gets the declaration as a change; whether it is paused or held then stays as it is.

        Raises:
            NameTaken: an asset's name belongs to another URI (1.2); nothing is changed.
            InvalidSchedule: the declaration cannot be read; nothing is changed.
        """
        declaration = declaration_from_text(declaration_text, where=name)
        with self._store.transaction(now) as book:
            known = _live(book, CONSUMER.c.deployment_id == deployment_id)
            if known is not None:
                return self._change(book, known, declaration_text, declaration, now)
            left_behind = _live(book, CONSUMER.c.name == name)
            if left_behind is not None:
                self._remove(book, left_behind)
            consumer = Consumer(book.next_consumer(), name, deployment_id, declaration.options, paused, held)
            book.roster.describe(consumer.id, declaration_text, flow_id)
            registry.deploy(book, consumer)
            edges.replace(book, deployment_id, name, declaration)
            return consumer, registry.pass_over_consumer(book, consumer, now)

    def change(self, consumer: int, declaration_text: str, now: datetime) -> tuple[Consumer, list[Decision]]:
        """Give a consumer another declaration, and the pass that follows (4.4, 5.6).

        Raises:
            UnknownConsumer, NameTaken, InvalidSchedule: nothing is changed.
        """
        declaration = declaration_from_text(declaration_text, where=f"consumer {consumer}")
        with self._store.transaction(now) as book:
            return self._change(book, _known(book, consumer), declaration_text, declaration, now)

    def switch(
        self, consumer: int, *, paused: bool | None = None, held: bool | None = None, now: datetime
    ) -> tuple[Consumer, list[Decision]]:
        """Pause or resume, hold or release a consumer; a resume or release is followed by a pass (3.4, 4.3).

        Raises:
            UnknownConsumer: there is none with this id.
        """
        with self._store.transaction(now) as book:
            before = _known(book, consumer)
            changed = registry.switch(book, before, paused=paused, held=held)
            freed = (before.paused and not changed.paused) or (before.held and not changed.held)
            return changed, registry.pass_over_consumer(book, changed, now) if freed else []

    def remove(self, consumer: int, now: datetime) -> None:
        """Take a consumer away; what was queued for it is superseded (3.6).

        Raises:
            UnknownConsumer: there is none with this id.
        """
        with self._store.transaction(now) as book:
            self._remove(book, _known(book, consumer))

    def set_automation(self, consumer: int, automation_id: UUID | None) -> None:
        """Keep which automation shows a consumer."""
        with self._store.writes() as connection:
            changed = update(CONSUMER).where(CONSUMER.c.id == consumer).values(automation_id=automation_id)
            connection.execute(changed)

    def set_edges(self, deployment_id: UUID, name: str, declaration_text: str, now: datetime) -> None:
        """Keep what a deployment that is no consumer produces and reads; its assets are known from then on.

        Raises:
            InvalidSchedule: the declaration cannot be read.
        """
        declaration = declaration_from_text(declaration_text, where=name)
        with self._store.transaction(now) as book:
            edges.replace(book, deployment_id, name, declaration)

    def drop_edges(self, deployment_id: UUID) -> None:
        """Forget what a deployment produces and reads; it is gone."""
        with self._store.writes() as connection:
            edges.drop(connection, deployment_id)

    def keep_timers(self, kept: Sequence[TimerRecord]) -> None:
        """Keep how far the times of consumers have come (6.1)."""
        with self._store.writes() as connection:
            timers.keep(connection, kept)

    def drop_timers(self, consumers: Sequence[int]) -> None:
        """Forget the timers of consumers that have no time table any more."""
        with self._store.writes() as connection:
            timers.drop(connection, consumers)

    # Queue

    def remove_queued(
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
    ) -> int:
        """Take queued events away on an operator's word; how many receipts say so (3.7).

        Parameters:
            consumer: its id; none for all that have events of `uri`, or this event, queued.
            uri: only events of this asset.
            event_id: only this event.
            before: only events that were recorded before this time.
            target_key: the pending partition; none for the plain queue.

        Raises:
            UnknownConsumer: there is none with this id.
        """

        def matches(event: AssetEvent) -> bool:
            return (
                (uri is None or event.uri == uri)
                and (event_id is None or event.id == event_id)
                and (before is None or (event.recorded is not None and event.recorded < before))
            )

        with self._store.transaction(now) as book:
            numbers = holders(book.connection, uri, event_id) if consumer is None else [consumer]
            consumers = [_known(book, number) for number in numbers]
            removed = (registry.remove_queued(book, each, matches, [target_key], by=by, why=why) for each in consumers)
            return sum(removed)

    # Decisions

    def launched(self, decision_id: UUID, flow_run_id: UUID, now: datetime) -> None:
        """Write down the run of a decision; said again, it changes nothing.

        Raises:
            UnknownEvent: there is no such decision.
        """
        with self._store.writes() as connection:
            outcomes.launched(connection, decision_id, flow_run_id, now)

    def noted(self, decisions: Collection[UUID], now: datetime) -> None:
        """Write down that the runs of these decisions have their notes."""
        with self._store.writes() as connection:
            notes.noted(connection, decisions, now)

    def attempt_failed(self, decision_id: UUID, error: str) -> None:
        """Count an attempt to start a decision's run that did not succeed, and keep what went wrong."""
        with self._store.writes() as connection:
            outcomes.attempt_failed(connection, decision_id, error)

    def undeliverable(self, decision_id: UUID, reason: str, now: datetime) -> list[Decision]:
        """Give a decision up: it will have no run, for the reason given (4.6). As at a run's end, a pass follows (4.7).

        Raises:
            UnknownEvent: there is no such decision.
        """
        with self._store.transaction(now) as book:
            return outcomes.undeliverable(book, decision_id, reason, now)

    def replay(self, decision_id: UUID) -> None:
        """Let an undeliverable decision wait for its run again (4.6).

        Raises:
            UnknownEvent: there is no undeliverable decision with this id.
        """
        with self._store.writes() as connection:
            outcomes.replay(connection, decision_id)

    def ended(
        self, state: str, now: datetime, *, flow_run_id: UUID | None = None, decision_id: UUID | None = None
    ) -> list[Decision] | None:
        """Write down that the run of a decision has ended; for `coalesce`, the pass that follows (4.7).

        Parameters:
            state: the name of the run's last state.
            flow_run_id, decision_id: one of them.

        Returns:
            The decisions of the pass; none if no decision without an end has this run or id, and nothing changed.
        """
        with self._store.transaction(now) as book:
            return outcomes.ended(book, state, now, flow_run_id=flow_run_id, decision_id=decision_id)

    def backfill(
        self, consumer: int, attempts: Mapping[str, int], *, at_once: int, now: datetime
    ) -> Sequence[Decision]:
        """Make the next decisions of a backfill, so that at most `at_once` of the consumer's are under way.

        Called again until it has made all, it makes each decision once, whoever calls it and whenever it was killed.

        Parameters:
            attempts: target key, in the order in which they are to run, to the number of its attempt.

        Raises:
            UnknownConsumer: there is none with this id.
        """
        with self._store.transaction(now) as book:
            return backfills.make(book, _known(book, consumer), attempts, at_once, now)

    def prune(self, before: datetime, after: int = 0) -> prune.Step:
        """Take out one chunk of what is older than a time and not needed any more.

        To go on, give the step's `upto` as `after`, until it is none; a new start at 0 does what is left.

        Parameters:
            before: what was recorded and occurred before this time is old.
            after: the sequence behind which to begin.
        """
        with self._store.writes() as connection:
            return prune.prune(connection, before, after)

    # The evaluator

    def acquire_lease(
        self,
        holder: Holder,
        now: datetime | None = None,
        *,
        seconds: float = LEASE_SECONDS,
        is_alive: Callable[[int], bool] = lease.is_running,
    ) -> Lease:
        """Become the evaluator of this ledger. On SQLite the lease of a dead process of this host is taken at once.

        From then on whatever is written here is written under the lease: all operations raise `LeaseLost`, and write
        nothing, when another one has it.

        Parameters:
            now: by default the time that all evaluators share, the server's on Postgres.

        Raises:
            EvaluatorRunning: another one holds the lease; the error names its host, process and start.
            LedgerVersion: the tables were changed while this program waited for the lease.
        """
        with self._store.beside() as connection:
            acquired = lease.acquire(connection, holder, now or lease.clock(connection), seconds, is_alive)
            schema.check(connection, place=self._store.place)
            standby.step_aside(connection, holder.id)
        self._store.fence = holder.id
        return acquired

    def renew_lease(self, holder: Holder, now: datetime | None = None, *, seconds: float = LEASE_SECONDS) -> None:
        """Stay the evaluator. On Postgres this waits for no other operation.

        Parameters:
            now: as for `acquire_lease`.

        Raises:
            LeaseLost: another evaluator has the lease, or nobody.
        """
        with self._store.beside() as connection:
            lease.renew(connection, holder.id, now or lease.clock(connection), seconds)

    def release_lease(self, holder: Holder) -> None:
        """Let another evaluator take over at once, and stand by no longer."""
        self._store.fence = None
        with self._store.writes() as connection:
            lease.release(connection, holder.id)
            standby.step_aside(connection, holder.id)

    def stand_by(self, holder: Holder) -> None:
        """Let others know that an evaluator waits for the lease, and lives."""
        with self._store.beside() as connection:
            standby.stand_by(connection, holder)

    def set_cursor(self, name: str, value: object) -> None:
        """Keep how far something outside has been read, as JSON data."""
        with self._store.writes() as connection:
            _SET_CURSOR.run(connection, [(name, value)])

    def set_prefect_api_url(self, url: str) -> None:
        """Keep the address of the Prefect API that this ledger belongs to."""
        with self._store.writes() as connection:
            connection.execute(update(LEDGER).values(prefect_api_url=url))

    def _change(
        self, book: LedgerBook, consumer: Consumer, text: str, declaration: FlowDeclaration, now: datetime
    ) -> tuple[Consumer, list[Decision]]:
        book.queues.load_all(consumer.id)
        book.roster.describe(consumer.id, text)
        changed = registry.change(book, consumer, declaration.options)
        edges.replace(book, consumer.deployment_id, consumer.name, declaration)
        return changed, registry.pass_over_consumer(book, changed, now)

    def _remove(self, book: LedgerBook, consumer: Consumer) -> None:
        book.queues.load_all(consumer.id)
        registry.remove(book, consumer)
        edges.drop(book.connection, consumer.deployment_id)


def _live(book: LedgerBook, condition: ColumnElement[bool]) -> Consumer | None:
    query = select(CONSUMER.c.id).where(condition, CONSUMER.c.removed_at.is_(None))
    number = book.connection.scalar(query)
    return None if number is None else book.roster.find(number)


def _known(book: LedgerBook, number: int) -> Consumer:
    consumer = book.roster.find(number)
    if consumer is None:
        raise UnknownConsumer(f"there is no consumer {number}", fix="`assetflow consumers ls` lists them")
    return consumer
