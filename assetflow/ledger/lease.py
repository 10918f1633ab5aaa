"""The lease: one evaluator at a time works on a ledger."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from socket import gethostname
from uuid import UUID

from sqlalchemy import Connection, delete, insert, select, update

from assetflow.errors import EvaluatorRunning
from assetflow.ledger.tables import LEASE, LEDGER

LEASE_SECONDS = 10.0


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
    return True


def read_lease(connection: Connection) -> Lease | None:
    """The lease as it is written, expired or not."""
    columns = (LEASE.c.holder, LEASE.c.host, LEASE.c.pid, LEASE.c.since, LEASE.c.renewed, LEASE.c.expires)
    row = connection.execute(select(*columns)).one_or_none()
    if row is None:
        return None
    number, host, pid, since, renewed, expires = row
    return Lease(Holder(number, host, pid), since, renewed, expires)


def acquire(
    connection: Connection, holder: Holder, now: datetime, seconds: float, is_alive: Callable[[int], bool]
) -> Lease:
    """Take the lease; see `Writer.acquire_lease`."""
    # On Postgres two would-be holders wait for each other here; on SQLite they have when the transaction began.
    connection.execute(select(LEDGER.c.number).with_for_update())
    current = read_lease(connection)
    if current is not None and current.holder.id != holder.id and _holds(current, holder, now, is_alive):
        raise taken(current)
    lease = Lease(holder, now, now, now + timedelta(seconds=seconds))
    connection.execute(delete(LEASE))
    row = {"number": 1, "holder": holder.id, "host": holder.host, "pid": holder.pid}
    times = {"since": lease.since, "renewed": lease.renewed, "expires": lease.expires}
    connection.execute(insert(LEASE), [row | times])
    return lease


def renew(connection: Connection, holder: UUID, now: datetime, seconds: float) -> None:
    """Hold the lease for longer; see `Writer.renew_lease`."""
    current = read_lease(connection)
    if current is None or current.holder.id != holder:
        raise taken(current)
    connection.execute(update(LEASE).values(renewed=now, expires=now + timedelta(seconds=seconds)))


def release(connection: Connection, holder: UUID) -> None:
    """Give the lease back, if it is still held."""
    connection.execute(delete(LEASE).where(LEASE.c.holder == holder))


def taken(current: Lease | None) -> EvaluatorRunning:
    """The error that says who evaluates."""
    if current is None:
        return EvaluatorRunning("the lease of this evaluator is gone", fix="Start the evaluator again")
    holder = current.holder
    return EvaluatorRunning(
        f"another evaluator works on this ledger: process {holder.pid} on {holder.host}, "
        f"since {current.since:%Y-%m-%d %H:%M:%S} UTC",
        fix="Stop it first; if its machine is gone, its lease ends by itself within seconds",
    )


def _holds(current: Lease, holder: Holder, now: datetime, is_alive: Callable[[int], bool]) -> bool:
    dead = current.holder.host == holder.host and not is_alive(current.holder.pid)
    return now < current.expires and not dead
