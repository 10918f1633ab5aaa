"""List and count events, and explain one with its receipts."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from assetflow.api.own_shapes import CountOut, IdsIn, IdsOut
from assetflow.api.problems import answers
from assetflow.api.requests import LARGEST, EtagRoute, Json, Moment, Page, Text, TheBackend, ThePage, TheReader
from assetflow.core.explain import EventExplanation, ReceiptExplanation, ShownEvent, shown_event
from assetflow.core.explain.trace import Trace
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent
from assetflow.errors import InvalidCall
from assetflow.ledger.read.explanations import event_explanation
from assetflow.ledger.records import EventFilter, RefusedRecord
from assetflow.operations.graph import trace_of

router = APIRouter(tags=["events"], route_class=EtagRoute)

Uri = Annotated[Text | None, Query(description="Of this asset.", examples=["s3://shop/orders"])]
Name = Annotated[Text | None, Query(description="Of the asset that this name belongs to.")]
Alias = Annotated[Text | None, Query(description="That came through this alias.")]
Key = Annotated[Text | None, Query(max_length=250, description="With this partition key.")]
Later = Annotated[Moment | None, Query(description="Occurred later than this.")]
Earlier = Annotated[Moment | None, Query(description="Occurred earlier than this.")]
Offset = Annotated[int, Query(ge=0, le=LARGEST, description="Begin after this many events; of the first page.")]


def wanted_events(
    reader: TheReader,
    uri: Uri = None,
    name: Name = None,
    alias: Alias = None,
    partition_key: Key = None,
    flow_run_id: UUID | None = None,
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
        flow_run_id=flow_run_id,
    )


Wanted = Annotated[EventFilter | None, Depends(wanted_events)]


@router.get("/events", responses=answers())
def list_events(
    reader: TheReader,
    wanted: Wanted,
    page: ThePage,
    order: Literal["asc", "desc"] = "desc",
    offset: Offset = 0,
) -> Page[ShownEvent]:
    """List events in ledger order, newest first unless `order=asc`."""
    newest_first, found = order == "desc", list[AssetEvent]()
    if wanted is not None:
        query, skip = _from(wanted, page.number, newest_first), offset if page.number is None else 0
        found = reader.events.find(query, newest_first=newest_first, limit=page.limit, offset=skip)
    return page.after([shown_event(event) for event in found], lambda each: each.sequence or 0)


@router.get("/events/count", response_model=CountOut, responses=answers())
def count_events(reader: TheReader, wanted: Wanted) -> Json:
    """Count the events that match."""
    return Json({"count": 0 if wanted is None else reader.events.count(wanted)})


@router.post("/events/known", response_model=IdsOut, responses=answers(413, 415))
def find_known_events(body: IdsIn, reader: TheReader) -> Json:
    """Return those of the given ids that are recorded or refused."""
    return Json({"ids": sorted(map(str, reader.events.known(body.ids)))})


@router.get("/events/{event_id}", responses=answers(404))
def explain_event(event_id: UUID, reader: TheReader) -> EventExplanation:
    """Explain an event: where it came from, and its first 1,000 receipts, one for each consumer (and target key)."""
    return event_explanation(reader, event_id)


@router.get("/events/{event_id}/receipts", responses=answers(404))
def list_receipts(event_id: UUID, reader: TheReader, page: ThePage) -> Page[ReceiptExplanation]:
    """List the receipts of an event, one for each consumer (and target key)."""
    told = event_explanation(reader, event_id, limit=page.limit, offset=page.number or 0)
    return page.counted(told.receipts, told.total_receipts)


@router.get("/refused", responses=answers())
def list_refused(reader: TheReader, page: ThePage) -> Page[RefusedRecord]:
    """List the events that were refused, with the reasons, newest first."""
    found = reader.events.refused(before=page.number, limit=page.limit)
    return page.after(found, lambda each: each.number)


def _from(query: EventFilter, sequence: int | None, newest_first: bool) -> EventFilter:
    """Return the query for the events that follow one."""
    if sequence is None:
        return query
    return replace(query, to_sequence=sequence - 1) if newest_first else replace(query, from_sequence=sequence + 1)


@router.get("/trace/{what:path}", responses=answers(404))
def get_trace(what: Text, backend: TheBackend) -> Trace:
    """Return all that an update, a run, or the newest update of an asset led to, line by line. Contract 7.4.

    An event is named by its id or number, a run by its id or that of its decision, an asset by its name or URI.
    """
    return trace_of(backend.ledger.reader, what, backend.now())
