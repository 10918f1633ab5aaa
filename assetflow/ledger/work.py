"""The transaction at work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection


@dataclass
class Work:
    """What all parts of a book need to know of the transaction that they are in.

    Attributes:
        connection: in a transaction that writes.
        now: when what is written is written.
        first: the sequence of the first event of this transaction; older ones are in the tables.
    """

    connection: Connection
    now: datetime
    first: int

    def begin(self, connection: Connection, now: datetime, first: int) -> None:
        """The next transaction."""
        self.connection, self.now, self.first = connection, now, first
