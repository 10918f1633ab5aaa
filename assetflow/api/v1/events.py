"""List and count events, and explain one with its receipts."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from assetflow.api.backend import TheReader
from assetflow.api.paging import LARGEST, Limit, Moment, Offset, Text, following, page
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.own import CountOut, EventsPage, EventTold, IdsIn, IdsOut, ReceiptsOut, RefusedPage
from assetflow.core.assets import Asset
from assetflow.core.codec.events import event_to_json
from assetflow.core.redaction import redacted
from assetflow.errors import InvalidCall
from assetflow.ledger.read.explanations import event_explanation
from assetflow.ledger.records import EventFilter

router = APIRouter(tags=["events"], route_class=EtagRoute)

Uri = Annotated[Text | None, Query(description="Of this asset.", examples=["s3://shop/orders"])]
Name = Annotated[Text | None, Query(description="Of the asset that this name belongs to.")]
Alias = Annotated[Text | None, Query(description="That came through this alias.")]
Key = Annotated[str | None, Query(max_length=250, description="With this partition key.")]
Later = Annotated[Moment | None, Query(description="Occurred later than this.")]
Earlier = Annotated[Moment | None, Query(description="Occurred earlier than this.")]
Cursor = Annotated[int | None, Query(ge=0, le=LARGEST, description="The `next` of the previous page.")]


def wanted_events(
    reader: TheReader,
    uri: Uri = None,
    name: Name = None,
    alias: Alias = None,
    partition_key: Key = None,
    flow_run: UUID | None = None,
    after: Later = None,
    before: Earlier = None,
) -> EventFilter | None:
    """Return the query for the ledger, or `None` if no asset has the name that the request gives."""
    if sum(each is not None for each in (uri, name, alias)) > 1:
        raise InvalidCall("uri, name and alias cannot be given together", where="query.uri", fix="Give one of them")
    owner = None if name is None else reader.assets.owner_of(name)
    if name is not None and owner is None:
        return None
    return EventFilter(
        uri=owner if uri is None else Asset(uri).uri,
        alias=alias,
        after=after,
        before=before,
        partition_key=partition_key,
        flow_run_id=flow_run,
    )


Wanted = Annotated[EventFilter | None, Depends(wanted_events)]


@router.get("/events", response_model=EventsPage, responses=answers())
def list_events(
    reader: TheReader,
    wanted: Wanted,
    order: Literal["asc", "desc"] = "desc",
    cursor: Cursor = None,
    offset: Offset = 0,
    limit: Limit = 100,
) -> Json:
    """List events in ledger order, newest first unless `order=asc`. For the next page, give `next` as `cursor`."""
    newest_first = order == "desc"
    if wanted is None:
        return Json(page([]))
    found = reader.events.find(
        _from(wanted, cursor, newest_first), newest_first=newest_first, limit=limit, offset=offset
    )
    items = [event_to_json(redacted(event)) for event in found]
    last = following(items, limit, "sequence")
    return Json(page(items, None if last is None else max(0, int(str(last)) + (-1 if newest_first else 1))))


@router.get("/events/count", response_model=CountOut, responses=answers())
def count_events(reader: TheReader, wanted: Wanted) -> Json:
    """Count the events that match."""
    return Json({"count": 0 if wanted is None else reader.events.count(wanted)})


@router.post("/events/known", response_model=IdsOut, responses=answers(413, 415))
def known_events(body: IdsIn, reader: TheReader) -> Json:
    """Return those of the given ids that are recorded or refused."""
    return Json({"ids": sorted(map(str, reader.events.known(body.ids)))})


@router.get("/events/{event_id}", response_model=EventTold, responses=answers(404))
def explain_event(event_id: UUID, reader: TheReader) -> Json:
    """Explain an event: where it came from, and its first 1,000 receipts, one for each consumer (and target key)."""
    return Json(event_explanation(reader, event_id).as_json())


@router.get("/events/{event_id}/receipts", response_model=ReceiptsOut, responses=answers(404))
def list_receipts(event_id: UUID, reader: TheReader, offset: Offset = 0, limit: Limit = 100) -> Json:
    """List the receipts of an event, one for each consumer (and target key). To page on, give `next` as `offset`."""
    told = event_explanation(reader, event_id, limit=limit, offset=offset)
    last = offset + len(told.receipts)
    return Json(page([each.as_json() for each in told.receipts], last if last < told.total else None))


@router.get("/refused", response_model=RefusedPage, responses=answers())
def list_refused(reader: TheReader, limit: Limit = 100) -> Json:
    """List the events that were refused, with the reasons, newest first."""
    return Json(page([each.as_json() for each in reader.events.refused(limit=limit)]))


def _from(query: EventFilter, cursor: int | None, newest_first: bool) -> EventFilter:
    if cursor is None:
        return query
    first, last = (None, cursor) if newest_first else (cursor, None)
    return replace(query, from_sequence=first, to_sequence=last)
