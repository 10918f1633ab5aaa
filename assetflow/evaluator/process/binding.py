"""Hand over what only this ledger has when another ledger has taken Prefect over.

Updates from the API, the command line and watchers are in the ledger alone. Those that came since the evaluator last
saw that its ledger decides may have come after the other ledger took over. The evaluator writes them to Prefect, where
the other ledger finds them. Each keeps its id, so it counts once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast
from uuid import UUID

from assetflow.errors import LedgerForeign, PrefectRefused
from assetflow.evaluator.health import logger
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger.read.events import DECIDED_UNTIL, only_here
from assetflow.prefect_io.names import LEDGER_VARIABLE
from assetflow.prefect_io.recordings import recording_to_artifact
from assetflow.prefect_io.rest import Json, PrefectApi
from assetflow.prefect_io.stored_values import BY_NAME, TAKEN_OVER

# Stores in the ledger the id of the other ledger that decides, or `None`.
Note = Callable[[str | None], Awaitable[None]]


async def bind(api: PrefectApi, ledger: UUID, note: Note | None = None, *, take_over: bool = False) -> None:
    """Bind this Prefect to a ledger, if it is bound to none, or if the ledger takes it over.

    Parameters:
        note: as for `check`.
        take_over: True to bind it although it is bound to another ledger.

    Raises:
        LedgerForeign: it is bound to another ledger.
        PrefectUnreachable, PrefectRefused
    """
    owner = await _owner(api)
    if owner is None:
        try:
            await api.post("/variables/", {"name": LEDGER_VARIABLE, "value": str(ledger), "tags": ["assetflow"]})
        except PrefectRefused:
            owner = await _owner(api)  # Another evaluator was faster.
    if owner is not None and owner != str(ledger) and take_over:
        await api.patch(BY_NAME, {"value": str(ledger)})
    await check(api, ledger, note)


async def check(api: PrefectApi, ledger: UUID, note: Note | None = None) -> None:
    """Check that this Prefect is still bound to the ledger.

    Parameters:
        note: called with the id of the other ledger, or with `None`. It is stored in the ledger for processes that
            write to the ledger without an evaluator.

    Raises:
        LedgerForeign: it is bound to another ledger.
        PrefectUnreachable, PrefectRefused
    """
    owner = await _owner(api)
    if note is not None:
        await note(None if owner == str(ledger) else owner)
    if owner != str(ledger):
        raise LedgerForeign(
            f"this Prefect belongs to the ledger {owner}, not to {ledger}",
            where=api.url,
            fix="Start the evaluator with that ledger (ASSETFLOW_HOME, ASSETFLOW_DATABASE_URL), "
            "or with --take-over: then this ledger decides, and the other evaluator stops",
        )


async def _owner(api: PrefectApi) -> str | None:
    variable = cast("Json | None", await api.get(BY_NAME))
    return None if variable is None else str(variable["value"])


class Binding:
    """The bond between this ledger and Prefect.

    Parameters:
        api: Prefect's API.
        ledger: the ledger, as its evaluator has it.
    """

    def __init__(self, api: PrefectApi, ledger: LedgerThread) -> None:
        self._api = api
        self._ledger = ledger
        self._noted: int | None = None
        self._decider: list[str | None] = []

    async def bind(self, *, take_over: bool) -> None:
        """Bind Prefect to the ledger.

        Raises:
            LedgerForeign, PrefectUnreachable, PrefectRefused: as `bind`.
        """
        newest = await self._newest()
        await bind(self._api, self._ledger.ledger.id, self._note, take_over=take_over)
        await self._decided_until(newest)

    async def check(self) -> None:
        """Check that Prefect is still bound to the ledger. If it is not, hand over what only this ledger has.

        A Prefect that is bound to none, because its variable or its database was deleted, is bound again.

        Raises:
            LedgerForeign, PrefectUnreachable, PrefectRefused: as `check`.
        """
        await self.bind(take_over=False)

    async def _newest(self) -> int:
        return await self._ledger.call(self._ledger.reader.events.last_sequence)

    async def _note(self, other: str | None) -> None:
        # From here on, `assetflow emit` and the API write to Prefect.
        if self._decider != [other]:
            await self._ledger.call(self._ledger.writer.set_cursor, TAKEN_OVER, other)
            self._decider = [other]
        if other is not None:
            await self._hand_over(other)

    async def _hand_over(self, other: str) -> None:
        newest = await self._newest()
        for recording in await self._ledger.call(only_here, self._ledger.reader):
            try:
                await self._api.post("/artifacts/", recording_to_artifact(recording))
            except PrefectRefused as error:
                logger.warning("%d updates do not reach ledger %s: %s", len(recording.events), other, error)
        await self._decided_until(newest)

    async def _decided_until(self, sequence: int) -> None:
        if sequence != self._noted:
            await self._ledger.call(self._ledger.writer.set_cursor, DECIDED_UNTIL, sequence)
            self._noted = sequence
