"""Where the pages of assets, events, consumers and runs are, below the address of the server."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID


def asset_path(uri: str) -> str:
    return f"/asset?asset={quote(uri, safe='')}"


def event_path(event: UUID) -> str:
    return f"/events/{event}"


def consumer_path(name: str) -> str:
    """The page of a consumer, `flow/deployment`."""
    flow, _, deployment = name.partition("/")
    return f"/consumers/{quote(flow, safe='')}/{quote(deployment, safe='')}"


def run_path(flow_run: UUID) -> str:
    return f"/runs/{flow_run}"
