"""Hand over what only this ledger has when another ledger has taken Prefect over.

Updates from the API, the command line and watchers are in the ledger alone. Those that came since the evaluator last
saw that its ledger decides may have come after the other ledger took over. The evaluator writes them to Prefect, where
the other ledger finds them. Each keeps its id, so it counts once.
"""

from __future__ import annotations

from assetflow.errors import PrefectRefused
from assetflow.evaluator.health import logger
from assetflow.evaluator.process import binding
from assetflow.evaluator.process.ledger_thread import LedgerThread
from assetflow.ledger.read.only_here import DECIDED_UNTIL, only_here
from assetflow.prefect_io.recordings import recording_to_artifact
from assetflow.prefect_io.rest import PrefectApi


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

    async def bind(self, *, take_over: bool) -> None:
        """Bind Prefect to the ledger.

        Raises:
            LedgerForeign, PrefectUnreachable, PrefectRefused: as `binding.bind`.
        """
        newest = await self._newest()
        await binding.bind(self._api, self._ledger.ledger.id, self._note, take_over=take_over)
        await self._decided_until(newest)

    async def check(self) -> None:
        """Check that Prefect is still bound to the ledger. If it is not, hand over what only this ledger has.

        A Prefect that is bound to none, because its variable or its database was deleted, is bound again.

        Raises:
            LedgerForeign, PrefectUnreachable, PrefectRefused: as `binding.check`.
        """
        await self.bind(take_over=False)

    async def _newest(self) -> int:
        return await self._ledger.call(self._ledger.ledger.reader.events.last_sequence)

    async def _note(self, other: str | None) -> None:
        # From here on, `assetflow emit` and the API write to Prefect.
        await self._ledger.note_decider(other)
        if other is not None:
            await self._hand_over(other)

    async def _hand_over(self, other: str) -> None:
        newest = await self._newest()
        for recording in await self._ledger.call(only_here, self._ledger.ledger.reader):
            try:
                await self._api.post("/artifacts/", recording_to_artifact(recording))
            except PrefectRefused as error:
                logger.warning("%d updates do not reach ledger %s: %s", len(recording.events), other, error)
        await self._decided_until(newest)

    async def _decided_until(self, sequence: int) -> None:
        if sequence != self._noted:
            await self._ledger.call(self._ledger.ledger.writer.set_cursor, DECIDED_UNTIL, sequence)
            self._noted = sequence
