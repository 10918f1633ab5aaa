"""The ledger as the book of the core's fold: one unit of work in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, select, update

from assetflow.core.book import Pending
from assetflow.core.conditions import Token
from assetflow.core.consumers import Consumer, Decision, Receipt
from assetflow.core.events import AssetEvent, Recording
from assetflow.ledger.foresight import foresee, is_known
from assetflow.ledger.journal import Journal
from assetflow.ledger.memory import Memory
from assetflow.ledger.recent import RecentEvents
from assetflow.ledger.tables import LEDGER
from assetflow.ledger.verdicts import Verdicts
from assetflow.ledger.work import Work

_LEDGER = select(
    LEDGER.c.last_event, LEDGER.c.last_decision, LEDGER.c.last_consumer, LEDGER.c.revision
).with_for_update()


class LedgerBook:
    """The `Book` of one transaction; see there for what the methods promise.

    What it is asked for it reads, once; what it is told it keeps, and writes all together when `flush` is called, as
    the last thing before the commit. For recordings that `load` announces it reads ahead, in a few statements.

    Parameters:
        connection: in a transaction that writes.
        now: when what is written is written.
        recent: committed events that need not be read.
        memory: of the committed transactions before; it is used unless somebody else has written since.

    Attributes:
        memory: what is known after this transaction, if it is committed.
    """

    def __init__(
        self,
        connection: Connection,
        now: datetime,
        recent: RecentEvents | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.connection = connection
        # On Postgres this row is what writers wait for; on SQLite they have waited when the transaction began.
        last_event, last_decision, last_consumer, revision = connection.execute(_LEDGER).one()
        self._last_consumer = last_consumer
        if memory is None or memory.revision != revision or memory.is_full:
            memory = Memory(Work(connection, now, last_event + 1), recent or RecentEvents())
        memory.work.begin(connection, now, last_event + 1)
        memory.revision = revision + 1
        self.memory = memory
        self.names, self.roster, self.queues = memory.names, memory.roster, memory.queues
        self.journal = Journal(connection, last_event)
        self.verdicts = Verdicts(connection, last_decision)
        self._ahead: Sequence[AssetEvent] = ()

    def load(self, recordings: Sequence[Recording]) -> None:
        """Announce the recordings of this transaction: what the fold will ask for is then read in a few statements.

        Which of them are recorded already is read now, all the rest as soon as a recording needs something unknown.
        """
        self.journal.load(recordings)
        self._ahead = [event for recording in recordings for event in recording.events]

    def flush(self) -> None:
        """Write everything; the book is not used any more after it."""
        self.names.flush()
        self.journal.flush()
        self.verdicts.flush()
        self.queues.flush(self.verdicts.numbers)
        counted = {
            "last_event": self.journal.last,
            "last_decision": self.verdicts.last,
            "last_consumer": self._last_consumer,
            "revision": self.memory.revision,
        }
        self.connection.execute(update(LEDGER).values(counted))

    def next_consumer(self) -> int:
        """The id of a new consumer."""
        self._last_consumer += 1
        return self._last_consumer

    def owner_of(self, name: str) -> str | None:
        return self.names.owner_of(name)

    def names_of(self, uri: str) -> Collection[str]:
        return self.names.names_of(uri)

    def tokens_of(self, uri: str) -> frozenset[Token]:
        return self.names.tokens_of(uri)

    def declare(self, name: str, uri: str) -> None:
        self.names.declare(name, uri)

    def aliases_of(self, uri: str) -> Collection[str]:
        return self.names.aliases_of(uri)

    def link(self, alias: str, uri: str) -> None:
        self.names.link(alias, uri)

    def new_events(self, recording: UUID, events: Sequence[AssetEvent]) -> Sequence[AssetEvent]:
        # Once it is read, all that comes in this transaction is known. Looked at just before the fold: what is then in
        # the processor's caches is what the fold needs.
        if self._ahead and not all(is_known(self.names, self.roster, self.queues, event) for event in events):
            foresee(self.names, self.roster, self.queues, self.verdicts, self._ahead)
            self._ahead = ()
        return self.journal.new_events(recording, events)

    def append(self, event: AssetEvent, recording: UUID, now: datetime) -> AssetEvent:
        self.names.describe(event.asset)
        return self.journal.append(event, recording, now)

    def wanting(self, tokens: frozenset[Token]) -> Sequence[Consumer]:
        return self.roster.wanting(tokens)

    def save(self, consumer: Consumer) -> None:
        self.roster.save(consumer)

    def forget(self, consumer: Consumer) -> None:
        self.roster.forget(consumer)

    def pending(self, consumer: int, target_key: str | None) -> Pending:
        return self.queues.pending(consumer, target_key)

    def target_keys(self, consumer: int) -> Collection[str | None]:
        return self.queues.target_keys(consumer)

    def queued(self, consumer: int, target_key: str | None) -> Sequence[AssetEvent]:
        return self.queues.queued(consumer, target_key)

    def receipts_of(self, consumer: int, event: int) -> Sequence[Receipt]:
        return self.queues.receipts.of(consumer, event)

    def write(self, event: AssetEvent, receipt: Receipt) -> None:
        self.queues.write(event, receipt)

    def unqueue(self, event: AssetEvent, consumer: int, target_key: str | None) -> None:
        self.queues.unqueue(event, consumer, target_key)

    def is_busy(self, consumer: int, target_key: str | None) -> bool:
        return self.verdicts.is_busy(consumer, target_key)

    def decide(self, decision: Decision) -> None:
        self.verdicts.decide(decision)
        self.queues.consume(decision, self.verdicts.last)
