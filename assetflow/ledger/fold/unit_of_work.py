"""A unit of work: one transaction that folds updates into the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, select, update

from assetflow.core.rules.state import QueueKey, State
from assetflow.core.values.events import AssetEvent
from assetflow.ledger.fold.source import LedgerSource
from assetflow.ledger.fold.writing import Writing
from assetflow.ledger.sql.rows import EVENT_COLUMNS, QUEUED, event_from_row, key_from_column
from assetflow.ledger.sql.tables import DECISION, EVENT, LEDGER, RECEIPT

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
    """The state of the ledger after a transaction, as far as this process knows it.

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
        memory: the memory of the last committed transaction; it is used as far as it is still true.

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
        """Let other processes forget what they remember: something changes that no event or decision tells them."""
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
    return [((consumer, key_from_column(key)), sequence) for sequence, consumer, key in rows]
