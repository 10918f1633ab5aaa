"""Record which versions of a source were seen. Contract 8.2."""

from __future__ import annotations

from fastapi import APIRouter

from assetflow.api.own_shapes import ObservationIn, ObservedOut
from assetflow.api.problems import answers
from assetflow.api.requests import Json, Text, TheBackend
from assetflow.core.explain import shown_event
from assetflow.core.json_data import fit_text
from assetflow.core.values.events import Origin
from assetflow.core.values.posted_events import key_by_hand
from assetflow.core.values.versions import check_data_version
from assetflow.operations.lookup import asset_called
from assetflow.operations.recording import observe

router = APIRouter(tags=["assets"])


@router.post("/assets/{asset:path}/observations", response_model=ObservedOut, responses=answers(413, 415))
def observe_asset(asset: Text, body: ObservationIn, backend: TheBackend) -> Json:
    """Record which versions of a source were seen. An item whose version is not the newest one gets an update.

    Only an asset that no deployed flow makes can be observed.
    """
    source = asset_called(backend.ledger.reader, asset)
    versions = {
        None if each.partition_key is None else key_by_hand(each.partition_key): check_data_version(
            each.data_version, where="data_version"
        )
        for each in body.items
    }
    recorded = observe(backend, source, versions, origin=Origin("api", by=fit_text(body.by)))
    return Json(
        {
            "uri": source.uri,
            "events": [shown_event(event) for event in recorded.events],
            "decisions": recorded.decisions_made,
            "warnings": list(recorded.warnings),
        }
    )
