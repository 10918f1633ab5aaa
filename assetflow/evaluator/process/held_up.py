"""Store in the ledger what the evaluator cannot do now, so that every process can show it."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, cast

from assetflow.core.values.words import iso
from assetflow.evaluator.health import Health
from assetflow.evaluator.ports import EvaluatorLedger
from assetflow.ledger.read.judging import HELD_UP
from assetflow.ledger.read.reader import Reader

LOOK_EVERY = 2.0


@dataclass(frozen=True)
class HeldUp:
    """Something that the evaluator cannot do now, since when, and why."""

    name: str
    since: datetime
    reason: str


class HeldUpWriter:
    """Writes to the ledger what the evaluator cannot do, whenever that changes."""

    def __init__(self, ledger: EvaluatorLedger, health: Health) -> None:
        self._ledger = ledger
        self._health = health

    async def run(self) -> None:
        """Write until cancelled. Replace first what an earlier evaluator wrote.

        Raises:
            LedgerError: call it again.
        """
        written: list[dict[str, Any]] | None = None
        while True:
            self._health.up("reporting what is held up")
            now = [asdict(each) | {"since": iso(each.since)} for each in self._found()]
            if now != written:
                await self._ledger.write_held_up(now)
                written = now
            await asyncio.sleep(LOOK_EVERY)

    def _found(self) -> list[HeldUp]:
        since = self._health.since
        return [HeldUp(name, since[name], reason) for name, reason in self._health.troubles.items()]


def held_up(reader: Reader) -> list[HeldUp]:
    """Return what the evaluator could not do when it last wrote to the ledger."""
    kept = cast("list[dict[str, str]]", reader.cursor(HELD_UP) or [])
    return [HeldUp(each["name"], datetime.fromisoformat(each["since"]), each["reason"]) for each in kept]
