"""Acquire, renew and release the lease, and stand by for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from assetflow.ledger import lease, schema
from assetflow.ledger.lease import LEASE_SECONDS, Holder, Lease
from assetflow.ledger.write.store import Operations


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
