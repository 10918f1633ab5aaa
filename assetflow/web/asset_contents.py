"""What the page of an asset says: its events with metrics and receipts, its freshness, its watchers, its forms."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from fastapi import Request, Response

from assetflow.api.backend import Backend
from assetflow.core.values.redaction import redacted
from assetflow.errors import UnknownAsset
from assetflow.ledger.read.assets import AssetUsers, ListedAsset
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import EventFilter
from assetflow.operations.lateness import late_soon
from assetflow.operations.lookup import find_uri
from assetflow.web.forms import Form
from assetflow.web.pages import Pages, address, url
from assetflow.web.plots import metrics_words, plots_of, schema_changes

EVENTS = 20


@dataclass(frozen=True)
class AssetAndUsers:
    """An asset, with the flows that make, read and run on it."""

    listed: ListedAsset
    users: AssetUsers

    @property
    def uri(self) -> str:
        return self.listed.record.uri


def find(reader: Reader, text: str) -> AssetAndUsers:
    """Return the asset that a user names.

    Raises:
        UnknownAsset: the ledger has no such asset.
    """
    uri = find_uri(reader, text)
    listed = reader.assets.get(uri=uri)
    if listed is None:
        raise UnknownAsset(f"no asset is called {text!r}")
    return AssetAndUsers(listed, reader.assets.users_of([listed.record])[uri])


def asset_page(
    request: Request,
    pages: Pages,
    backend: Backend,
    found: AssetAndUsers,
    *,
    status: int = 200,
    key: str = "",
    before: int | None = None,
    at: datetime | None = None,
    started: UUID | None = None,
    form: str = "",
    event_form: Form | None = None,
    run_form: Form | None = None,
    refused: str = "",
) -> Response:
    """Show an asset.

    Parameters:
        form: the dialog that is open.
        event_form, run_form: what was typed into them, with what is wrong with it.
        refused: why nothing was changed.
    """
    reader = backend.ledger.reader
    policy = reader.policies.of_asset(found.uri)
    query = EventFilter(
        uri=found.uri, partition_key=key or None, to_sequence=None if before is None else max(0, before - 1)
    )
    events = [redacted(event) for event in reader.events.find(query, newest_first=True, limit=EVENTS + 1)]
    shown = events[:EVENTS]
    here = address(found.uri)
    return pages.show(
        request,
        "asset.html",
        fragment="live_part",
        status=status,
        found=found,
        record=found.listed.record,
        name=found.listed.name,
        users=found.users,
        freshness=policy,
        data_path=[] if policy is None else reader.freshness.data_path(found.uri),
        deadline=None if policy is None else policy.record.policy.next_deadline(backend.now()),
        is_late_soon=policy is not None and bool(late_soon(reader, [policy], backend.now())),
        watchers=reader.watchers.of_asset(found.uri),
        now=backend.now(),
        events=shown,
        receipts=reader.receipts.counts([event.sequence for event in shown if event.sequence is not None]),
        plots=plots_of(shown) if before is None else [],
        has_metrics=any(event.metrics for event in shown),
        has_extra=any(event.extra for event in shown),
        metrics_words=metrics_words,
        schema_changes=schema_changes(events),
        has_keys=any(event.partition_key is not None for event in events),
        key=key,
        here=url("/asset", asset=found.uri, key=key, before=before),
        newest=url("/asset", asset=found.uri, key=key) if before is not None else "",
        older=url("/asset", asset=found.uri, key=key, before=shown[-1].sequence) if len(events) > EVENTS else "",
        address=here,
        has_status=reader.freshness.compares(),
        partitions=url("/asset/partitions", asset=found.uri, key=key, at=at.isoformat() if at else None),
        started=started,
        refused=refused,
        open=form,
        event_form=event_form or Form(),
        run_form=run_form or Form(),
    )
