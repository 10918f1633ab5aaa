"""What the checks of assets found: in updates, and in data that was held back. Contract 12.5, 12.6."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select

from assetflow.core.values.announcements import FailedChecks
from assetflow.core.values.events import CheckedData
from assetflow.ledger.read import Topic
from assetflow.ledger.sql.rows import Rows, readable_name
from assetflow.ledger.sql.tables import EVENT, FAILED_CHECKS

FAILED = Rows(FailedChecks, FAILED_CHECKS)
_F, _E = FAILED_CHECKS.c, EVENT.c
# For people: the asset has the name by which everybody calls it.
_SHOWN = tuple(readable_name(_F.uri) if each is _F.name else each for each in FAILED.columns)
_NEWEST = select(*_SHOWN).order_by(_F.number.desc())
_UPDATES = select(_E.occurred, _E.partition_key, _E.id, _E.flow_run_id, _E.checks).order_by(_E.sequence.desc())


class CheckReader(Topic):
    """Reads what checks found."""

    def history(self, uri: str, partition_key: str | None = None, *, limit: int = 30) -> list[CheckedData]:
        """Return what the checks of an asset found in its last updates, and in data that was held back, newest first.

        Parameters:
            partition_key: only in this partition; `None` for all of them.
            limit: so many updates are looked at.
        """
        updates = _UPDATES.where(_E.uri == uri).limit(limit)
        held_back = _NEWEST.where(_F.uri == uri, _F.held_back).limit(limit)
        if partition_key is not None:
            updates = updates.where(_E.partition_key == partition_key)
            held_back = held_back.where(_F.partition_key == partition_key)
        failed = map(FAILED.read, self._rows(held_back))
        found = [
            *(CheckedData(*row) for row in self._rows(updates) if row.checks),
            *(CheckedData(each.at, each.partition_key, None, each.flow_run_id, each.checks) for each in failed),
        ]
        return sorted(found, key=lambda each: each.at, reverse=True)[:limit]

    def not_made_good(self, since: datetime) -> list[FailedChecks]:
        """Return what failed a check since a moment and no later update has made good: the newest of asset and key."""
        newest: dict[tuple[str, str | None], FailedChecks] = {}
        for each in self.failed(since):
            newest.setdefault((each.uri, each.partition_key), each)
        return [each for each in newest.values() if not self._is_made_good(each)]

    def _is_made_good(self, failed: FailedChecks) -> bool:
        updates = _UPDATES.where(_E.uri == failed.uri)
        if failed.partition_key is not None:
            updates = updates.where(_E.partition_key == failed.partition_key)
        last = next(iter(self._rows(updates.limit(1))), None)
        return last is not None and last.occurred > failed.at and all(each.passed for each in last.checks)

    def failed(self, since: datetime, *, limit: int = 100) -> list[FailedChecks]:
        """Return what failed a check since a moment, newest first."""
        return list(map(FAILED.read, self._rows(_NEWEST.where(_F.at >= since).limit(limit))))
