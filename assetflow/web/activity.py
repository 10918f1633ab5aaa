"""The activity page: updates, the decisions that they led to, and the runs, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from assetflow.api.backend import TheReader
from assetflow.api.paging import LARGEST, Text
from assetflow.core.events import AssetEvent
from assetflow.core.redaction import redacted
from assetflow.errors import UnknownAsset, UnknownConsumer
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import DecisionRecord, EventFilter
from assetflow.operations.lookup import find_consumer, find_uri
from assetflow.web.pages import ThePages, url
from assetflow.web.refresh import look_again

router = APIRouter()

ROWS = 50
Show = Literal["", "updates", "decisions"]
Place = Annotated[int | None, Query(ge=0, le=LARGEST)]


@dataclass(frozen=True)
class ActivityEntry:
    """An update or a decision, with the time at which it was committed."""

    at: datetime
    event: AssetEvent | None = None
    decision: DecisionRecord | None = None


@router.get("/activity")
def show_activity(
    request: Request,
    pages: ThePages,
    reader: TheReader,
    show: Show = "",
    asset: Text = "",
    consumer: Text = "",
    events: Place = None,
    decisions: Place = None,
) -> Response:
    """Show a page of updates and decisions.

    Parameters:
        asset: only updates of this asset, by name or URI.
        consumer: only decisions of this consumer.
        events, decisions: only events before this sequence, and decisions before this number.
    """
    unknown, uri, number = _find_filters(reader, asset.strip(), consumer.strip())
    found: list[ActivityEntry] = []
    if not unknown:
        wants_events = show != "decisions" and (number is None or uri is not None)
        wants_decisions = show != "updates" and (uri is None or number is not None)
        found += _updates(reader, uri, events) if wants_events else []
        found += _decisions(reader, number, decisions) if wants_decisions else []
        # Decisions are listed above the update that led to them.
        found.sort(key=lambda each: (each.at, each.decision is not None), reverse=True)
    shown = found[:ROWS]
    older = _older(shown, events, decisions) if len(found) > ROWS else None
    kept: dict[str, str] = {"show": show, "asset": asset, "consumer": consumer}
    made = [each.decision for each in shown if each.decision is not None]
    updates = [each.event for each in shown if each.event is not None]
    return pages.show(
        request,
        "activity.html",
        fragment="list",
        found=shown,
        consumed=reader.decisions.consumed_assets([each.number for each in made]),
        receipts=reader.receipts.counts([each.sequence for each in updates if each.sequence is not None]),
        unknown=unknown,
        show=show,
        asset=asset,
        consumer=consumer,
        here=url("/activity", **kept, events=events, decisions=decisions),
        newest=url("/activity", **kept) if events is not None or decisions is not None else "",
        older=url("/activity", **kept, **older) if older else "",
        again=look_again(made),
    )


def _find_filters(reader: Reader, asset: str, consumer: str) -> tuple[str, str | None, int | None]:
    """Return a sentence about what is unknown (or an empty text), and the URI and the consumer's id of the filters."""
    try:
        uri = find_uri(reader, asset) if asset else None
        number = find_consumer(reader, consumer).consumer.id if consumer else None
    except (UnknownAsset, UnknownConsumer, ValueError) as error:
        return str(error), None, None
    return "", uri, number


def _updates(reader: Reader, uri: str | None, before: int | None) -> list[ActivityEntry]:
    query = EventFilter(uri=uri, to_sequence=None if before is None else max(0, before - 1))
    found = reader.events.find(query, newest_first=True, limit=ROWS + 1)
    return [ActivityEntry(event.recorded or event.occurred, event=redacted(event)) for event in found]


def _decisions(reader: Reader, consumer: int | None, before: int | None) -> list[ActivityEntry]:
    found = reader.decisions.find(consumer=consumer, before=before, limit=ROWS + 1)
    return [ActivityEntry(each.made, decision=each) for each in found]


def _older(shown: list[ActivityEntry], events: int | None, decisions: int | None) -> dict[str, int | None]:
    """Return where the next page begins: after the last update and the last decision shown."""
    sequences = [each.event.sequence for each in shown if each.event is not None and each.event.sequence is not None]
    numbers = [each.decision.number for each in shown if each.decision is not None]
    return {"events": min(sequences, default=events), "decisions": min(numbers, default=decisions)}
