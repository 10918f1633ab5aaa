"""Who evaluates, and who stands by to do so when that one stops: several evaluators on one Postgres ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from socket import gethostname
from uuid import UUID

from sqlalchemy import Connection, delete, select

from assetflow.ledger.bulk import upsert_rows
from assetflow.ledger.lease import LEASE_SECONDS, Holder, Lease, clock, is_held, read_lease
from assetflow.ledger.tables import STANDBY

# One that was killed leaves its row behind; it is not shown after this time, and removed after the longer one.
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
        lease: that of the one that evaluates, or did last; none after an orderly stop.
        alive: whether that one gives signs of life.
        standbys: those that would take over, longest first.
        now: when this was read, by the clock that leases go by.
    """

    lease: Lease | None
    alive: bool
    standbys: Sequence[Standby]
    now: datetime


def evaluators(connection: Connection) -> Evaluators:
    """See `Reader.evaluators`."""
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
    """See `Writer.stand_by`."""
    now = clock(connection)
    connection.execute(delete(STANDBY).where(STANDBY.c.renewed < now - _GONE))
    _STAND_BY.run(connection, [(holder.id, now, holder.host, holder.pid, now)])


def step_aside(connection: Connection, holder: UUID) -> None:
    """See `Writer.step_aside`."""
    connection.execute(delete(STANDBY).where(STANDBY.c.holder == holder))
