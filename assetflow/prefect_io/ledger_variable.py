"""Read the Prefect variable that names the ledger that decides there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from assetflow.errors import AssetflowError
from assetflow.prefect_io.names import LEDGER_VARIABLE
from assetflow.prefect_io.task_api import TaskApi

BY_NAME = f"/variables/name/{LEDGER_VARIABLE}"
SECONDS_TO_ANSWER = 1.0
# The cursor that holds the id of the ledger that has taken Prefect over from this one.
TAKEN_OVER = "taken-over"


def deciding_ledger() -> str | None:
    """Return the id of the ledger that decides for the Prefect in the settings, or `None` if Prefect knows none."""
    try:
        with TaskApi.connect(patience=SECONDS_TO_ANSWER) as api:
            variable = cast("Mapping[str, object]", api.get(BY_NAME))
    except AssetflowError:
        return None
    return str(variable["value"])
