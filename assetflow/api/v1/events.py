"""Record events by URI, thousands in one POST, each with an idempotency key; list, count, explain and trace them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal, cast
from uuid import UUID, uuid4, uuid5

from fastapi import APIRouter, Depends, Query, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from assetflow.api.own_shapes import CountOut, EventIn, EventsIn, IdsIn, IdsOut, RecordedOut
from assetflow.api.problems import answers, field_errors, field_fix
from assetflow.api.requests import (
    LARGEST,
    AsksPreview,
    Backend,
    EtagRoute,
    Json,
    Moment,
    Page,
    Text,
    TheBackend,
    ThePage,
    TheReader,
    with_warnings,
)
from assetflow.core.explain import EventExplanation, ReceiptExplanation, ShownEvent, shown_event
from assetflow.core.explain.trace import Trace
from assetflow.core.json_data import fit_text
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording, event_by_hand
from assetflow.core.watchers.intake import MOST_BYTES, check_signature, message_id
from assetflow.errors import AssetflowError, InvalidCall, InvalidEvent, TooLarge
from assetflow.ledger.read.explanations import event_explanation
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import EventFilter, RefusedRecord
from assetflow.operations.graph import trace_of
from assetflow.operations.recording import (
    Received,
    RecordedUpdates,
    find_webhook,
    keep_refused,
    receive,
    record,
    secret_of,
)
from assetflow.operations.what_if import Preview, if_updated

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


recording_router = APIRouter(tags=["events"])


@dataclass
class _Item:
    """One update of a POST: its event, or the error in it."""

    index: int
    given: object
    event: AssetEvent | None = None
    error: AssetflowError | None = None


_NAMESPACE = UUID("c1a4f9f2-3c53-5b5e-8d3f-0d3b8e6f7a11")
_SOME = {"model": RecordedOut, "description": "Some were refused; the others are recorded"}
_NONE = {"model": RecordedOut, "description": "All were refused"}


@recording_router.post(
    "/events", response_model=RecordedOut | Preview, responses=answers(413, 415) | {207: _SOME, 422: _NONE}
)
def record_events(body: EventsIn, backend: TheBackend, preview: AsksPreview = False) -> Json:
    """Record updates. All valid ones become one recording, followed by one pass of the consumers.

    The updates are durable when this answers. The answer has the status of each: `recorded`, `known` (its id was
    recorded before, nothing changes) or `refused` with the reason. If another ledger has taken over from this one, the
    updates are recorded in Prefect for that ledger, and a warning says so. The HTTP status is 207 if some were refused,
    and 422 with the same document if all were. It is safe to send the same request again, with ids.

    With `preview=true` nothing is recorded: the answer says what the updates would lead to.
    """
    now = backend.now()
    if preview:
        return Json(_previewed(body, backend, now))
    items, general = _read(body, backend.ledger.reader, now)
    good = [item.event for item in items if item.event is not None]
    general += _unusual(backend.ledger.reader, good)
    recorded = record(backend, Recording(uuid4(), tuple(good))) if good else RecordedUpdates([])
    for item in items:
        if item.error is not None and not isinstance(item.error, TooLarge):
            keep_refused(backend, item.given, item.error)
    document = _document(items, recorded, general)
    status = 200 if document["refused"] == 0 else 207 if good else 422
    return Json(document, status)


def _previewed(body: EventsIn, backend: Backend, now: datetime) -> Preview:
    """Return what the updates would lead to. One that would be refused is the error of the whole request."""
    items, _ = _read(body, backend.ledger.reader, now)
    for item in items:
        if item.error is not None:
            raise item.error.at(f"events.{item.index}")
    events = [item.event for item in items if item.event is not None]
    return if_updated(backend.ledger.reader, events, now)


def _read(body: EventsIn, reader: Reader, now: datetime) -> tuple[list[_Item], list[str]]:
    """Return the updates of a POST, and warnings about them."""
    given = cast("Sequence[object]", body.events)
    texts = {str(cast("Mapping[str, object]", each).get("uri")) for each in given if isinstance(each, Mapping)}
    uris = reader.assets.uris_called(texts)
    return with_warnings(lambda: [_item(number, each, uris, now) for number, each in enumerate(given)])


def _item(index: int, given: object, uris: Mapping[str, str], now: datetime) -> _Item:
    """Return one update of a POST.

    Parameters:
        uris: the URI of each name that an update gives instead.
    """
    item = _Item(index, given)
    try:
        wanted = EventIn.model_validate(given)
        item.event = _event(wanted, uris.get(wanted.uri, wanted.uri), now)
    except ValidationError as error:
        first = field_errors(error.errors())[0]
        place = ".".join(map(str, cast("list[object]", first["loc"])))
        item.error = InvalidEvent(str(first["msg"]), where=place or "event", fix=field_fix(error.errors()))
    except AssetflowError as error:
        item.error = error
    return item


def _event(wanted: EventIn, uri: str, now: datetime) -> AssetEvent:
    name = wanted.uri if wanted.name is None and uri != wanted.uri else wanted.name
    try:
        asset = Asset(uri, name=name, group=wanted.group)
    except AssetflowError as error:
        raise type(error)(error.message, where="uri", fix=error.fix, rule=error.rule) from error
    return event_by_hand(
        asset,
        id=uuid4() if wanted.id is None else event_id(wanted.id),
        occurred=wanted.occurred or now,
        origin=Origin("api", by=fit_text(wanted.by)),
        extra=wanted.extra,
        partition_key=wanted.partition_key,
        aliases=tuple(wanted.aliases),
        data_version=wanted.data_version,
    )


def event_id(text: str) -> UUID:
    """Return the event id for an idempotency key: the UUID that it spells, else a UUID derived from it.

    The same text always gives the same id, so that a client can send a request again.
    """
    try:
        return UUID(text)
    except ValueError:
        return uuid5(_NAMESPACE, text)


def _unusual(reader: Reader, events: Sequence[AssetEvent]) -> list[str]:
    """Return a warning for each new asset that is called as a URI hardly is: it may be a typo."""
    uris = {event.uri for event in events if "://" not in event.uri or " " in event.uri}
    known = reader.assets.numbers(uris) if uris else {}
    return [
        f"{uri!r} is a new asset, not a usual URI, and no flow names it; if that is a typo, hide the asset"
        for uri in sorted(uris - known.keys())
    ]


def _document(items: Sequence[_Item], recorded: RecordedUpdates, warnings: Sequence[str]) -> dict[str, object]:
    new = {event.id: event for event in recorded.events}
    reported = [_report(item, new) for item in items]
    counts = Counter(str(each["status"]) for each in reported)
    document: dict[str, object] = {status: counts[status] for status in ("recorded", "known", "refused")}
    return document | {
        "items": reported,
        "decisions": recorded.decisions,
        "warnings": [*warnings, *recorded.warnings],
    }


def _report(item: _Item, new: dict[UUID, AssetEvent]) -> dict[str, object]:
    """Return the status of one update. The same id twice in one POST is `recorded` once, then `known`."""
    error = item.error
    event = None if item.event is None else new.pop(item.event.id, None)
    return {
        "index": item.index,
        "status": "refused" if item.event is None else "known" if event is None else "recorded",
        "id": None if item.event is None else item.event.id,
        "uri": None if item.event is None else item.event.uri,
        "sequence": None if event is None else event.sequence,
        "code": None if error is None else error.code,
        "where": None if error is None else error.where or None,
        "error": None if error is None else error.message,
        "fix": None if error is None else error.fix or None,
        "rule": None if error is None else error.rule,
    }


hook_router = APIRouter(tags=["webhooks"])


@hook_router.post("/hooks/{watcher}", responses=answers(404, 408, 413, 422))
async def post_to_watcher(watcher: str, request: Request, backend: TheBackend) -> Received:
    """Record a signed message. It needs no key: the signature tells who sent it.

    It is answered after its update is durable, and may be sent again: the same id is the same update. A message that
    cannot be an update is kept as refused, and answered with 200 too, because sending it again would change nothing.
    """
    headers = {name.lower(): value for name, value in request.headers.items()}
    record, webhook = await run_in_threadpool(find_webhook, backend, watcher)
    number = message_id(webhook.signs, headers, backend.now())
    body = await request.body()
    if len(body) > MOST_BYTES:
        raise TooLarge(f"the message has {len(body):,} bytes, the limit is {MOST_BYTES:,}")
    check_signature(webhook.signs, headers, body, await secret_of(backend, webhook))
    return await run_in_threadpool(receive, backend, record, number, body)
