"""Read the Prefect variable that names the ledger that decides there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from assetflow.errors import PrefectNotFound, PrefectUnreachable
from assetflow.prefect_io.answers import unreadable
from assetflow.prefect_io.names import LEDGER_VARIABLE
from assetflow.prefect_io.rest import PrefectApi, TaskApi

BY_NAME = f"/variables/name/{LEDGER_VARIABLE}"
SECONDS_TO_ANSWER = 1.0
SECONDS_WHILE_BUSY = 10.0
# The cursor that holds the id of the ledger that has taken Prefect over from this one.
TAKEN_OVER = "taken-over"


def deciding_ledger() -> str | None:
    """Return the id of the ledger that decides for the Prefect in the settings, or `None` if Prefect knows none.

    A busy Prefect is asked for longer than one that is away.

    Raises:
        PrefectUnreachable, PrefectRefused: nobody knows which ledger decides.
    """
    try:
        return _asked(SECONDS_TO_ANSWER)
    except PrefectUnreachable as error:
        if not error.is_busy:
            raise
    return _asked(SECONDS_WHILE_BUSY)


def _asked(patience: float) -> str | None:
    with TaskApi.connect(patience=patience) as api:
        try:
            variable = cast("Mapping[str, object]", api.get(BY_NAME))
            return str(variable["value"])
        except PrefectNotFound:
            return None
        except (KeyError, TypeError) as error:
            raise unreadable(error, api.url) from error


# The field of a Secret block, and those that blocks for databases and brokers have.
_FIELDS = ("value", "url", "connection_string")


async def read_url_block(api: PrefectApi, name: str) -> str | None:
    """Return the URL that a block holds, or `None` if there is no such block, or no URL in it.

    Parameters:
        name: the slug of the block's type and the block's name, such as `secret/orders-queue`.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    kind, _, own = name.partition("/")
    try:
        found = await api.get(f"/block_types/slug/{kind}/block_documents/name/{own}", {"include_secrets": "true"})
    except PrefectNotFound:
        return None
    data = cast("Mapping[str, Mapping[str, object]]", found or {}).get("data", {})
    return next((value for field in _FIELDS if isinstance(value := data.get(field), str)), None)
