"""Read past decisions back from their flow runs, so that a new ledger does not decide them again."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import cast
from uuid import UUID

from assetflow.core.rules.adoption import Decided
from assetflow.core.wire import RunContext, events_from_text, run_context_from_json
from assetflow.errors import InvalidEvent
from assetflow.prefect_io.names import DEADLINE_LABEL, DECISION_LABEL, PREDECESSOR_LABEL
from assetflow.prefect_io.rest import Json, PrefectApi, patiently

PAGE = 200
_logger = logging.getLogger("assetflow.evaluator")

# How long after its opening a decision may come: a month. For Prefect, its run is expected since then.
LONGEST_OPENING = timedelta(days=32)

# The decisions of runs, by the id of the run; `None` for runs of no decision.
_Known = dict[object, Decided | None]


def past_decisions(api: PrefectApi, since: datetime) -> Sequence[AsyncIterator[Decided]]:
    """Return three readings of the decisions whose runs were created since a moment, with what they consumed.

    Prefect does not filter by creation, and the run of an opening is expected at the opening, maybe long before the
    decision. So the first reading yields the runs that wait, the second one those that began since then, the third one
    those that were expected since then, each newest first. A run may be in several. Older runs may be among them.

    Raises:
        PrefectUnreachable, PrefectRefused: when it is read.
    """
    known: _Known = {}
    waits = {"state": {"type": {"any_": ["SCHEDULED", "PENDING"]}}, **_expected_after(since - LONGEST_OPENING)}
    began = {"start_time": {"after_": since.isoformat(), "is_null_": False}}
    return (
        _decisions(api, waits, "EXPECTED_START_TIME_DESC", known),
        _decisions(api, began, "START_TIME_DESC", known),
        _decisions(api, _expected_after(since), "EXPECTED_START_TIME_DESC", known),
    )


def _expected_after(since: datetime) -> Json:
    return {"expected_start_time": {"after_": since.isoformat()}}


async def _decisions(api: PrefectApi, wanted: Json, sort: str, known: _Known) -> AsyncIterator[Decided]:
    seen: set[UUID] = set()
    place = 0
    while True:
        # Newest first: new runs move later pages down, so that some are seen twice, and none is missed.
        body = {
            "flow_runs": {"tags": {"all_": ["assetflow"]}, **wanted},
            "sort": sort,
            "limit": PAGE,
            "offset": place,
        }
        ask = partial(api.post, "/flow_runs/filter", body)
        page = cast("list[Json]", await (patiently(ask) if place else ask()))
        for run in page:
            if run["id"] not in known:
                known[run["id"]] = await _decided(api, run)
            decided = known[run["id"]]
            if decided is not None and decided.id not in seen:
                seen.add(decided.id)
                yield decided
        if len(page) < PAGE:
            return
        place += PAGE


async def _decided(api: PrefectApi, run: Json) -> Decided | None:
    if DECISION_LABEL not in (run.get("labels") or {}) or run.get("deployment_id") is None:
        return None
    try:
        context = run_context_from_json(run.get("context"))
        if context is None or context.decision is None or _consumes_nothing(context):
            return None
        events = await _consumed(api, context)
    except InvalidEvent as error:
        _logger.warning("the decision of flow run %s is left out, since it cannot be read: %s", run.get("id"), error)
        return None
    created = datetime.fromisoformat(str(run["created"]))
    expected = _moment(run.get("expected_start_time"))
    asked = None if context.asked is None else replace(context.asked, predecessor=_predecessor(run))
    return Decided(
        context.decision,
        UUID(str(run["deployment_id"])),
        context.partition_key,
        frozenset(events),
        context.made or created,
        asked,
        _moment(run.get("start_time")),
        created,
        context.opening,
        DEADLINE_LABEL in run["labels"],
        # A cooldown after the run before, if that is later; the run of an opening is expected at the opening (9.11).
        max(created, expected or created),
    )


def _consumes_nothing(context: RunContext) -> bool:
    """Return True for the run of a backfill by keys, which no queue waits for."""
    return context.asked is None and not context.events and context.artifact is None


def _moment(text: object) -> datetime | None:
    return None if text is None else datetime.fromisoformat(str(text))


def _predecessor(run: Json) -> UUID | None:
    """Return the decision that a run's label names as the one before its own. Contract 8.17."""
    try:
        return UUID(str(cast(Json, run["labels"])[PREDECESSOR_LABEL]))
    except (KeyError, ValueError):
        return None


async def _consumed(api: PrefectApi, context: RunContext) -> list[UUID]:
    events = context.events
    if events is None and context.artifact is not None:
        found = cast("Json | None", await api.get(f"/artifacts/{context.artifact}"))
        data: object = None if found is None else found.get("data")
        events = None if data is None else events_from_text(data, where=f"artifact {context.artifact}")
    return [event.id for event in events or ()]
