"""Find out which ledger decides for a Prefect server, before something writes to one beside an evaluator."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from assetflow.core.redaction import without_passwords
from assetflow.errors import LedgerError
from assetflow.ledger.read.reader import Reader
from assetflow.prefect_io.connection import read_connection
from assetflow.prefect_io.ledger_variable import TAKEN_OVER, deciding_ledger

ASK_EVERY = 10.0


class Decider:
    """Tells which other ledger decides for this Prefect server.

    If the evaluator of this ledger was running when the other ledger took over, it wrote that to this ledger. If not,
    Prefect knows, which the decider asks now and then.

    Parameters:
        reader: reads this ledger.
        ask: asks Prefect.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        reader: Reader,
        ask: Callable[[], str | None] = deciding_ledger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader = reader
        self._ask = ask
        self._clock = clock
        self._asked = -ASK_EVERY
        self._owner: str | None = None

    def other(self) -> str | None:
        """Return the id of the other ledger, or `None` if, as far as is known, this one decides.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        noted = self._reader.cursor(TAKEN_OVER)
        if noted is not None:
            return str(noted)
        if self._clock() - self._asked >= ASK_EVERY:
            self._owner, self._asked = self._ask(), self._clock()
        return None if self._owner in (None, str(self._reader.id)) else self._owner


def ledger_at_hand() -> tuple[bool, str | None]:
    """Return True if the ledger of the settings belongs to their Prefect, and the id of a ledger that took it over."""
    address = read_connection().url
    with suppress(LedgerError), Reader.open() as reader:
        known = reader.prefect_api_url() or ""
        if address and known.rstrip("/") == without_passwords(address).rstrip("/"):
            return True, Decider(reader).other()
    return False, None
