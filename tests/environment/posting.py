"""An update as somebody posts it to Prefect who has nothing but HTTP."""

from datetime import datetime
from typing import Any
from uuid import uuid4


def posted_update(uri: str, occurred: datetime, **payload: Any) -> dict[str, Any]:
    """Return the JSON of the event, to which the caller may add fields."""
    event = {"id": str(uuid4()), "event": "assetflow.asset.updated", "occurred": occurred.isoformat()}
    return {**event, "resource": {"prefect.resource.id": uri}, "related": [], "payload": payload}
