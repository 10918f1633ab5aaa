"""What a ledger's transactions have read and written, kept for those that come after."""

from __future__ import annotations

from assetflow.ledger.names import Names
from assetflow.ledger.queues import Queues
from assetflow.ledger.recent import RecentEvents
from assetflow.ledger.roster import Roster
from assetflow.ledger.work import Work

MOST = 300_000


class Memory:
    """Names, consumers and queues, which stay known from one transaction to the next.

    A memory is true as long as nobody else has written to the ledger, which its revision tells, and as long as every
    transaction that noted something here was committed. Who is not sure of both begins with a new one.

    Attributes:
        revision: the ledger's after the last transaction that used this memory.
    """

    def __init__(self, work: Work, recent: RecentEvents) -> None:
        self.revision = 0
        self.work = work
        self.names = Names(work)
        self.roster = Roster(work)
        self.queues = Queues(work, recent)

    @property
    def is_full(self) -> bool:
        """Whether so much is known that it is time to begin anew."""
        return len(self.names) + len(self.roster) + len(self.queues) > MOST
