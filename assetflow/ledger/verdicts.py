"""Decisions in a unit of work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, insert, select

from assetflow.core.consumers import Decision
from assetflow.ledger.among import among
from assetflow.ledger.rows import key_from_column, key_to_column
from assetflow.ledger.tables import DECISION

_OPEN = select(DECISION.c.consumer, DECISION.c.target_key).where(
    among(DECISION.c.consumer, "consumers"), DECISION.c.ended.is_(None)
)


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
        if self._new:
            self._connection.execute(insert(DECISION), [self._row(decision) for decision in self._new])

    def _row(self, decision: Decision) -> dict[str, Any]:
        return {
            "number": self.numbers[decision.id],
            "id": decision.id,
            "consumer": decision.consumer,
            "deployment_id": decision.deployment_id,
            "target_key": key_to_column(decision.target_key),
            "made": decision.made,
            "kind": decision.kind,
            "status": "waiting",
            "attempts": 0,
            "error": "",
            "run_state": "",
        }
