"""The partitions of an asset, as its page shows them: a map where keys are times, a list where they are not."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from assetflow.api.backend import TheBackend
from assetflow.core.partitions.ranges import series_of_keys
from assetflow.ledger.lookup import find_uri
from assetflow.web.asset import Asked
from assetflow.web.calendar import Known, calendar_of
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
    reader, now = backend.ledger.reader, backend.now()
    uri = find_uri(reader, asset)
    keys_of = partial(reader.catalog.keys, uri)
    # How the first and the last ones are written tells how all are; there may be very many.
    first, last = keys_of(limit=SAMPLE), keys_of(newest_first=True, limit=SAMPLE)
    series = series_of_keys([*first, *last])
    listed = keys_of(after=after, limit=KEYS + 1) if series is None else []
    here = url("/asset/partitions", asset=uri)
    return pages.show(
        request,
        "partitions.html",
        fragment="partitions",
        uri=uri,
        total=reader.catalog.count_keys(uri),
        calendar=None if series is None else calendar_of(series, Known(first[0], last[0], keys_of), now, _wall(until)),
        keys=listed[:KEYS],
        more=url("/asset/partitions", asset=uri, after=listed[KEYS - 1]) if len(listed) > KEYS else "",
        first=here if after else "",
    )


def _wall(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(tzinfo=None)
