"""The activity page: updates, the decisions that they led to, and the runs, newest first."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from assetflow.api.backend import TheReader
from assetflow.api.paging import LARGEST, Text
from assetflow.errors import UnknownAsset, UnknownConsumer
from assetflow.ledger.read.reader import Reader
from assetflow.operations.lookup import find_consumer, find_uri
from assetflow.web.happened import ROWS, Happened, decisions_happened, happened, updates_happened
from assetflow.web.pages import ThePages, url
from assetflow.web.refresh import look_again
from assetflow.web.run_states import states_address

router = APIRouter()

Show = Literal["", "updates", "decisions", "undeliverable"]
Place = Annotated[int | None, Query(ge=0, le=LARGEST)]


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
    found: list[Happened] = []
    if not unknown:
        wants_events = show in ("", "updates") and (number is None or uri is not None)
        wants_decisions = show != "updates" and (uri is None or number is not None)
        found += updates_happened(reader, uri, events) if wants_events else []
        status = "undeliverable" if show == "undeliverable" else None
        found += decisions_happened(reader, number, decisions, status) if wants_decisions else []
        found = happened(found)
    shown = found[:ROWS]
    older = _older(shown, events, decisions) if len(found) > ROWS else None
    kept: dict[str, str] = {"show": show, "asset": asset, "consumer": consumer}
    made = [each.decision for each in shown if each.decision is not None]
    updates = [event for each in shown for event in each.events[:1]]
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
        states=states_address(made),
    )


def _find_filters(reader: Reader, asset: str, consumer: str) -> tuple[str, str | None, int | None]:
    """Return a sentence about what is unknown (or an empty text), and the URI and the consumer's id of the filters."""
    try:
        uri = find_uri(reader, asset) if asset else None
        number = find_consumer(reader, consumer).consumer.id if consumer else None
    except (UnknownAsset, UnknownConsumer, ValueError) as error:
        return str(error), None, None
    return "", uri, number


def _older(shown: list[Happened], events: int | None, decisions: int | None) -> dict[str, int | None]:
    """Return where the next page begins: after the last update and the last decision shown."""
    sequences = [event.sequence for each in shown for event in each.events if event.sequence is not None]
    numbers = [each.decision.number for each in shown if each.decision is not None]
    return {"events": min(sequences, default=events), "decisions": min(numbers, default=decisions)}
