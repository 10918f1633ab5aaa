"""Find out which ledger decides for a Prefect server, before something writes to one beside an evaluator."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from assetflow.core.values.addresses import without_passwords
from assetflow.core.values.assets import Asset
from assetflow.errors import AssetflowError, LedgerError
from assetflow.ledger import Ledger
from assetflow.ledger.read.events import DECIDED_UNTIL, only_here
from assetflow.ledger.read.reader import Reader
from assetflow.operations.lookup import asset_called
from assetflow.prefect_io import recordings
from assetflow.prefect_io.connection import read_connection
from assetflow.prefect_io.rest import TAKEN_OVER, TaskApi, deciding_ledger
from assetflow.settings import get_settings

ASK_EVERY = 10.0


_UNSURE = (
    "Prefect does not answer and no evaluator is running, so nobody knows whether another ledger has taken over; "
    "if one has, it gets the update at the next `assetflow emit` or start of an evaluator here that Prefect answers"
)


class Decider:
    """Tells which other ledger decides for this Prefect server.

    If the evaluator of this ledger was running when the other ledger took over, it wrote that to this ledger. If not,
    Prefect knows, which the decider asks now and then. What Prefect has answered counts until it answers again.

    Parameters:
        reader: reads this ledger.
        ask: asks Prefect.
        clock: returns the time in seconds.

    Attributes:
        silent: why Prefect did not answer when it was asked last; `None` if it did.
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
        self.silent: AssetflowError | None = None

    def other(self) -> str | None:
        """Return the id of the other ledger, or `None` if this one decides, or nobody knows.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        noted = self._reader.cursor(TAKEN_OVER)
        if noted is not None:
            return str(noted)
        if self._clock() - self._asked >= ASK_EVERY:
            self._look()
        return None if self._owner in (None, str(self._reader.id)) else self._owner

    def _look(self) -> None:
        try:
            self._owner, self.silent = self._ask(), None
        except AssetflowError as error:
            self.silent = error
        self._asked = self._clock()


@dataclass(frozen=True)
class AtHand:
    """The ledger that an update by hand goes to.

    Attributes:
        decides: True if the ledger of the settings belongs to their Prefect, and no other one is known to decide.
        other: the id of the ledger that has taken over from it.
        warnings: warnings for the user who records the update.
    """

    decides: bool
    other: str | None = None
    warnings: Sequence[str] = ()


def ledger_at_hand() -> AtHand:
    """Tell whether updates belong into the ledger of the settings. If not, hand over what only that ledger has."""
    with suppress(LedgerError), Reader.open() as reader:
        if _belongs_to_prefect(reader):
            return _at_hand(reader)
    return AtHand(False)


def asset_at_hand(text: str) -> Asset:
    """Return the asset that a user names. Only a ledger that belongs to the Prefect of the settings knows names.

    Raises:
        InvalidAsset: the text is not a name, and cannot be a URI.
    """
    with suppress(LedgerError), Reader.open() as reader:
        if _belongs_to_prefect(reader):
            return asset_called(reader, text)
    return Asset(text)


def _belongs_to_prefect(reader: Reader) -> bool:
    address, known = read_connection().url, reader.prefect_api_url() or ""
    return bool(address) and known.rstrip("/") == without_passwords(address).rstrip("/")


def _at_hand(reader: Reader) -> AtHand:
    decider = Decider(reader)
    other = decider.other()
    if other is not None:
        _hand_over(other)
        return AtHand(False, other)
    if decider.silent is None or reader.evaluators().alive:
        return AtHand(True)
    return AtHand(True, warnings=[f"{_UNSURE} ({decider.silent.message})"])


def _hand_over(other: str) -> None:
    """Send to Prefect what only this ledger has, and note who decides. What fails is done at the next time."""
    with suppress(AssetflowError), Ledger.open() as ledger:
        if ledger.reader.cursor(TAKEN_OVER) is not None:
            return
        newest = ledger.reader.events.last_sequence()
        with TaskApi.connect(patience=get_settings().recording_timeout) as api:
            for recording in only_here(ledger.reader):
                recordings.keep(api, recording)
        ledger.writer.set_cursor(DECIDED_UNTIL, newest)
        ledger.writer.set_cursor(TAKEN_OVER, other)
