"""Which updates are still to be told to Prefect as its own asset events. Contract 2.10.

Updates are told in the order of the ledger, so that two places in it say what is done, and no update has a mark.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Connection, bindparam, func, select

from assetflow.core.grouping import grouped
from assetflow.core.values.announcements import Materialized
from assetflow.core.values.events import AssetEvent
from assetflow.core.wire.fields import time_or_none
from assetflow.ledger.sql.bulk import in_values, upsert_rows
from assetflow.ledger.sql.rows import EVENT_COLUMNS, event_from_row
from assetflow.ledger.sql.tables import ASSET_NAME, CURSOR, EDGE, EVENT
from assetflow.ledger.write.store import Operations, Store

_NAME = "native events"
# What Prefect did not take in so long, it never will.
GIVEN_UP = timedelta(days=1)
_SET_CURSOR = upsert_rows(*CURSOR.c)
_NEWEST = select(EVENT.c.recorded).order_by(EVENT.c.sequence.desc()).limit(1)
_LAST = select(func.max(EVENT.c.sequence))
_AFTER = (
    select(*EVENT_COLUMNS)
    .where(EVENT.c.sequence > bindparam("after"), EVENT.c.recorded > bindparam("since"))
    .where(EVENT.c.task_run_id.is_not(None))
    .order_by(EVENT.c.sequence)
)
_READ = (
    select(EDGE.c.deployment_id, func.coalesce(ASSET_NAME.c.uri, EDGE.c.value))
    .outerjoin(ASSET_NAME, (ASSET_NAME.c.name == EDGE.c.value) & (EDGE.c.kind == "name"))
    .where(EDGE.c.direction == "reads", EDGE.c.kind.in_(("uri", "name")), ~EDGE.c.learned)
    .where(in_values(EDGE.c.deployment_id, "deployments"))
    .order_by(EDGE.c.value)
)


class MaterializedWriter(Operations):
    """Reads what is to be told, and stores what Prefect's log has."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._open: dict[int, Materialized] = {}
        self._read_to: int | None = None
        # Up to this place, an earlier process has posted, the last time at this moment.
        self._posted_to = 0
        self._posted_at: datetime | None = None

    def to_tell(self, limit: int) -> list[Materialized]:
        """Return the updates by tasks that Prefect's log was not seen to have, oldest first."""
        with self._store.reads() as connection:
            if self._read_to is None:
                self._begin(connection)
            newest = connection.scalar(_NEWEST)
            if newest is None:
                return []
            since = newest - GIVEN_UP
            self._open = {number: each for number, each in self._open.items() if each.recorded > since}
            while len(self._open) < limit and self._read_more(connection, since, limit - len(self._open)):
                pass
        return list(self._open.values())[:limit]

    def posted(self, numbers: Collection[int], now: datetime) -> None:
        """Store that the events of these updates are sent to Prefect now."""
        self._open |= {each: replace(self._open[each], posted=now) for each in numbers}
        self._posted_to, self._posted_at = max([self._posted_to, *numbers]), now
        self._save()

    def stored(self, numbers: Collection[int], now: datetime) -> None:  # noqa: ARG002 (an outbox takes it)
        """Store that Prefect's log has the events of these updates."""
        for each in numbers:
            del self._open[each]
        self._save()

    def _begin(self, connection: Connection) -> None:
        kept = connection.scalar(select(CURSOR.c.value).where(CURSOR.c.name == _NAME))
        if kept is None:
            # A rebuilt ledger: an earlier one may have posted them all.
            self._read_to, self._posted_to = 0, connection.scalar(_LAST) or 0
            self._posted_at = datetime.fromtimestamp(0, UTC)
        else:
            told = cast("Mapping[str, Any]", kept)
            self._read_to, self._posted_to = told["stored"], told["posted"]
            self._posted_at = time_or_none(told["at"])

    def _read_more(self, connection: Connection, since: datetime, limit: int) -> bool:
        """Read the next updates, and return True if there may be more."""
        given = {"after": self._read_to, "since": since}
        events = [event_from_row(row) for row in connection.execute(_AFTER.limit(limit), given)]
        told = [event for event in events if event.origin.kind == "task"]
        reads = _reads(connection, told)
        for event in told:
            number = cast("int", event.sequence)
            posted = self._posted_at if number <= self._posted_to else None
            run = event.source_flow_run
            inputs = reads.get(run.deployment_id, ()) if run is not None and run.deployment_id else ()
            self._open[number] = Materialized(number, event, tuple(inputs), posted)
        if events:
            self._read_to = events[-1].sequence
        return len(events) == limit

    def _save(self) -> None:
        stored = min(self._open) - 1 if self._open else self._read_to
        at = None if self._posted_at is None else self._posted_at.isoformat()
        with self._store.writes() as connection:
            _SET_CURSOR.run(connection, [(_NAME, {"stored": stored, "posted": self._posted_to, "at": at})])


def _reads(connection: Connection, events: Sequence[AssetEvent]) -> Mapping[UUID, list[str]]:
    """Return the URIs that the deployments of some events declare to read."""
    runs = [event.source_flow_run for event in events]
    deployments = {run.deployment_id for run in runs if run is not None and run.deployment_id is not None}
    return grouped(connection.execute(_READ, {"deployments": list(deployments)}).tuples()) if deployments else {}
