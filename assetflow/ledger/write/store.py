"""The transactions of a ledger that write, and the operation that records events."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import Connection, Engine, bindparam, insert, select, update

from assetflow.core.freshness.demands import judge_silently
from assetflow.core.json_data import fit_json, fit_text
from assetflow.core.rules import clock
from assetflow.core.rules.adoption import Adoption, Decided
from assetflow.core.rules.fold import Passing, Recorded, Touched, pass_over, record_and_pass
from assetflow.core.rules.keeping import keep_up_to_date, look_at_all
from assetflow.core.rules.state import QueueKey, State
from assetflow.core.rules.state.state import prefetch
from assetflow.core.values.announcements import FailedChecks
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Recording, canonical_json, kept_payload
from assetflow.core.wire.events import event_to_json
from assetflow.ledger.fold.source import LedgerSource
from assetflow.ledger.fold.writing import Writing
from assetflow.ledger.lease import Holder, confirm
from assetflow.ledger.read.decisions import known_decisions
from assetflow.ledger.read.events import FAILED
from assetflow.ledger.sql.bulk import in_values, insert_rows
from assetflow.ledger.sql.engine import notify, writing
from assetflow.ledger.sql.failures import explained
from assetflow.ledger.sql.rows import EVENT_COLUMNS, QUEUED, event_from_row
from assetflow.ledger.sql.tables import DECISION, EVENT, FAILED_CHECKS, LEDGER, RECEIPT, REFUSED

_LEDGER = select(
    LEDGER.c.last_event, LEDGER.c.last_decision, LEDGER.c.last_consumer, LEDGER.c.revision, LEDGER.c.rewritten
).with_for_update()

_NEW_EVENTS = select(*EVENT_COLUMNS).where(EVENT.c.sequence > bindparam("event")).order_by(EVENT.c.sequence)
_PLACE = (RECEIPT.c.sequence, RECEIPT.c.consumer, RECEIPT.c.target_key)
_NEW_QUEUED = select(*_PLACE).where(RECEIPT.c.sequence > bindparam("event"), RECEIPT.c.status == QUEUED)
_NEW_CONSUMED = (
    select(*_PLACE)
    .join(DECISION, DECISION.c.number == RECEIPT.c.decision)
    .where(DECISION.c.number > bindparam("decision"), RECEIPT.c.sequence <= bindparam("event"))
)

# A process that is behind by more events than this forgets what it knows.
FAR_BEHIND = 1_000
# So many decisions take less than 200 ms, for which others have to wait.
MOST_DECISIONS = 500


@dataclass
class Memory:
    """What this process remembers of the ledger after a transaction.

    Attributes:
        revision: the revision of the ledger after it.
        last_event, last_decision: the numbers of the newest event and decision after it.
    """

    state: State
    source: LedgerSource
    revision: int
    last_event: int
    last_decision: int


class UnitOfWork:
    """The state of the fold in one transaction. `write` writes its changes, immediately before the commit.

    Parameters:
        connection: in a transaction that writes.
        now: the time that is stored with receipts and changes.
        memory: the memory of the last committed transaction; what other processes changed since then is read.

    Attributes:
        memory: what is known once this transaction is committed. After a rollback it is wrong.
    """

    def __init__(self, connection: Connection, now: datetime, memory: Memory | None = None) -> None:
        self.connection = connection
        self.now = now
        # On Postgres, writers wait for this row; on SQLite, they have waited when the transaction began.
        row = connection.execute(_LEDGER).one()
        last_event, last_decision, self._last_consumer, revision, rewritten = row
        self._rewritten = rewritten
        self._rewrites = False
        self._declarations: dict[int, tuple[str, UUID | None]] = {}
        if memory is None or memory.revision < rewritten or last_event - memory.last_event > FAR_BEHIND:
            source = LedgerSource(connection)
            memory = Memory(State(source), source, revision, last_event, last_decision)
        memory.source.connection = connection
        if memory.revision != revision:
            _catch_up(connection, memory, last_event, last_decision)
        memory.revision, memory.last_event, memory.last_decision = revision, last_event, last_decision
        memory.state.begin(last_event + 1, now)
        memory.state.changes.most_decisions = MOST_DECISIONS
        memory.state.freshness.order = revision
        self.memory = memory
        self.state = memory.state

    def next_consumer(self) -> int:
        """Return the id of a new consumer."""
        self._last_consumer += 1
        return self._last_consumer

    def declare(self, consumer: int, text: str, flow_id: UUID | None = None) -> None:
        """Store the text of a consumer's declaration, and the flow of a new consumer."""
        self._declarations[consumer] = (text, flow_id)

    def forget_elsewhere(self) -> None:
        """Let other processes forget what they remember: they cannot see this change in events and decisions."""
        self._rewrites = True

    def write(self) -> None:
        """Write all changes. The unit of work cannot be used afterwards."""
        memory, changes = self.memory, self.state.changes
        Writing(self.connection, self.state, self.now, memory.last_decision, self._declarations).write()
        memory.revision += 1
        memory.last_event += len(changes.events)
        memory.last_decision += len(changes.decisions)
        counted: dict[str, Any] = {
            "last_event": memory.last_event,
            "last_decision": memory.last_decision,
            "last_consumer": self._last_consumer,
            "revision": memory.revision,
            "rewritten": memory.revision if changes.beyond_events or self._rewrites else self._rewritten,
        }
        self.connection.execute(update(LEDGER).values(counted))


def _catch_up(connection: Connection, memory: Memory, last_event: int, last_decision: int) -> None:
    """Read what other processes have recorded and decided since.

    Parameters:
        last_event, last_decision: the numbers of the newest event and decision now.
    """
    after = {"event": memory.last_event, "decision": memory.last_decision}
    events: Sequence[AssetEvent] = ()
    queued: Iterable[tuple[QueueKey, int]] = ()
    consumed: Iterable[tuple[QueueKey, int]] = ()
    if last_event > memory.last_event:
        events = [event_from_row(row) for row in connection.execute(_NEW_EVENTS, after)]
        queued = _places(connection.execute(_NEW_QUEUED, after))
    if last_decision > memory.last_decision:
        consumed = _places(connection.execute(_NEW_CONSUMED, after))
    memory.state.learn(events, queued, consumed)


def _places(rows: Iterable[Any]) -> Iterable[tuple[QueueKey, int]]:
    return [((consumer, key), sequence) for sequence, consumer, key in rows]


class Store:
    """Opens the transactions that write to a ledger, one at a time, whatever thread or process asks for them.

    Attributes:
        place: the file or the address of the ledger, for people to read.
        is_shared: whether the database can be used by several machines.
        fence: the process that uses this store under a lease: no transaction is committed unless it holds the lease.
            `None` for a process that writes without one.
        adoption: the earlier decisions that a rebuilt ledger takes over; `None` except during a rebuild.
    """

    def __init__(self, engine: Engine, place: str) -> None:
        self.place = place
        self.is_shared = engine.dialect.name != "sqlite"
        self.fence: Holder | None = None
        self.adoption: Adoption | None = None
        self._engine = engine
        self._writing = writing(engine)
        self._lock = Lock()
        self._memory: Memory | None = None

    @property
    def passing(self) -> Passing:
        """The function that makes a pass now."""
        return pass_over if self.adoption is None else self.adoption.pass_over

    def record(self, state: State, recording: Recording, now: datetime) -> tuple[Recorded, list[Decision]]:
        """Record a recording and make the passes that follow it; return what became of it, and the decisions."""
        recorded, decided = record_and_pass(state, recording, now, self.passing)
        if self.adoption is not None:
            # A rebuilt ledger does not know what was reported before (8.17).
            state.freshness.changes.policy_changes.clear()
        return recorded, self.keep_up_to_date(state, decided, now)

    def keep_up_to_date(
        self, state: State, decided: Sequence[Decision], now: datetime, *, recorded: bool = False
    ) -> list[Decision]:
        """Make the pass over Eager flows that follows a pass, and return the decisions of both. Contract 8.16.

        During a rebuild nothing is asked for: what was made is not recorded yet.
        """
        return list(decided) if self.adoption is not None else keep_up_to_date(state, decided, now, recorded=recorded)

    def pass_over_changed(
        self, state: State, touched: Touched, now: datetime, *, late: bool, settled: Sequence[Decision] = ()
    ) -> list[Decision]:
        """Make the passes that follow a change of consumers, of queues or of runs; return the decisions.

        Parameters:
            late: updates which came before the change may not be recorded yet. Then the clock makes the passes of timed
                queues when they are (9.6).
            settled: the decisions that were due before the change.
        """
        free = dict(touched)
        for number, (consumer, _) in touched.items() if late else ():
            if consumer.is_timed:
                clock.look_at(state, consumer, now)
                del free[number]
        return self.keep_up_to_date(state, [*settled, *self.passing(state, free, now)], now)

    @contextmanager
    def transaction(self, now: datetime) -> Generator[UnitOfWork]:
        """Open a unit of work. What its state notes is committed at the end, or, after an exception, not at all.

        Parameters:
            now: the time that is written with receipts and changes.

        Raises:
            LedgerLocked: another process held the ledger for longer than the time limit.
            LeaseLost: another evaluator is running on the ledger now; nothing is written.
            LedgerError: the ledger cannot be written.
        """
        with self._lock, explained(self.place):
            # If this transaction fails, the next one must not remember what this one noted.
            memory, self._memory = self._memory, None
            with self._writing.begin() as connection:
                self._confirm(connection)
                unit = UnitOfWork(connection, now, memory)
                yield unit
                unit.write()
                notify(connection)
            self._memory = unit.memory
            self._memory.state.renew()

    @contextmanager
    def reads(self) -> Generator[Connection]:
        """Open a connection that only reads what is committed."""
        with explained(self.place), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writes(self) -> Generator[Connection]:
        """Open a transaction for writes that need no state. It raises what `transaction` raises."""
        with self._lock, explained(self.place), self._writing.begin() as connection:
            self._confirm(connection)
            yield connection
            notify(connection)

    @contextmanager
    def beside(self) -> Generator[Connection]:
        """Open a transaction for the lease alone. On Postgres it does not wait for other transactions of this store."""
        waiting = nullcontext() if self.is_shared else self._lock
        with waiting, explained(self.place), self._writing.begin() as connection:
            yield connection

    def _confirm(self, connection: Connection) -> None:
        if self.fence is not None:
            confirm(connection, self.fence)


class Operations:
    """Operations on one topic, each of which is one transaction.

    All of them raise `LedgerLocked` and `LedgerError` if the ledger cannot be written.
    """

    def __init__(self, store: Store) -> None:
        self._store = store


_ENDS = select(DECISION.c.id, DECISION.c.ended).where(in_values(DECISION.c.id, "ids"))
_NAMESPACE = UUID("0d6bb2f4-55a4-5d6e-9a44-3a0c3d5f6b1e")


_CHECK_COLUMNS = [each for each in FAILED.columns if each.name != "number"]
_ADD_CHECKS = insert_rows(*_CHECK_COLUMNS, FAILED_CHECKS.c.stored)
_KNOWN_CHECKS = select(FAILED_CHECKS.c.id).where(in_values(FAILED_CHECKS.c.id, "ids"))


class EventWriter(Operations):
    """Writes events."""

    def record(self, recordings: Sequence[Recording], now: datetime) -> list[tuple[Recorded, list[Decision]]]:
        """Record, queue and decide in one transaction, with a pass after each recording. Contract 3.1, 4.3.

        Events that are recorded already are left out, so the same recordings may come any number of times.

        Returns:
            For each recording what became of it, and the decisions of its pass.
        """
        with self._store.transaction(now) as unit:
            prefetch(unit.state, recordings)
            done = [self._store.record(unit.state, recording, now) for recording in recordings]
            for event, error in (each for recorded, _ in done for each in recorded.refused):
                reason, payload = str(error), event_to_json(event)
                keep_refused(unit.connection, event.id, payload, reason, error.rule, "observation", now)
            if failed := [each for recorded, _ in done for each in recorded.failed_checks]:
                # A rebuilt ledger does not know what was reported before (8.17).
                keep_failed_checks(unit.connection, failed, None if self._store.adoption is None else now)
            return done

    def begin_adoption(self, decided: Sequence[Decided]) -> int:
        """Let events that earlier decisions consumed belong to these decisions, from now on.

        Returns:
            The number of decisions that are not in the ledger yet.
        """
        with self._store.writes() as connection:
            known = known_decisions(connection, [each.id for each in decided])
        self._store.adoption = Adoption(decided)
        return sum(each.id not in known for each in decided)

    def end_adoption(self, now: datetime) -> list[Decision]:
        """Decide as usual again: everything that can be found is recorded. Return the decisions that were left."""
        adoption = self._store.adoption
        if adoption is None:
            return []
        with self._store.transaction(now) as unit:
            ids = set(adoption.ids)
            known = {number: ended is None for number, ended in unit.connection.execute(_ENDS, {"ids": list(ids)})}
            decisions = adoption.finish(unit.state, unit.state.consumers.live(), now, known)
            look_at_all(unit.state, now)
            # The runs of adopted decisions are in the data graph already.
            adopted = [each for each in decisions if each.id in ids]
            made = [each for each in decisions if each.id not in ids]
            decisions = [*adopted, *keep_up_to_date(unit.state, made, now)]
            judge_silently(unit.state.freshness, now)
        self._store.adoption = None
        return decisions

    def refuse(
        self, payload: object, reason: str, rule: str | None, source: str, event_id: UUID | None, now: datetime
    ) -> bool:
        """Keep what was sent as an event and is refused, once per id. Contract 2.6.

        Parameters:
            payload: what was sent; only a part of a large payload is kept.
            source: where it came from, for people to read.
            event_id: its id; without an id, the same payload counts once.

        Returns:
            True if it is new.
        """
        number = event_id or uuid5(_NAMESPACE, f"{source}|{canonical_json(fit_json(payload))}")
        with self._store.writes() as connection:
            return keep_refused(connection, number, payload, fit_text(reason), rule, source, now)


def keep_refused(
    connection: Connection,
    number: UUID,
    payload: object,
    reason: str,
    rule: str | None,
    source: str,
    now: datetime,
) -> bool:
    """Keep what is refused; return False if its id is known."""
    if connection.scalar(select(REFUSED.c.number).where(REFUSED.c.id == number)) is not None:
        return False
    kept = kept_payload(payload)
    row = {"id": number, "payload": kept, "reason": reason, "rule": rule, "source": source, "at": now}
    connection.execute(insert(REFUSED), [row])
    return True


def keep_failed_checks(connection: Connection, found: Sequence[FailedChecks], told: datetime | None) -> None:
    """Store what failed a check, each once.

    Parameters:
        told: when Prefect was told of it, for a ledger that is rebuilt; `None` tells Prefect.
    """
    known = set(connection.scalars(_KNOWN_CHECKS, {"ids": [each.id for each in found]}))
    new = {each.id: each for each in found if each.id not in known}
    _ADD_CHECKS.run(connection, [(*(getattr(each, of.name) for of in _CHECK_COLUMNS), told) for each in new.values()])
