"""The page of runs: all that have ended, and those that go on, whoever started them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from assetflow.api.requests import LARGEST, Text, TheBackend
from assetflow.errors import UnknownConsumer
from assetflow.ledger.read.pruning import RunsOfDay
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import DecisionRecord
from assetflow.operations.lookup import find_consumer
from assetflow.operations.needs import list_runs
from assetflow.web.pages import ThePages, url
from assetflow.web.prefect_runs import look_again, states_address

router = APIRouter()

ROWS = 50
DAYS = 14
HEIGHT = 48
Before = Annotated[int | None, Query(ge=0, le=LARGEST)]


@dataclass(frozen=True)
class Bar:
    """The runs of one day, as a bar of the picture above the list.

    Attributes:
        page: the address of the list of this day.
        height, failed_height: of all runs, and of those that failed, in pixels.
    """

    day: date
    ended: int
    failed: int
    page: str
    height: float
    failed_height: float


@router.get("/runs")
def show_runs(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    failed: bool = False,
    day: Text = "",
    flow: Text = "",
    key: Text = "",
    before: Before = None,
) -> Response:
    """Show a page of runs, newest first.

    Parameters:
        failed: only runs that failed or crashed.
        day: only runs that ended on this day (UTC): `today`, or as 2026-11-20; anything else is every day.
        flow: only runs of this flow and deployment, or of a flow with one deployment.
        before: only runs before this number.
    """
    reader, now, of = backend.ledger.reader, backend.now(), _name(backend.ledger.reader, flow.strip())
    since, until = _day(day, now)
    wanted = {"failed": failed, "since": since, "until": until, "flow": of or None, "target_key": key.strip() or None}
    found = list_runs(reader, **wanted, before=before, limit=ROWS + 1)  # type: ignore[arg-type]
    shown = found[:ROWS]
    kept = {"failed": "true" if failed else "", "flow": flow, "key": key}
    is_first = before is None and not failed and day in ("", "today")
    going_on = _going_on(reader, of, key.strip()) if is_first else []
    return pages.show(
        request,
        "runs.html",
        fragment="list",
        found=shown,
        going_on=going_on,
        consumed=reader.decisions.consumed_assets([each.number for each in going_on]),
        bars=_bars(reader.ended_runs.days(_first_day(now), of or None), now, kept),
        failed=failed,
        day=day,
        flow=flow,
        key=key,
        here=url("/runs", **kept, day=day, before=before),
        newest=url("/runs", **kept, day=day) if before is not None else "",
        older=url("/runs", **kept, day=day, before=shown[-1].number) if len(found) > ROWS else "",
        again=look_again(going_on),
        states=states_address(going_on),
    )


def _name(reader: Reader, flow: str) -> str:
    """Return the `flow/deployment` that a text names; a flow that is no consumer is named in full."""
    with suppress(UnknownConsumer, ValueError):
        return find_consumer(reader, flow).consumer.name if flow else ""
    return flow


def _going_on(reader: Reader, flow: str, key: str) -> list[DecisionRecord]:
    """Return the decisions whose runs go on, newest first."""
    running = reader.decisions.running(limit=None)
    found = [each for each in running if flow in ("", each.consumer_name) and key in ("", each.target_key)]
    return found[::-1][:ROWS]


def _day(text: str, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the begin and the end of a day; nothing for a text that is none."""
    try:
        day = now.date() if text == "today" else date.fromisoformat(text)
    except ValueError:
        return None, None
    start = datetime.combine(day, time(), UTC)
    return start, start + timedelta(days=1)


def _first_day(now: datetime) -> datetime:
    return datetime.combine(now.date() - timedelta(days=DAYS - 1), time(), UTC)


def _bars(days: Sequence[RunsOfDay], now: datetime, kept: dict[str, str]) -> list[Bar]:
    """Return the bars of the last days, also of those without a run; none if nothing ended."""
    counts = {date.fromisoformat(each.day): each for each in days}
    most = max((each.ended for each in days), default=0)
    if not most:
        return []
    found: list[Bar] = []
    for place in range(DAYS):
        day = _first_day(now).date() + timedelta(days=place)
        of = counts.get(day) or RunsOfDay(str(day), 0, 0)
        heights = (round(HEIGHT * number / most, 1) for number in (of.ended, of.failed))
        found.append(Bar(day, of.ended, of.failed, url("/runs", **kept, day=str(day)), *heights))
    return found
