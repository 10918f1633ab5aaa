"""The status on an asset's page: whether it is up to date, what has changed, who waits for it, and its versions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from assetflow.api.backend import TheBackend
from assetflow.api.params import NamedAsset
from assetflow.operations.lookup import find_uri
from assetflow.web.pages import ThePages

router = APIRouter()

CAUSES = 10
VERSIONS = 8


@router.get("/asset/status")
def show_status(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    asset: NamedAsset,
    key: Annotated[str, Query(max_length=250)] = "",
) -> Response:
    """Show the status as a part of the asset's page; the part is empty if no Eager flow needs the asset."""
    reader, now = backend.ledger.reader, backend.now()
    uri = find_uri(reader, asset)
    listed = reader.assets.get(uri=uri)
    told = reader.freshness.status(uri, key or None, now)
    return pages.show(
        request,
        "asset_status.html",
        fragment="status",
        uri=uri,
        name=uri if listed is None else listed.name,
        key=key,
        told=told,
        causes=told.causes[:CAUSES],
        readers=reader.freshness.readers(uri, now),
        versions=reader.freshness.versions(uri, key or None, limit=VERSIONS),
    )
