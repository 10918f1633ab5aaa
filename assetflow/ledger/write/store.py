"""The transactions of a ledger that write."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from threading import Lock

from sqlalchemy import Connection, Engine

from assetflow.core.rules import clock
from assetflow.core.rules.adoption import Adoption
from assetflow.core.rules.fold import Passing, Recorded, Touched, pass_over, record_and_pass
from assetflow.core.rules.keeping import keep_up_to_date
from assetflow.core.rules.state import State
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import Recording
from assetflow.ledger.fold.unit_of_work import Memory, UnitOfWork
from assetflow.ledger.lease import Holder, confirm
from assetflow.ledger.sql.commits import notify
from assetflow.ledger.sql.engine import writing
from assetflow.ledger.sql.failures import explained


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
            # A rebuilt ledger does not know what was told before (8.17).
            state.freshness.changes.told.clear()
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
