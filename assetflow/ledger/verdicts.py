"""Decisions in a unit of work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select

from assetflow.core.consumers import Decision
from assetflow.ledger.among import among
from assetflow.ledger.bulk import insert_rows
from assetflow.ledger.rows import key_from_column, key_to_column
from assetflow.ledger.tables import DECISION

_OPEN = select(DECISION.c.consumer, DECISION.c.target_key).where(
    among(DECISION.c.consumer, "consumers"), DECISION.c.ended.is_(None)
)
_NEW = (
    DECISION.c.number,
    DECISION.c.id,
    DECISION.c.consumer,
    DECISION.c.deployment_id,
    DECISION.c.target_key,
    DECISION.c.made,
    DECISION.c.kind,
    DECISION.c.status,
    DECISION.c.attempts,
    DECISION.c.error,
    DECISION.c.run_state,
)
_ADD_DECISIONS = insert_rows(_NEW)


class Verdicts:
    """The decisions: for whom a run is under way, read when asked for, and the new ones, written by `flush`.

    Attributes:
        numbers: the numbers of the new decisions.
    """

    def __init__(self, connection: Connection, last: int) -> None:
        self._connection = connection
        self.last = last
        self.numbers: dict[UUID, int] = {}
        self._new: list[Decision] = []
        self._busy: dict[int, set[str | None]] = {}

    def load(self, consumers: Iterable[int]) -> None:
        """Read for which keys of these consumers a run is under way, as far as it is not known yet."""
        missing = dict.fromkeys(number for number in consumers if number not in self._busy)
        if missing:
            self._busy |= {number: set() for number in missing}
            for number, key in self._connection.execute(_OPEN, {"consumers": missing}).all():
                self._busy[number].add(key_from_column(key))
            # Those of this transaction are not in the table yet.
            for decision in self._new:
                if decision.consumer in missing:
                    self._busy[decision.consumer].add(decision.target_key)

    def is_busy(self, consumer: int, target_key: str | None) -> bool:
        self.load([consumer])
        return target_key in self._busy[consumer]

    def decide(self, decision: Decision) -> None:
        self.last += 1
        self.numbers[decision.id] = self.last
        self._new.append(decision)
        if decision.consumer in self._busy:
            self._busy[decision.consumer].add(decision.target_key)

    def flush(self) -> None:
        """Write the new decisions; they wait for their runs."""
        _ADD_DECISIONS.run(self._connection, [self._row(decision) for decision in self._new])

    def _row(self, decision: Decision) -> tuple[Any, ...]:
        key = key_to_column(decision.target_key)
        known = (self.numbers[decision.id], decision.id, decision.consumer, decision.deployment_id, key, decision.made)
        return (*known, decision.kind, "waiting", 0, "", "")
