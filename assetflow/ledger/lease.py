"""The leases: one evaluator at a time runs on a ledger, and one process runs its watchers; and who is alive, in words.

Each transaction of the holder confirms the lease and locks it until the commit (`confirm`). So a process that stood
still, and wakes after another one has taken over, writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from pathlib import Path
from socket import gethostname
from uuid import UUID

from sqlalchemy import Connection, bindparam, delete, func, insert, select, text, update

from assetflow.core.values.words import count
from assetflow.errors import EvaluatorRunning, LeaseLost
from assetflow.ledger.records import WatchingStatus
from assetflow.ledger.sql.bulk import upsert_rows
from assetflow.ledger.sql.tables import LEASE, LEDGER, STANDBY

LEASE_SECONDS = 4.0
_APPLICATION = "assetflow evaluator"
# With this lock, the holder can renew the lease meanwhile, and nobody can take it.
_HELD = select(LEASE.c.holder).where(LEASE.c.holder == bindparam("holder")).with_for_update(read=True, key_share=True)
_END_SESSIONS = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = :name AND datname = current_database() AND usename = current_user"
)


class Role(IntEnum):
    """The purpose of a lease; the number is that of its row."""

    EVALUATOR = 1
    WATCHERS = 2


@dataclass(frozen=True)
class Holder:
    """A process that has a lease, or waits for it."""

    id: UUID
    host: str
    pid: int
    role: Role = Role.EVALUATOR

    @classmethod
    def this_process(cls, number: UUID, role: Role = Role.EVALUATOR) -> Holder:
        return cls(number, gethostname(), os.getpid(), role)


@dataclass(frozen=True)
class Lease:
    """The process that is running, since when, and when its lease ends unless it is renewed."""

    holder: Holder
    since: datetime
    renewed: datetime
    expires: datetime


def is_running(pid: int) -> bool:
    """Return True if a process of this machine is running."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_left_over(pid)


def _is_left_over(pid: int) -> bool:
    """Return True if the process is a zombie (Linux only)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state == "Z"


def read_lease(connection: Connection, role: Role = Role.EVALUATOR) -> Lease | None:
    """Return the stored lease for a role, expired or not."""
    columns = (LEASE.c.holder, LEASE.c.host, LEASE.c.pid, LEASE.c.since, LEASE.c.renewed, LEASE.c.expires)
    row = connection.execute(select(*columns).where(LEASE.c.number == role)).one_or_none()
    return None if row is None else Lease(Holder(*row[:3], role=role), *row[3:])


def clock(connection: Connection) -> datetime:
    """Return the time by the clock of the leases: on Postgres the server's, on SQLite this machine's."""
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    return connection.execute(select(func.clock_timestamp())).scalar_one()


def is_held(
    connection: Connection, lease: Lease, now: datetime, host: str, is_alive: Callable[[int], bool] = is_running
) -> bool:
    """Return True if the holder of a lease shows signs of life, as seen from `host`.

    On SQLite, a holder of this host that no longer runs has lost its lease at once. On Postgres, evaluators may be in
    containers that share a host's name and do not see each other's processes.
    """
    if now >= lease.expires:
        return False
    return connection.dialect.name != "sqlite" or lease.holder.host != host or is_alive(lease.holder.pid)


def acquire(
    connection: Connection, holder: Holder, now: datetime, seconds: float, is_alive: Callable[[int], bool]
) -> Lease:
    """Take the lease for some seconds, or raise `EvaluatorRunning` if another process holds it."""
    current = read_lease(connection, holder.role)
    _refuse_held(connection, current, holder, now, is_alive)
    if current is not None and current.holder.id != holder.id:
        _end_sessions(connection, current.holder.id)
    # On Postgres, candidates wait here for the holder and for each other, first for the lease, as `confirm` does. On
    # SQLite, they have waited when the transaction began.
    of_role = LEASE.c.number == holder.role
    connection.execute(select(LEASE.c.number).where(of_role).with_for_update())
    connection.execute(select(LEDGER.c.number).with_for_update())
    _refuse_held(connection, read_lease(connection, holder.role), holder, now, is_alive)
    lease = Lease(holder, now, now, now + timedelta(seconds=seconds))
    connection.execute(delete(LEASE).where(of_role))
    row = {"number": holder.role, "holder": holder.id, "host": holder.host, "pid": holder.pid}
    times = {"since": lease.since, "renewed": lease.renewed, "expires": lease.expires}
    connection.execute(insert(LEASE), [row | times])
    return lease


def renew(connection: Connection, holder: Holder, now: datetime, seconds: float) -> None:
    """Extend the lease by some seconds, or raise `LeaseLost`."""
    times = {"renewed": now, "expires": now + timedelta(seconds=seconds)}
    if not connection.execute(update(LEASE).where(LEASE.c.holder == holder.id).values(times)).rowcount:
        raise lost(holder.role, read_lease(connection, holder.role))


def confirm(connection: Connection, holder: Holder) -> None:
    """Lock the lease until the end of the transaction.

    Raises:
        LeaseLost: another process has the lease, or nobody has it.
    """
    if connection.scalar(_HELD, {"holder": holder.id}) is None:
        raise lost(holder.role, read_lease(connection, holder.role))


def release(connection: Connection, holder: UUID) -> None:
    """Delete the lease if this evaluator still has it."""
    connection.execute(delete(LEASE).where(LEASE.c.holder == holder))


def taken(current: Lease) -> EvaluatorRunning:
    """Return the error that says which process is running."""
    runs = "evaluator is running on" if current.holder.role is Role.EVALUATOR else "process runs the watchers of"
    return EvaluatorRunning(
        f"another {runs} this ledger: {told(current)}",
        fix="Stop it first; if its machine is gone, its lease ends by itself within seconds",
    )


def lost(role: Role, current: Lease | None) -> LeaseLost:
    """Return the error that says which process has taken over."""
    does = "evaluates" if role is Role.EVALUATOR else "runs the watchers"
    successor = f"nobody {does} now" if current is None else f"{told(current)}, {does} now"
    fix = "Nothing was written; start it again if no other one is to take its place"
    if role is Role.EVALUATOR:
        return LeaseLost(f"this evaluator stood still for too long and lost its lease: {successor}", fix=fix)
    return LeaseLost(f"this process stood still for too long and lost the lease of the watchers: {successor}", fix=fix)


def application_name(holder: UUID) -> str:
    """Return the name of the sessions of an evaluator in Postgres."""
    return f"{_APPLICATION} {holder}"


def _end_sessions(connection: Connection, holder: UUID) -> None:
    """Let Postgres end the sessions of an evaluator that shows no signs of life: they may hold locks."""
    if connection.dialect.name == "postgresql":
        connection.execute(_END_SESSIONS, {"name": application_name(holder)})


def told(lease: Lease) -> str:
    """Return the holder of a lease in words."""
    return f"process {lease.holder.pid} on {lease.holder.host}, since {lease.since:%Y-%m-%d %H:%M:%S} UTC"


def _refuse_held(
    connection: Connection, current: Lease | None, holder: Holder, now: datetime, is_alive: Callable[[int], bool]
) -> None:
    if current is None or current.holder.id == holder.id:
        return
    if is_held(connection, current, now, holder.host, is_alive):
        raise taken(current)


# A killed evaluator leaves its row behind: it is hidden after the first of these times and removed after the second.
_SILENT = timedelta(seconds=2 * LEASE_SECONDS)
_GONE = timedelta(minutes=10)

_STAND_BY = upsert_rows(STANDBY.c.holder, STANDBY.c.renewed, kept=(STANDBY.c.host, STANDBY.c.pid, STANDBY.c.since))


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


@dataclass(frozen=True)
class Downtime:
    """Why nobody evaluates, and what follows from it."""

    reason: str
    effect: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.effect}"


STOPPED = Downtime(
    "No evaluator is running",
    "updates and decisions wait until one is started, with `assetflow evaluator start`",
)
SILENT = Downtime(
    "The evaluator hangs, or cannot write to the ledger", "updates and decisions wait; its log has the reason"
)

NOT_WATCHING = Downtime(
    "No process watches what is outside",
    "messages, files and tables wait until one is started, with `assetflow watcher start`",
)


def not_watching(watching: WatchingStatus) -> Downtime | None:
    """Return why no watcher works now, or `None` if one process runs them, or there are none."""
    return NOT_WATCHING if watching.watchers and not watching.alive else None


def failing_words(watching: WatchingStatus) -> str:
    """Return which watchers fail and why, the first of them in full; empty if none fails or nobody watches."""
    if not watching.failing or not watching.alive:
        return ""
    name, reason = next(iter(watching.failing.items()))
    more = len(watching.failing) - 1
    others = f"; {count(more, 'other watcher')} too, see `assetflow watchers ls`" if more else ""
    return f"the watcher {name} fails: {reason}{others}"


def downtime(evaluators: Evaluators) -> Downtime | None:
    """Return why nobody evaluates now, or `None` if an evaluator is alive."""
    if evaluators.alive:
        return None
    return SILENT if is_silent(evaluators) else STOPPED


def is_silent(evaluators: Evaluators) -> bool:
    """Return True if the evaluator's process is running, on this machine, but does not renew its lease."""
    lease = evaluators.lease
    if evaluators.alive or lease is None or lease.holder.host != gethostname():
        return False
    return is_running(lease.holder.pid)
