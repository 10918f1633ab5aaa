"""The operations on a ledger, topic by topic: each is one transaction."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import delete, update

from assetflow.core.values.addresses import without_passwords
from assetflow.ledger import lease, schema
from assetflow.ledger.lease import LEASE_SECONDS, Holder, Lease
from assetflow.ledger.sql.bulk import upsert_rows
from assetflow.ledger.sql.tables import CURSOR, ENDED_SESSION, LEDGER
from assetflow.ledger.write.backfills import BackfillWriter, EndedRunWriter, FailedChecksWriter, MaterializedWriter
from assetflow.ledger.write.consumers import ClockWriter, ConsumerWriter, DeadlineWriter, FreshnessWriter
from assetflow.ledger.write.decisions import DecisionWriter, QueueWriter, RunWriter
from assetflow.ledger.write.store import EventWriter, Operations, Store
from assetflow.ledger.write.watchers import AssetWriter, LineageWriter, WatcherWriter

if TYPE_CHECKING:
    from assetflow.ledger.write.prune import PruneStep


_SET_CURSOR = upsert_rows(*CURSOR.c)
_END_SESSION = upsert_rows(*ENDED_SESSION.c)


class Writer:
    """The operations on a ledger; thread safe.

    All operations raise `LedgerLocked` and `LedgerError` if the ledger cannot be written.

    Attributes:
        assets: hides assets.
        events, consumers, queues, decisions, lineage: the operations on each of these.
        lease: the operations of an evaluator.
        runs: when runs began and ended that no decision asked for, or whose outputs are compared.
        ended_runs: the final states of all runs of consumers and makers.
        materialized: which updates are to be told in Prefect's own asset events.
        failed_checks: what failed a check, and what Prefect knows of it.
        clock: lets time act on timed consumers.
        freshness: retries targets, and stores which changes of states were reported to Prefect.
        backfills: begins, stops and resumes backfills of assets.
        watchers: what watchers found, and how they are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.assets = AssetWriter(store)
        self.events = EventWriter(store)
        self.consumers = ConsumerWriter(store)
        self.queues = QueueWriter(store)
        self.decisions = DecisionWriter(store)
        self.runs = RunWriter(store)
        self.ended_runs = EndedRunWriter(store)
        self.materialized = MaterializedWriter(store)
        self.failed_checks = FailedChecksWriter(store)
        self.lineage = LineageWriter(store)
        self.lease = LeaseWriter(store)
        self.clock = ClockWriter(store)
        self.deadlines = DeadlineWriter(store)
        self.freshness = FreshnessWriter(store)
        self.backfills = BackfillWriter(store)
        self.watchers = WatcherWriter(store)

    def prune(self, before: datetime, after: int = 0) -> PruneStep:
        """Remove what is old and no longer needed, from one chunk of events.

        To go on, give the step's `upto` as `after` until it is `None`; to start again at 0 removes what is left.

        Parameters:
            before: what was recorded and occurred before this time is old.
            after: the sequence after which the chunk begins.
        """
        from assetflow.ledger.write.prune import prune_chunk

        with self._store.writes() as connection:
            return prune_chunk(connection, before, after)

    def set_cursor(self, name: str, value: object) -> None:
        """Store how far a reader of something outside has come, as JSON data."""
        with self._store.writes() as connection:
            _SET_CURSOR.run(connection, [(name, value)])

    def end_session(self, session: str, expires: datetime, now: datetime) -> None:
        """Store that a session of the pages was ended, until it would have expired anyway."""
        with self._store.writes() as connection:
            connection.execute(delete(ENDED_SESSION).where(ENDED_SESSION.c.expires < now))
            _END_SESSION.run(connection, [(session, expires)])

    def set_prefect_api_url(self, url: str) -> None:
        """Store the address of the Prefect API that this ledger belongs to, without user and password."""
        with self._store.writes() as connection:
            connection.execute(update(LEDGER).values(prefect_api_url=without_passwords(url)))


class LeaseWriter(Operations):
    """Writes the lease."""

    def acquire(
        self,
        holder: Holder,
        now: datetime | None = None,
        *,
        seconds: float = LEASE_SECONDS,
        is_alive: Callable[[int], bool] = lease.is_running,
    ) -> Lease:
        """Become the evaluator of this ledger. On SQLite, the lease of a dead process of this host is taken at once.

        From then on, everything is written under the lease: if another evaluator has it, all operations raise
        `LeaseLost` and write nothing.

        Parameters:
            now: by default the time that all evaluators share, on Postgres the server's.
            seconds: how long the lease lasts.

        Raises:
            EvaluatorRunning: another evaluator holds the lease; the error names its host, process and start.
            LedgerVersion: the tables were changed while this program waited for the lease.
        """
        with self._store.beside() as connection:
            acquired = lease.acquire(connection, holder, now or lease.clock(connection), seconds, is_alive)
            schema.check(connection, place=self._store.place)
            lease.step_aside(connection, holder.id)
        self._store.fence = holder
        return acquired

    def renew(self, holder: Holder, now: datetime | None = None, *, seconds: float = LEASE_SECONDS) -> None:
        """Remain the evaluator. On Postgres this does not wait for other operations.

        Parameters:
            now, seconds: as for `acquire`.

        Raises:
            LeaseLost: another evaluator has the lease, or nobody has it.
        """
        with self._store.beside() as connection:
            lease.renew(connection, holder, now or lease.clock(connection), seconds)

    def release(self, holder: Holder) -> None:
        """Let another evaluator take over at once, and stop standing by."""
        self._store.fence = None
        with self._store.writes() as connection:
            lease.release(connection, holder.id)
            lease.step_aside(connection, holder.id)

    def stand_by(self, holder: Holder) -> None:
        """Show that an evaluator waits for the lease and is alive."""
        with self._store.beside() as connection:
            lease.stand_by(connection, holder)
