"""Which source of past events is at hand, and what it tells about names and sequences."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from prefect.settings import PREFECT_API_URL

from assetflow.authoring.api_source import RemoteLedger
from assetflow.authoring.prefect_source import PrefectSource
from assetflow.authoring.reading import EventSource, InletEvents, declared_here
from assetflow.authoring.recorded_source import RecordedSource
from assetflow.core.assets import Asset, AssetRef, Outlet
from assetflow.core.codec.schedules import FlowDeclaration
from assetflow.errors import ApiRefused, ApiUnreachable, AssetflowError
from assetflow.prefect_io.internals import flow_run_contexts
from assetflow.settings import get_settings

if TYPE_CHECKING:
    from assetflow.authoring.ledger_source import LocalLedger


def open_source() -> EventSource:
    """The nearest source of past events: the local ledger, else one behind assetflow's API, else Prefect itself."""
    return _ledger() or PrefectSource()


def inlet_events() -> InletEvents:
    """`inlet_events()[asset]`: the past events of the inlets of the task, or of what the flow reads."""
    return InletEvents(declared_here(), open_source)


def newest_sequences(assets: Iterable[Outlet]) -> dict[str, int]:
    """URI to the newest sequence that the ledger knows now; empty where no ledger is at hand."""
    uris = [asset.uri for asset in assets if isinstance(asset, Asset | AssetRef) and asset.uri is not None]
    ledger = _ledger() if uris else None
    # Worth keeping, and not worth failing for.
    with suppress(ApiUnreachable, ApiRefused):
        return {} if ledger is None else ledger.newest_sequences(uris)
    return {}


def resolve_name(name: str) -> str | None:
    """The URI of the asset with this name; none if neither the ledger nor the flow around this code knows it."""
    ledger = _ledger()
    owner = None
    with suppress(ApiUnreachable, ApiRefused):
        owner = None if ledger is None else ledger.owner_of(name)
    if owner is not None:
        return owner
    for context in flow_run_contexts():
        declaration = getattr(context.flow, "declaration", None)
        if isinstance(declaration, FlowDeclaration):
            declared = (*declaration.produces, *declaration.reads, *declaration.options.schedule.named_assets)
            for asset in declared:
                if isinstance(asset, Asset) and asset.name == name:
                    return asset.uri
    return None


def _ledger() -> RecordedSource | None:
    """The ledger: on this machine, or behind the API that ASSETFLOW_API_URL names."""
    local = _local_ledger()
    if local is not None:
        return RecordedSource(local)
    return RecordedSource(RemoteLedger()) if get_settings().api_url else None


def _local_ledger() -> LocalLedger | None:
    """The ledger that the settings name, if it is here and belongs to the Prefect server of this run."""
    settings = get_settings()
    if not settings.database_url and not (settings.home / "ledger.db").exists():
        return None
    # SQLAlchemy costs half a second, and most tasks have no ledger at hand.
    from assetflow.authoring.ledger_source import LocalLedger

    try:
        return LocalLedger(PREFECT_API_URL.value() or "")
    except AssetflowError:
        return None
