"""Events by URI: one or thousands in one POST, each with an idempotency key, durable when answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast
from uuid import UUID, uuid4

from fastapi import APIRouter
from pydantic import ValidationError

from assetflow.api.backend import Backend, TheBackend
from assetflow.api.inputs import make_event, with_warnings
from assetflow.api.problems import answers, field_errors
from assetflow.api.responses import Json
from assetflow.api.schemas.own import EventIn, EventsIn, RecordedOut
from assetflow.core.assets import Asset
from assetflow.core.consumers import Decision
from assetflow.core.events import AssetEvent, Recording, canonical_json
from assetflow.errors import AssetflowError, InvalidEvent, TooLarge

router = APIRouter(tags=["events"])

_SHOWN = 1000


@dataclass
class _Item:
    """One update of a POST: an event, or why it is none."""

    index: int
    given: object
    event: AssetEvent | None = None
    error: AssetflowError | None = None


_SOME = {"model": RecordedOut, "description": "Some were refused; the others are recorded"}
_NONE = {"model": RecordedOut, "description": "All were refused"}


@router.post("/events", response_model=RecordedOut, responses=answers(413, 415) | {207: _SOME, 422: _NONE})
def record_events(body: EventsIn, backend: TheBackend) -> Json:
    """Record updates. All that are as they have to be are one recording, followed by one pass of the consumers.

    When this answers, they are durable. Each is reported: `recorded`, `known` (its id was recorded before, nothing
    changes) or `refused` with the reason. The status is 207 if some were refused, and 422 with the same document if all
    were. Sending the same request again, with ids, is safe.
    """
    now = backend.now()
    items, general = with_warnings(lambda: [_read(number, each, now) for number, each in enumerate(body.events)])
    good = [item.event for item in items if item.event is not None]
    recorded, decisions, told = _record(backend, good, now) if good else ([], [], [])
    for item in items:
        _keep_refused(backend, item, now)
    if decisions:
        backend.on_recorded()
    document = _document(items, recorded, _names(backend, decisions), [*general, *told])
    status = 200 if document["refused"] == 0 else 207 if good else 422
    return Json(document, status)


def _read(index: int, given: object, now: datetime) -> _Item:
    item = _Item(index, given)
    try:
        wanted = EventIn.model_validate(given)
        item.event = _event(wanted, now)
    except ValidationError as error:
        first = field_errors(error.errors())[0]
        place = ".".join(map(str, cast("list[object]", first["loc"])))
        item.error = InvalidEvent(str(first["msg"]), where=place or "event")
    except AssetflowError as error:
        item.error = error
    return item


def _event(wanted: EventIn, now: datetime) -> AssetEvent:
    try:
        asset = Asset(wanted.uri, name=wanted.name, group=wanted.group)
    except AssetflowError as error:
        raise type(error)(error.message, where="uri", fix=error.fix, rule=error.rule) from error
    return make_event(
        asset,
        now,
        extra=wanted.extra,
        partition_key=wanted.partition_key,
        aliases=tuple(wanted.aliases),
        text=wanted.id,
        occurred=wanted.occurred,
        by=wanted.by,
    )


def _record(
    backend: Backend, events: Sequence[AssetEvent], now: datetime
) -> tuple[list[AssetEvent], list[Decision], list[str]]:
    recording = Recording(uuid4(), tuple(events))
    recorded, decisions = backend.ledger.writer.record([recording], now)[0]
    return recorded.events, decisions, recorded.warnings


def _keep_refused(backend: Backend, item: _Item, now: datetime) -> None:
    """What is no event is kept with the reason (2.6), unless it is too large to be kept at all."""
    if item.error is not None and not isinstance(item.error, TooLarge):
        backend.ledger.writer.refuse(_storable(item.given), str(item.error), item.error.rule, "api", None, now)


def _storable(given: object) -> object:
    """What was given, as the ledger can keep it: a number that JSON has no form for becomes text."""
    try:
        canonical_json(given)
    except (ValueError, RecursionError):
        return {"given": repr(given)[:_SHOWN]}
    return given


def _document(
    items: Sequence[_Item], recorded: Sequence[AssetEvent], decisions: list[dict[str, object]], warnings: list[str]
) -> dict[str, object]:
    new = {event.id: event for event in recorded}
    reported = [_report(item, new) for item in items]
    counts = Counter(str(each["status"]) for each in reported)
    document: dict[str, object] = {status: counts[status] for status in ("recorded", "known", "refused")}
    return document | {"items": reported, "decisions": decisions, "warnings": warnings}


def _report(item: _Item, new: dict[UUID, AssetEvent]) -> dict[str, object]:
    """What became of one update. The same id twice in one POST is recorded once, and known the second time."""
    if item.event is None:
        error = item.error
        assert error is not None
        told = {"code": error.code, "field": error.where, "error": error.message, "fix": error.fix, "rule": error.rule}
        refused: dict[str, object] = {"index": item.index, "status": "refused"}
        return refused | {key: value for key, value in told.items() if value}
    event = new.pop(item.event.id, None)
    report: dict[str, object] = {
        "index": item.index,
        "status": "known" if event is None else "recorded",
        "id": str(item.event.id),
        "uri": item.event.uri,
    }
    return report if event is None else report | {"sequence": event.sequence}


def _names(backend: Backend, decisions: Sequence[Decision]) -> list[dict[str, object]]:
    names = {number: _name(backend, number) for number in {decision.consumer for decision in decisions}}
    return [
        {"decision": str(each.id), "consumer": names[each.consumer], "target_key": each.target_key}
        for each in decisions
    ]


def _name(backend: Backend, number: int) -> str:
    record = backend.ledger.reader.consumer_numbered(number)
    return "" if record is None else record.consumer.name
