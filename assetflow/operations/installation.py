"""An installation: the ledger, Prefect, and the evaluator that may run in the same process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from assetflow.errors import LedgerForeign

if TYPE_CHECKING:
    from assetflow.ledger import Ledger
    from assetflow.prefect_io.rest import PrefectApi


# The cursor with the time up to which the evaluator has read Prefect's event log.
EVENTS_READ = "events"
# The evaluator reads every few seconds, and saves every ten how far it has come.
READ_LATELY = timedelta(seconds=30)

OpenPrefect = Callable[[], "AbstractAsyncContextManager[PrefectApi]"]


def nothing() -> None:
    """Do nothing, and name nobody."""


def open_prefect() -> AbstractAsyncContextManager[PrefectApi]:
    """Open the API of the Prefect server in the settings."""
    # Import the HTTP client only here: most commands do not need it.
    from assetflow.prefect_io.rest import prefect_api

    return prefect_api()


@dataclass(frozen=True)
class Installation:
    """The installation that operations work on.

    Attributes:
        ledger: the ledger, open for reading and writing.
        prefect: opens Prefect's API, to start runs and turn switches.
        on_recorded: called, from any thread, after an operation that may have led to decisions.
        other_ledger: returns the id of the ledger that decides for this Prefect instead, or `None` if this one does.
        now: returns the current time.
    """

    ledger: Ledger
    prefect: OpenPrefect = open_prefect
    on_recorded: Callable[[], None] = nothing
    other_ledger: Callable[[], str | None] = nothing
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def check_decides(self, otherwise: str, fix: str) -> None:
        """Check that no other ledger decides for this Prefect.

        Parameters:
            otherwise: what would be wrong then, for the message: "nothing would run".

        Raises:
            LedgerForeign: another ledger decides.
        """
        other = self.other_ledger()
        if other is not None:
            raise LedgerForeign(f"this ledger no longer decides, ledger {other} has taken over; {otherwise}", fix=fix)

    @property
    def is_late(self) -> bool:
        """Return True if updates of before now may still be in Prefect's logs: no evaluator has read them lately."""
        read = self.ledger.reader.cursor(EVENTS_READ)
        if read is None or not self.ledger.reader.evaluators().alive:
            return True
        return self.now() - datetime.fromisoformat(str(read)) > READ_LATELY
