"""Store what failed a check, and which of it was reported to Prefect. Contract 12.6."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import Connection, select, update

from assetflow.core.rules.failed_checks import FailedChecks
from assetflow.ledger.read.checks import FAILED
from assetflow.ledger.sql.bulk import insert_rows
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.tables import FAILED_CHECKS
from assetflow.ledger.write.store import Operations

_COLUMNS = [each for each in FAILED.columns if each.name != "number"]
_ADD = insert_rows(*_COLUMNS, FAILED_CHECKS.c.stored)
_KNOWN = select(FAILED_CHECKS.c.id).where(in_values(FAILED_CHECKS.c.id, "ids"))
_OF_NUMBERS = update(FAILED_CHECKS).where(in_values(FAILED_CHECKS.c.number, "numbers"))
_TO_TELL = select(*FAILED.columns).where(FAILED_CHECKS.c.stored.is_(None)).order_by(FAILED_CHECKS.c.number)


def keep_failed_checks(connection: Connection, found: Sequence[FailedChecks], told: datetime | None) -> None:
    """Store what failed a check, each once.

    Parameters:
        told: when Prefect was told of it, for a ledger that is rebuilt; `None` tells Prefect.
    """
    known = set(connection.scalars(_KNOWN, {"ids": [each.id for each in found]}))
    new = {each.id: each for each in found if each.id not in known}
    _ADD.run(connection, [(*(getattr(each, of.name) for of in _COLUMNS), told) for each in new.values()])


class FailedChecksWriter(Operations):
    """Writes which failed checks Prefect knows of."""

    def to_tell(self, limit: int) -> list[FailedChecks]:
        """Return what failed a check and Prefect's log was not seen to have, oldest first."""
        with self._store.reads() as connection:
            return list(map(FAILED.read, connection.execute(_TO_TELL.limit(limit))))

    def posted(self, numbers: Collection[int], now: datetime) -> None:
        """Store that these events are sent to Prefect now."""
        self._set(numbers, posted=now)

    def stored(self, numbers: Collection[int], now: datetime) -> None:
        """Store that Prefect's log has these events."""
        self._set(numbers, stored=now)

    def _set(self, numbers: Collection[int], **values: object) -> None:
        with self._store.writes() as connection:
            connection.execute(_OF_NUMBERS.values(values), {"numbers": numbers})
