"""The evaluators of a ledger: the one that has the lease, and those that stand by for it. Several need Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from socket import gethostname
from uuid import UUID

from sqlalchemy import Connection, delete, select

from assetflow.ledger.lease import LEASE_SECONDS, Holder, Lease, clock, is_held, read_lease
from assetflow.ledger.sql.bulk import upsert_rows
from assetflow.ledger.sql.tables import STANDBY

# A killed evaluator leaves its row behind: it is hidden after the first of these times and removed after the second.
_SILENT = timedelta(seconds=2 * LEASE_SECONDS)
_GONE = timedelta(minutes=10)

_STAND_BY = upsert_rows(
    (STANDBY.c.holder,), (STANDBY.c.renewed,), kept=(STANDBY.c.host, STANDBY.c.pid, STANDBY.c.since)
)


@dataclass(frozen=True)
class Standby:
    """An evaluator that waits for the lease."""

    holder: Holder
    since: datetime
    renewed: datetime


@dataclass(frozen=True)
class Evaluators:
    """The evaluators of a ledger.

    Attributes:
        lease: the lease of the evaluator that is running, or ran last; `None` after an orderly stop.
        alive: whether that evaluator shows signs of life.
        standbys: the evaluators that would take over, the longest waiting first.
        now: when this was read, by the clock of the leases.
    """

    lease: Lease | None
    alive: bool
    standbys: Sequence[Standby]
    now: datetime


def evaluators(connection: Connection) -> Evaluators:
    """Read the lease and the evaluators that stand by."""
    lease, now = read_lease(connection), clock(connection)
    columns = (STANDBY.c.holder, STANDBY.c.host, STANDBY.c.pid, STANDBY.c.since, STANDBY.c.renewed)
    query = select(*columns).where(STANDBY.c.renewed > now - _SILENT).order_by(STANDBY.c.since)
    standbys = [
        Standby(Holder(number, host, pid), since, renewed)
        for number, host, pid, since, renewed in connection.execute(query)
    ]
    alive = lease is not None and is_held(connection, lease, now, gethostname())
    return Evaluators(lease, alive, standbys, now)


def stand_by(connection: Connection, holder: Holder) -> None:
    """Store that an evaluator waits for the lease and is alive."""
    now = clock(connection)
    connection.execute(delete(STANDBY).where(STANDBY.c.renewed < now - _GONE))
    _STAND_BY.run(connection, [(holder.id, now, holder.host, holder.pid, now)])


def step_aside(connection: Connection, holder: UUID) -> None:
    """Store that an evaluator no longer waits for the lease."""
    connection.execute(delete(STANDBY).where(STANDBY.c.holder == holder))
