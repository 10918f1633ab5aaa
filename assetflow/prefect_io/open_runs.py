"""Follow the states of flow runs: as Prefect sends their changes, and as it answers when it is asked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar, cast
from uuid import UUID

from assetflow.core.explain import DecisionExplanation, NotStarted, with_run_in_prefect
from assetflow.core.freshness.records import RunState
from assetflow.core.json_data import fit_text
from assetflow.core.rules.adoption import Decided
from assetflow.core.rules.ended_runs import FAILED, FAILED_OUTCOMES, EndedRun, RunChange, RunEnd, RunGoingOn
from assetflow.core.wire import RunContext, events_from_text, run_context_from_json
from assetflow.core.wire.fields import mapping_or_empty, uuid_or_none
from assetflow.errors import AssetflowError, InvalidEvent
from assetflow.prefect_io.logs import EventLog
from assetflow.prefect_io.names import DEADLINE_LABEL, DECISION_LABEL, KEY_PARAMETER, PREDECESSOR_LABEL, TICK_LABEL
from assetflow.prefect_io.rest import Json, PrefectApi, patiently, prefect_api

T = TypeVar("T")

PAGE = 200

_OUTCOMES: Mapping[str, RunState] = {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "CRASHED": "crashed",
}
# A worker has taken such a run, and it has not ended (8.6).
_GOING_ON = ("PENDING", "RUNNING", "PAUSED", "CANCELLING")
# A person who sets a state chooses among these.
_ENDS = [f"prefect.flow-run.{name.capitalize()}" for name in _OUTCOMES]
_RUN, _DEPLOYMENT = "prefect.flow-run.", "prefect.deployment."
_BEFORE_EXCEPTIONS = "Flow run encountered an exception:"


class OpenRuns:
    """The open flow runs of a Prefect server: those that a worker has taken and that have not ended."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api

    async def find(self, run: UUID) -> RunGoingOn | None:
        """Return a run of a deployment if it is open.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        answer = await self._api.get(f"/flow_runs/{run}")
        return None if answer is None else open_run(cast(Json, answer))

    async def began(self, run: UUID) -> datetime | None:
        """Return when a run started, also if it has ended; `None` if it never did, or is gone.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        answer = await self._api.get(f"/flow_runs/{run}")
        return None if answer is None else _moment(cast(Json, answer).get("start_time"))

    async def tasks_began(self, runs: Sequence[UUID]) -> Mapping[UUID, datetime]:
        """Return when each of some task runs started, of those that Prefect knows.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        began: dict[UUID, datetime] = {}
        for first in range(0, len(runs), PAGE):
            wanted = {"id": {"any_": [str(each) for each in runs[first : first + PAGE]]}}
            for run in cast("list[Json]", await self._api.post("/task_runs/filter", {"task_runs": wanted})):
                if (moment := _moment(run.get("start_time"))) is not None:
                    began[UUID(str(run["id"]))] = moment
        return began

    async def all(self) -> AsyncIterator[RunGoingOn]:
        """Yield the open runs of all deployments.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        async for page in _pages(self._api, _in_state(*_GOING_ON)):
            for run in page:
                if (found := open_run(run)) is not None:
                    yield found

    async def states(self, ended_since: datetime | None) -> AsyncIterator[Mapping[UUID, datetime]]:
        """Yield, in parts, the time of the newest state of each run that is open, or was retried and has to start.

        Parameters:
            ended_since: also of those that ended since then, with a time just before their end, whose own time is that
                of the end; `None` for none.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        due = {**_in_state("SCHEDULED"), "expected_start_time": {"before_": datetime.now(UTC).isoformat()}}
        ended = () if ended_since is None else ({"end_time": {"after_": ended_since.isoformat()}},)
        for wanted in (_in_state(*_GOING_ON), due, *ended):
            async for page in _pages(self._api, wanted):
                yield dict(filter(None, map(_newest_state, page)))

    async def ended_anew(self, since: datetime) -> AsyncIterator[RunChange]:
        """Yield the ends since a moment of runs that had ended before: for Prefect, the time of their end stays.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        async for event in EventLog(self._api).between(since, datetime.now(UTC), _ENDS):
            if (change := run_change(event)) is not None and change.anew:
                yield change

    async def ended(self, since: datetime, anew: Collection[UUID] = ()) -> Sequence[EndedRun]:
        """Return the runs of deployments that ended since a moment and have not gone on, the first end first.

        Parameters:
            anew: runs that have ended anew, and so are among them whatever Prefect says of the time of their end.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        over = _in_state(*_OUTCOMES)
        wanted = [{**over, "end_time": {"after_": since.isoformat()}}]
        wanted += [{**over, "id": {"any_": [str(run) for run in anew]}}] if anew else []
        # New ends move later pages down, so that some runs are seen twice, and none is missed.
        pages = [page for each in wanted async for page in _pages(self._api, each, "END_TIME_DESC")]
        found = {each.flow_run_id: each for page in pages for run in page if (each := ended_run(run)) is not None}
        return sorted(found.values(), key=lambda each: each.ended)


async def _pages(api: PrefectApi, wanted: Json, sort: str = "ID_DESC") -> AsyncIterator[list[Json]]:
    """Yield flow runs page by page; after the first page, with patience."""
    place = 0
    while True:
        body = {"flow_runs": wanted, "sort": sort, "limit": PAGE, "offset": place}
        ask = partial(api.post, "/flow_runs/filter", body)
        page = cast("list[Json]", await (patiently(ask) if place else ask()))
        yield page
        if len(page) < PAGE:
            return
        place += PAGE


async def read_runs(api: PrefectApi, runs: Collection[UUID], **wanted: object) -> dict[UUID, Json]:
    """Return what Prefect says of flow runs, of those that it knows. Asks once.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    if not runs:
        return {}
    body = {"flow_runs": {"id": {"any_": [str(run) for run in runs]}, **wanted}, "limit": len(runs)}
    return {UUID(str(run["id"])): run for run in cast("list[Json]", await api.post("/flow_runs/filter", body))}


def run_change(event: Json) -> RunChange | None:
    """Return the change that a Prefect event tells of; `None` for one that is no change of a flow run.

    A flow run is taken, begins, ends, or is retried.
    """
    resource = event.get("resource", {})
    number, state = str(resource.get("prefect.resource.id", "")), str(resource.get("prefect.state-type", ""))
    if not number.startswith(_RUN):
        return None
    run, deployment = UUID(number.removeprefix(_RUN)), _deployment_in(event)
    had_ended = mapping_or_empty(mapping_or_empty(event.get("payload")).get("intended")).get("from") in _OUTCOMES
    if state in _OUTCOMES:
        at = _moment(resource.get("prefect.state-timestamp") or event.get("occurred"))
        end = run_end(state, str(resource.get("prefect.state-name", "")), at)
        return RunChange(run, deployment, end=end, anew=had_ended)
    retried = _moment(resource.get("prefect.state-timestamp")) if had_ended else None
    if retried is not None or state in ("PENDING", "RUNNING"):
        return RunChange(run, deployment, began=_start_in(resource, state), retried=retried)
    return None


def run_end(state_type: str, name: str, at: datetime | None = None) -> RunEnd | None:
    """Return how a run ended whose state has this type and name, or `None` if it has not ended.

    A failure to which the flow gave a name of its own is "Failed" or "Crashed".
    """
    outcome = _OUTCOMES.get(state_type)
    if outcome in ("failed", "crashed") and name not in FAILED:
        name = outcome.capitalize()
    return None if outcome is None else RunEnd(name, outcome, at)


def end_in(run: Json) -> RunEnd | None:
    """Return how a run ended that Prefect describes so, or `None` if it has not ended."""
    end = run_end(str(run.get("state_type", "")), str(run.get("state_name", "")), _state_at(run))
    return None if end is None else end._replace(began=_moment(run.get("start_time")))


def open_run(run: Json) -> RunGoingOn | None:
    """Return a run of a deployment that Prefect describes so, if it is open."""
    if run.get("deployment_id") is None or run.get("state_type") not in _GOING_ON:
        return None
    labels, parameters = mapping_or_empty(run.get("labels")), mapping_or_empty(run.get("parameters"))
    key = parameters.get(KEY_PARAMETER)
    by_time = bool(run.get("auto_scheduled")) or TICK_LABEL in labels
    asked = _moment(run.get("expected_start_time") if by_time else None) or _moment(run.get("created"))
    if asked is None:
        return None
    return RunGoingOn(
        run=UUID(str(run["id"])),
        deployment=UUID(str(run["deployment_id"])),
        # Of a run by hand, to which a user may have given any label, there is none.
        decision=uuid_or_none(labels.get(DECISION_LABEL)),
        partition_key=key if isinstance(key, str) else None,
        asked=asked,
        by_time=by_time,
        began=_moment(run.get("start_time")),
    )


MOST_OF_ERROR = 2_000


def ended_run(run: Json) -> EndedRun | None:
    """Return a run of a deployment that Prefect describes so, if it has ended."""
    end, labels = end_in(run), mapping_or_empty(run.get("labels"))
    asked = _moment(run.get("expected_start_time")) or _moment(run.get("created"))
    if end is None or end.at is None or asked is None or run.get("deployment_id") is None:
        return None
    key, state = mapping_or_empty(run.get("parameters")).get(KEY_PARAMETER), mapping_or_empty(run.get("state"))
    decision = uuid_or_none(labels.get(DECISION_LABEL))
    by_time = bool(run.get("auto_scheduled")) or TICK_LABEL in labels
    return EndedRun(
        number=0,
        flow_run_id=UUID(str(run["id"])),
        name=str(run.get("name") or ""),
        deployment_id=UUID(str(run["deployment_id"])),
        flow="",
        target_key=key if isinstance(key, str) and key else None,
        state=end.state,
        outcome=end.outcome,
        started_by="decision" if decision is not None else "time" if by_time else "hand",
        decision=decision,
        asked=asked,
        began=end.began,
        ended=end.at,
        error=fit_text(state_message(state))[:MOST_OF_ERROR] if end.outcome in FAILED_OUTCOMES else "",
        state_id=UUID(str(state["id"])),
        state_at=end.at,
    )


def state_message(state: Json) -> str:
    """Return what Prefect or the flow said with a state, without the words that Prefect puts before each exception."""
    return str(state.get("message") or "").removeprefix(_BEFORE_EXCEPTIONS).lstrip()


def _state_at(run: Json) -> datetime | None:
    return _moment(mapping_or_empty(run.get("state")).get("timestamp"))


def _newest_state(run: Json) -> tuple[UUID, datetime] | None:
    at = _state_at(run)
    is_over = run.get("state_type") in _OUTCOMES
    return None if at is None else (UUID(str(run["id"])), at - datetime.resolution if is_over else at)


def _in_state(*types: str) -> Json:
    return {"state": {"type": {"any_": types}}}


def _start_in(resource: Json, state: str) -> datetime | None:
    """Return when a run started, from the event of its state; `None` if it does not start for the first time."""
    is_first = state == "RUNNING" and resource.get("prefect.run-count") == "1"
    return _moment(resource.get("prefect.state-timestamp")) if is_first else None


def _deployment_in(event: Json) -> UUID | None:
    related = (str(each.get("prefect.resource.id", "")) for each in event.get("related") or ())
    return next((UUID(each.removeprefix(_DEPLOYMENT)) for each in related if each.startswith(_DEPLOYMENT)), None)


def _moment(text: object) -> datetime | None:
    return None if text is None else datetime.fromisoformat(str(text))


# A worker looks for runs every ten seconds or so, and starts a process in some more.
PATIENCE = timedelta(seconds=30)
# Kept short: a user is waiting for the answer.
SECONDS_TO_ANSWER = 3.0
# Of the message of a state, so many characters are told.
MOST_SAID = 300
# Other scheduled states wait for a time, a concurrency slot or a retry.
_FOR_A_WORKER = ("Scheduled", "Late")

OpenPrefect = Callable[[], AbstractAsyncContextManager[PrefectApi]]


async def not_started(api: PrefectApi, runs: Collection[UUID], now: datetime) -> dict[UUID, NotStarted]:
    """Return the runs that have waited for half a minute for a worker, or inside one.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    waiting = await read_runs(api, runs, **_in_state("SCHEDULED", "PENDING"))
    found = {run: _read(each) for run, each in waiting.items()}
    return {run: each for run, each in found.items() if each is not None and now - each.since > PATIENCE}


def with_run_now(
    explanation: DecisionExplanation, now: datetime, prefect: OpenPrefect = prefect_api
) -> DecisionExplanation:
    """Return the explanation with what Prefect says of its run: that it waits for a worker, or why it failed.

    Call it where no event loop runs. If Prefect does not answer at once, the explanation is returned unchanged.
    """
    run = explanation.facts.run
    if run.flow_run_id is None or (run.launched and run.ended is None and now - run.launched < PATIENCE):
        return explanation
    if run.ended is not None:
        failed = asyncio.run(_ask(prefect, partial(_why_failed, run.flow_run_id))) if run.has_failed else None
        return with_run_in_prefect(explanation, None, failed or "")
    found = asyncio.run(_ask(prefect, partial(not_started, runs=[run.flow_run_id], now=now)))
    return with_run_in_prefect(explanation, (found or {}).get(run.flow_run_id))


async def _ask(prefect: OpenPrefect, question: Callable[[PrefectApi], Awaitable[T]]) -> T | None:
    """Return Prefect's answer, or `None` if it does not answer at once."""
    with suppress(AssetflowError, TimeoutError):
        async with asyncio.timeout(SECONDS_TO_ANSWER), prefect() as api:
            return await question(api)
    return None


async def _why_failed(run: UUID, api: PrefectApi) -> str:
    """Return the message of a run's state, shortened; "" if it does not say that the run failed."""
    found = await api.get(f"/flow_runs/{run}")
    state = mapping_or_empty(mapping_or_empty(found).get("state"))
    message = " ".join(state_message(state).split())
    if state.get("type") not in ("FAILED", "CRASHED"):
        return ""
    return message if len(message) <= MOST_SAID else f"{message[:MOST_SAID]}…"


def _read(run: Json) -> NotStarted | None:
    pool, state = str(run.get("work_pool_name") or ""), cast(Json, run["state"])
    if run["state_type"] == "PENDING":
        return NotStarted(datetime.fromisoformat(str(state["timestamp"])), taken=True, pool=pool)
    due = run.get("next_scheduled_start_time") or run.get("expected_start_time")
    if state.get("name") not in _FOR_A_WORKER or due is None:
        return None
    return NotStarted(datetime.fromisoformat(str(due)), pool=pool)


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
    waits = {**_in_state("SCHEDULED", "PENDING"), **_expected_after(since - LONGEST_OPENING)}
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
    # Newest first: new runs move later pages down, so that some are seen twice, and none is missed.
    async for page in _pages(api, {"tags": {"all_": ["assetflow"]}, **wanted}, sort):
        for run in page:
            if run["id"] not in known:
                known[run["id"]] = await _decided(api, run)
            decided = known[run["id"]]
            if decided is not None and decided.id not in seen:
                seen.add(decided.id)
                yield decided


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
    # Contract 8.17.
    before = uuid_or_none(mapping_or_empty(run.get("labels")).get(PREDECESSOR_LABEL))
    asked = None if context.asked is None else replace(context.asked, predecessor=before)
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


async def _consumed(api: PrefectApi, context: RunContext) -> list[UUID]:
    events = context.events
    if events is None and context.artifact is not None:
        found = cast("Json | None", await api.get(f"/artifacts/{context.artifact}"))
        data: object = None if found is None else found.get("data")
        events = None if data is None else events_from_text(data, where=f"artifact {context.artifact}")
    return [event.id for event in events or ()]
