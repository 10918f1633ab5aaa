"""What would happen: the fold on the real queues, in a transaction that only reads."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import select

from assetflow.core.events import Recording
from assetflow.core.explanation.what_if import WhatIf, if_recorded, if_resumed
from assetflow.core.rules.state import State
from assetflow.core.rules.state.prefetch import prefetch
from assetflow.errors import UnknownConsumer
from assetflow.ledger.fold.source import LedgerSource
from assetflow.ledger.sql.engine import Connect
from assetflow.ledger.sql.tables import LEDGER

_LAST_EVENT = select(LEDGER.c.last_event)


class WhatIfReader:
    """Tells what would happen. Nothing is written. All methods raise `LedgerError` if the ledger cannot be read."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    def recorded(self, recordings: Sequence[Recording], now: datetime) -> WhatIf:
        """Return what would happen if these recordings came now, one after the other."""
        with self._state(now) as state:
            prefetch(state, recordings)
            return if_recorded(state, recordings, now)

    def resumed(self, consumer: int, now: datetime) -> WhatIf:
        """Return what would happen if a consumer were resumed now.

        Raises:
            UnknownConsumer: no consumer has this id.
        """
        with self._state(now) as state:
            found = state.consumers.find(consumer)
            if found is None:
                raise UnknownConsumer(f"there is no consumer {consumer}", fix="`assetflow consumers ls` lists them")
            return if_resumed(state, found, now)

    @contextmanager
    def _state(self, now: datetime) -> Generator[State]:
        """Open a state on the ledger as it is at one moment."""
        with self._connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execution_options(isolation_level="REPEATABLE READ")
            state = State(LedgerSource(connection))
            state.begin(connection.execute(_LAST_EVENT).scalar_one() + 1, now)
            yield state
