"""Choose where past events, names and sequences are read: the local ledger, assetflow's API, or Prefect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from prefect.settings import PREFECT_API_URL

from assetflow.authoring.past_events.ledger_source import LocalLedger, PrefectSource, RecordedSource, RemoteLedger
from assetflow.authoring.past_events.reading import EventSource, InletEvents, declared_here
from assetflow.authoring.recording import current_recording
from assetflow.core.values.assets import Asset, AssetRef, Outlet
from assetflow.core.values.events import Pin
from assetflow.core.wire.declarations import FlowDeclaration
from assetflow.errors import ApiRefused, ApiUnreachable, LedgerError, LedgerForeign, LedgerMissing, RecordingFailed
from assetflow.prefect_io.internals import flow_run_contexts
from assetflow.settings import get_settings

_NO_ANSWER = (ApiUnreachable, ApiRefused, LedgerError)


def open_source() -> EventSource:
    """Return the nearest source of past events: the local ledger, else one behind assetflow's API, else Prefect."""
    ledger = None
    with suppress(LedgerError):
        ledger = _ledger()
    return PrefectSource() if ledger is None else RecordedSource(ledger)


def pin_of(asset: Outlet) -> Pin | None:
    """Return the newest event of an inlet when the running attempt started; `None` if nobody asked, or for an alias."""
    recording = current_recording()
    if recording is None or not recording.inputs or not isinstance(asset, Asset | AssetRef):
        return None
    with suppress(*_NO_ANSWER):
        return recording.inputs.get(_uri_of(asset) or "")
    return None


class CurrentInletEvents(InletEvents):
    """The past events of the inlets of the running task or flow, for code that imports the name.

    >>> from assetflow import Asset, inlet_events, task
    >>> orders = Asset("s3://shop/orders")
    >>> @task(inlets=[orders])
    ... def compare() -> float:
    ...     newest, before = inlet_events[orders][-1], inlet_events[orders][-2]
    ...     return newest.extra["rows"] / before.extra["rows"]

    It is also the default value of a parameter of the same name. The inlets of a flow are the assets that it reads and
    those that it is scheduled on. `inlet_events()` returns the mapping of the running task or flow, which you can pass
    to other code. Contract 7.2.

    Raises:
        InvalidFlow: neither a task nor a flow is running.
    """

    def __init__(self) -> None:
        super().__init__((), open_source, pin_of)

    def __call__(self) -> InletEvents:
        return InletEvents(self._inlets, open_source, pin_of)

    def __repr__(self) -> str:
        return "<inlet_events of the running task or flow>"

    def __reduce__(self) -> str:
        return "inlet_events"

    @property
    def _inlets(self) -> tuple[Outlet, ...]:
        return declared_here()


inlet_events = CurrentInletEvents()


def newest_events(assets: Iterable[Outlet]) -> Mapping[str, Pin]:
    """Return the newest event of each asset by URI; an empty mapping if no ledger answers."""
    read = [asset for asset in assets if isinstance(asset, Asset | AssetRef)]
    # The task must not fail because they are missing.
    with suppress(*_NO_ANSWER):
        ledger = _ledger() if read else None
        if ledger is not None:
            uris = [uri for asset in read if (uri := _uri_of(asset)) is not None]
            return ledger.newest_events(uris) if uris else {}
    return {}


def _uri_of(asset: Asset | AssetRef) -> str | None:
    """Return the URI of an asset, or of a reference; `None` for a name that nobody knows. Raises as `resolve_name`."""
    return asset.uri if asset.uri is not None else resolve_name(asset.name or "")


def resolve_outlet(name: str) -> str | None:
    """Return the URI of an outlet that is named by reference, or `None` if nobody knows the name.

    Raises:
        RecordingFailed: the ledger that may know it does not answer.
    """
    try:
        return resolve_name(name)
    except _NO_ANSWER as error:
        raise RecordingFailed(
            f"the update of the asset named {name!r} could not be recorded: which URI it has is not known. {error}",
            fix="Retry the task when the ledger answers again, or give the outlet as Asset(uri=..., name=...)",
        ) from error


def resolve_name(name: str) -> str | None:
    """Return the URI of the asset with this name, or `None` if neither the ledger nor the current flow knows it.

    Raises:
        ApiUnreachable, ApiRefused, LedgerError: the ledger does not answer, and the current flow does not know it.
    """
    try:
        ledger = _ledger()
        owner = None if ledger is None else ledger.owner_of(name)
    except _NO_ANSWER:
        owner = _named_in_flow(name)
        if owner is None:
            raise
    return owner if owner is not None else _named_in_flow(name)


def _named_in_flow(name: str) -> str | None:
    for context in flow_run_contexts():
        declaration = getattr(context.flow, "declaration", None)
        if isinstance(declaration, FlowDeclaration):
            declared = (*declaration.produces, *declaration.reads, *declaration.options.schedule.named_assets)
            for asset in declared:
                if isinstance(asset, Asset) and asset.name == name:
                    return asset.uri
    return None


def _ledger() -> LocalLedger | RemoteLedger | None:
    """Return the ledger on this machine, else the one behind ASSETFLOW_API_URL, else `None`.

    Raises:
        LedgerError: the ledger on this machine cannot be read, and ASSETFLOW_API_URL is not set.
    """
    api_url = get_settings().api_url
    try:
        local = _local_ledger()
    except LedgerError:
        if not api_url:
            raise
        local = None
    return local or (RemoteLedger() if api_url else None)


def _local_ledger() -> LocalLedger | None:
    """Return the ledger on this machine if it belongs to the Prefect server of this run, else `None`.

    Raises:
        LedgerError: it cannot be read.
    """
    settings = get_settings()
    if not settings.database_url and not (settings.home / "ledger.db").exists():
        return None
    try:
        return LocalLedger(PREFECT_API_URL.value() or "")
    except (LedgerMissing, LedgerForeign):
        return None
