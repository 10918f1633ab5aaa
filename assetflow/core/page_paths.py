"""The paths of the pages of assets, events, consumers and runs."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID


def asset_path(uri: str) -> str:
    """Return the path of an asset's page."""
    return f"/asset?asset={quote(uri, safe='')}"


def event_path(event: UUID) -> str:
    """Return the path of an event's page."""
    return f"/events/{event}"


def consumer_path(name: str) -> str:
    """Return the path of a consumer's page.

    Parameters:
        name: `flow/deployment`.
    """
    flow, _, deployment = name.partition("/")
    return f"/consumers/{quote(flow, safe='')}/{quote(deployment, safe='')}"


def run_path(flow_run: UUID) -> str:
    """Return the path of a flow run's page."""
    return f"/runs/{flow_run}"
