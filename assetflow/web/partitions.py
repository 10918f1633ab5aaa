"""The partitions of an asset, as its page shows them: a map where keys are times, a list where they are not."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from assetflow.api.backend import TheBackend
from assetflow.core.partitions.ranges import series_of_keys
from assetflow.ledger.lookup import find_uri
from assetflow.web.asset import Asked
from assetflow.web.calendar import calendar_of
from assetflow.web.pages import ThePages, url

router = APIRouter()

KEYS = 200
SAMPLE = 300


@router.get("/asset/partitions")
def show_partitions(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    asset: Asked,
    until: datetime | None = None,
    after: Annotated[str, Query(max_length=250)] = "",
) -> Response:
    """A part of the asset's page; empty if the asset has no partitions.

    Parameters:
        until: where the map ends; now, or the newest key, if not given.
        after: of keys that are no times, the first ones behind this one.
    """
    reader = backend.ledger.reader
    uri = find_uri(reader, asset)
    known = reader.keys_of(uri)
    ordered = sorted(known)
    # How the first and the last ones are written tells how all are; there may be very many.
    series = series_of_keys(ordered[:SAMPLE] + ordered[-SAMPLE:])
    keys = [] if series is not None else ordered[bisect_right(ordered, after) :]
    here = url("/asset/partitions", asset=uri)
    return pages.show(
        request,
        "partitions.html",
        fragment="partitions",
        uri=uri,
        total=len(known),
        calendar=None if series is None else calendar_of(series, known, backend.now(), _wall(until)),
        keys=keys[:KEYS],
        more=url("/asset/partitions", asset=uri, after=keys[KEYS - 1]) if len(keys) > KEYS else "",
        first=here if after else "",
        here=here,
    )


def _wall(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(tzinfo=None)
