"""Blocks of Prefect that hold a URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from assetflow.errors import PrefectNotFound
from assetflow.prefect_io.rest import PrefectApi

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
