"""Bind a Prefect server to one ledger, with a variable in Prefect.

Two ledgers on one Prefect would each decide on the same updates, and consumers would run twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast
from uuid import UUID

from assetflow.errors import LedgerForeign, PrefectRefused
from assetflow.prefect_io.names import LEDGER_VARIABLE
from assetflow.prefect_io.rest import Json, PrefectApi
from assetflow.prefect_io.stored_values import BY_NAME

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
