"""Which ledger a Prefect server belongs to: a variable in Prefect says so.

Two ledgers on one Prefect would each decide on the same updates, and consumers would run twice.
"""

from __future__ import annotations

from typing import cast
from uuid import UUID

from assetflow.errors import LedgerForeign, PrefectRefused
from assetflow.prefect_io.names import LEDGER_VARIABLE
from assetflow.prefect_io.rest import Json, PrefectApi

_BY_NAME = f"/variables/name/{LEDGER_VARIABLE}"


async def bind(api: PrefectApi, ledger: UUID, *, take_over: bool = False) -> None:
    """Let a ledger be the one of this Prefect, if none is or if it takes over.

    Raises:
        LedgerForeign: another ledger is.
        PrefectUnreachable, PrefectRefused
    """
    owner = await _owner(api)
    if owner is None:
        try:
            await api.post("/variables/", {"name": LEDGER_VARIABLE, "value": str(ledger), "tags": ["assetflow"]})
        except PrefectRefused:
            owner = await _owner(api)  # Another evaluator was faster.
    if owner is not None and owner != str(ledger) and take_over:
        await api.patch(_BY_NAME, {"value": str(ledger)})
    await check(api, ledger)


async def check(api: PrefectApi, ledger: UUID) -> None:
    """Make sure that the ledger is still the one of this Prefect.

    Raises:
        LedgerForeign: another ledger is.
        PrefectUnreachable, PrefectRefused
    """
    owner = await _owner(api)
    if owner != str(ledger):
        raise LedgerForeign(
            f"this Prefect belongs to the ledger {owner}, not to {ledger}",
            where=api.url,
            fix="Start the evaluator with that ledger (ASSETFLOW_HOME, ASSETFLOW_DATABASE_URL), "
            "or with --take-over: then this ledger decides, and the other evaluator stops",
        )


async def _owner(api: PrefectApi) -> str | None:
    variable = cast("Json | None", await api.get(_BY_NAME))
    return None if variable is None else str(variable["value"])
