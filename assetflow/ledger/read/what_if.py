"""What would happen: the fold on the real queues, in a transaction that only reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from assetflow.core.explain.what_if import WhatIf, if_recorded, if_resumed
from assetflow.core.rules.state.prefetch import prefetch
from assetflow.core.values.events import Recording
from assetflow.errors import UnknownConsumer
from assetflow.ledger.read.states import States


class WhatIfReader:
    """Tells what would happen. Nothing is written. All methods raise `LedgerError` if the ledger cannot be read."""

    def __init__(self, states: States) -> None:
        self._states = states

    def recorded(self, recordings: Sequence[Recording], now: datetime) -> WhatIf:
        """Return what would happen if these recordings came now, one after the other."""
        with self._states.open(now) as state:
            prefetch(state, recordings)
            return if_recorded(state, recordings, now)

    def resumed(self, consumer: int, now: datetime) -> WhatIf:
        """Return what would happen if a consumer were resumed now.

        Raises:
            UnknownConsumer: no consumer has this id.
        """
        with self._states.open(now) as state:
            found = state.consumers.find(consumer)
            if found is None:
                raise UnknownConsumer(f"there is no consumer {consumer}", fix="`assetflow consumers ls` lists them")
            return if_resumed(state, found, now)
