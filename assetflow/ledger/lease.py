"""The lease: one evaluator at a time works on a ledger.

Each transaction of the evaluator makes sure of the lease and keeps it until the commit (`confirm`). So one that stood
still, and wakes after another one has taken over, writes nothing more.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import gethostname
from uuid import UUID

from sqlalchemy import Connection, bindparam, delete, func, insert, select, text, update

from assetflow.errors import EvaluatorRunning, LeaseLost
from assetflow.ledger.tables import LEASE, LEDGER

LEASE_SECONDS = 4.0
_APPLICATION = "assetflow evaluator"
# A key share of the row lets the holder renew it meanwhile, and nobody take it.
_HELD = select(LEASE.c.holder).where(LEASE.c.holder == bindparam("holder")).with_for_update(read=True, key_share=True)
_END_SESSIONS = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = :name AND datname = current_database() AND usename = current_user"
)


@dataclass(frozen=True)
class Holder:
    """A process that evaluates, or wants to."""

    id: UUID
    host: str
    pid: int

    @classmethod
    def this_process(cls, number: UUID) -> Holder:
        return cls(number, gethostname(), os.getpid())


@dataclass(frozen=True)
class Lease:
    """Who evaluates, since when, and until when that holds if it is not renewed."""

    holder: Holder
    since: datetime
    renewed: datetime
    expires: datetime


def is_running(pid: int) -> bool:
    """Whether a process of this machine runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_left_over(pid)


def _is_left_over(pid: int) -> bool:
    """Whether a process has ended and its parent has not asked how; seen on Linux only."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state == "Z"


def read_lease(connection: Connection) -> Lease | None:
    """The lease as it is written, expired or not."""
    columns = (LEASE.c.holder, LEASE.c.host, LEASE.c.pid, LEASE.c.since, LEASE.c.renewed, LEASE.c.expires)
    row = connection.execute(select(*columns)).one_or_none()
    if row is None:
        return None
    number, host, pid, since, renewed, expires = row
    return Lease(Holder(number, host, pid), since, renewed, expires)


def clock(connection: Connection) -> datetime:
    """The time that leases go by: one clock for all evaluators, the server's on Postgres, this machine's on SQLite."""
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    return connection.execute(select(func.clock_timestamp())).scalar_one()


def is_held(
    connection: Connection, lease: Lease, now: datetime, host: str, is_alive: Callable[[int], bool] = is_running
) -> bool:
    """Whether the holder of a lease gives signs of life, as seen from a host.

    On SQLite one that does not run any more on this host is known to be gone before its lease has ended. On Postgres
    evaluators may be in containers that share a host's name and do not see each other's processes.
    """
    if now >= lease.expires:
        return False
    return connection.dialect.name != "sqlite" or lease.holder.host != host or is_alive(lease.holder.pid)


def acquire(
    connection: Connection, holder: Holder, now: datetime, seconds: float, is_alive: Callable[[int], bool]
) -> Lease:
    """Take the lease; see `Writer.acquire_lease`."""
    current = read_lease(connection)
    _refuse_held(connection, current, holder, now, is_alive)
    if current is not None and current.holder.id != holder.id:
        _end_sessions(connection, current.holder.id)
    # On Postgres would-be holders wait for the holder and for each other here, the lease first, as `confirm` does; on
    # SQLite they have when the transaction began.
    connection.execute(select(LEASE.c.number).with_for_update())
    connection.execute(select(LEDGER.c.number).with_for_update())
    _refuse_held(connection, read_lease(connection), holder, now, is_alive)
    lease = Lease(holder, now, now, now + timedelta(seconds=seconds))
    connection.execute(delete(LEASE))
    row = {"number": 1, "holder": holder.id, "host": holder.host, "pid": holder.pid}
    times = {"since": lease.since, "renewed": lease.renewed, "expires": lease.expires}
    connection.execute(insert(LEASE), [row | times])
    return lease


def renew(connection: Connection, holder: UUID, now: datetime, seconds: float) -> None:
    """Hold the lease for longer; see `Writer.renew_lease`."""
    times = {"renewed": now, "expires": now + timedelta(seconds=seconds)}
    if not connection.execute(update(LEASE).where(LEASE.c.holder == holder).values(times)).rowcount:
        raise lost(read_lease(connection))


def confirm(connection: Connection, holder: UUID) -> None:
    """Make sure of the lease, until the end of the transaction.

    Raises:
        LeaseLost: another evaluator has it, or nobody.
    """
    if connection.scalar(_HELD, {"holder": holder}) is None:
        raise lost(read_lease(connection))


def release(connection: Connection, holder: UUID) -> None:
    """Give the lease back, if it is still held."""
    connection.execute(delete(LEASE).where(LEASE.c.holder == holder))


def taken(current: Lease) -> EvaluatorRunning:
    """The error that says who evaluates."""
    return EvaluatorRunning(
        f"another evaluator works on this ledger: {told(current)}",
        fix="Stop it first; if its machine is gone, its lease ends by itself within seconds",
    )


def lost(current: Lease | None) -> LeaseLost:
    """The error that says who evaluates now."""
    successor = "nobody evaluates now" if current is None else f"{told(current)}, evaluates now"
    return LeaseLost(
        f"this evaluator stood still for too long and lost its lease: {successor}",
        fix="Nothing was written; start it again if no other one is to evaluate",
    )


def application_name(holder: UUID) -> str:
    """The name under which Postgres knows the sessions of an evaluator."""
    return f"{_APPLICATION} {holder}"


def _end_sessions(connection: Connection, holder: UUID) -> None:
    """Let Postgres end what an evaluator had begun that has shown no sign of life: it would hold its locks for ever."""
    if connection.dialect.name == "postgresql":
        connection.execute(_END_SESSIONS, {"name": application_name(holder)})


def told(lease: Lease) -> str:
    """Who holds a lease, in words."""
    return f"process {lease.holder.pid} on {lease.holder.host}, since {lease.since:%Y-%m-%d %H:%M:%S} UTC"


def _refuse_held(
    connection: Connection, current: Lease | None, holder: Holder, now: datetime, is_alive: Callable[[int], bool]
) -> None:
    if current is None or current.holder.id == holder.id:
        return
    if is_held(connection, current, now, holder.host, is_alive):
        raise taken(current)
