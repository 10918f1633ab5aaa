"""Follow the states of flow runs: as Prefect sends their changes, and as it answers when it is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from assetflow.core.freshness.records import RunState
from assetflow.core.run_changes import RunChange, RunEnd, RunGoingOn
from assetflow.prefect_io.names import DECISION_LABEL, KEY_PARAMETER, TICK_LABEL
from assetflow.prefect_io.rest import Json, PrefectApi

PAGE = 200

_OUTCOMES: Mapping[str, RunState] = {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "CRASHED": "crashed",
}
# A worker has taken such a run, and it has not ended (8.6).
_GOING_ON = ("PENDING", "RUNNING", "PAUSED", "CANCELLING")
_RUN, _DEPLOYMENT = "prefect.flow-run.", "prefect.deployment."


class OpenRuns:
    """The flow runs of a Prefect server that go on."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api

    async def find(self, run: UUID) -> RunGoingOn | None:
        """Return a run of a deployment if it goes on.

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

    async def all(self) -> AsyncIterator[RunGoingOn]:
        """Yield the runs of all deployments that go on.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        async for page in self._pages(_in_state(*_GOING_ON)):
            for run in page:
                if (found := open_run(run)) is not None:
                    yield found

    async def states(self, ended_since: datetime | None) -> AsyncIterator[Mapping[UUID, datetime]]:
        """Yield, in parts, the time of the newest state of each run that goes on, or was retried and has to start.

        Parameters:
            ended_since: also of those that ended since then, with a time just before their end, whose own time is that
                of the end; `None` for none.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        due = {**_in_state("SCHEDULED"), "expected_start_time": {"before_": datetime.now(UTC).isoformat()}}
        ended = () if ended_since is None else ({"end_time": {"after_": ended_since.isoformat()}},)
        for wanted in (_in_state(*_GOING_ON), due, *ended):
            async for page in self._pages(wanted):
                yield dict(filter(None, map(_newest_state, page)))

    async def _pages(self, wanted: Json) -> AsyncIterator[list[Json]]:
        place = 0
        while True:
            body = {"flow_runs": wanted, "sort": "ID_DESC", "limit": PAGE, "offset": place}
            page = cast("list[Json]", await self._api.post("/flow_runs/filter", body))
            yield page
            if len(page) < PAGE:
                return
            place += PAGE


def run_change(event: Json) -> RunChange | None:
    """Return the change that a Prefect event tells of; `None` for one that is no change of a flow run.

    A flow run is taken, begins, ends, or goes on again.
    """
    resource = event.get("resource", {})
    number, state = str(resource.get("prefect.resource.id", "")), str(resource.get("prefect.state-type", ""))
    if not number.startswith(_RUN):
        return None
    run, deployment = UUID(number.removeprefix(_RUN)), _deployment_in(event)
    if state in _OUTCOMES:
        at = _moment(resource.get("prefect.state-timestamp") or event.get("occurred"))
        return RunChange(run, deployment, end=run_end(state, str(resource.get("prefect.state-name", "")), at))
    intended = _mapping(_mapping(event.get("payload")).get("intended"))
    retried = _moment(resource.get("prefect.state-timestamp")) if intended.get("from") in _OUTCOMES else None
    if retried is not None or state in ("PENDING", "RUNNING"):
        return RunChange(run, deployment, began=_start_in(resource, state), retried=retried)
    return None


def run_end(state_type: str, name: str, at: datetime | None = None) -> RunEnd | None:
    """Return how a run ended whose state has this type and name, or `None` if it goes on."""
    return RunEnd(name, _OUTCOMES[state_type], at) if state_type in _OUTCOMES else None


def end_in(run: Json) -> RunEnd | None:
    """Return how a run ended that Prefect describes so, or `None` if it goes on."""
    end = run_end(str(run.get("state_type", "")), str(run.get("state_name", "")), _state_at(run))
    return None if end is None else end._replace(began=_moment(run.get("start_time")))


def open_run(run: Json) -> RunGoingOn | None:
    """Return a run of a deployment that Prefect describes so, if it goes on."""
    if run.get("deployment_id") is None or run.get("state_type") not in _GOING_ON:
        return None
    labels, parameters = _mapping(run.get("labels")), _mapping(run.get("parameters"))
    key = parameters.get(KEY_PARAMETER)
    by_time = bool(run.get("auto_scheduled")) or TICK_LABEL in labels
    asked = _moment(run.get("expected_start_time") if by_time else None) or _moment(run.get("created"))
    if asked is None:
        return None
    return RunGoingOn(
        run=UUID(str(run["id"])),
        deployment=UUID(str(run["deployment_id"])),
        decision=_decision(labels),
        partition_key=key if isinstance(key, str) else None,
        asked=asked,
        by_time=by_time,
        began=_moment(run.get("start_time")),
    )


def _state_at(run: Json) -> datetime | None:
    return _moment(_mapping(run.get("state")).get("timestamp"))


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


def _decision(labels: Mapping[str, Any]) -> UUID | None:
    """Return the decision behind a run; `None` of a run by hand, to which a user may have given any label."""
    try:
        return UUID(str(labels[DECISION_LABEL]))
    except (KeyError, ValueError):
        return None


def _mapping(data: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", data) if isinstance(data, Mapping) else {}


def _moment(text: object) -> datetime | None:
    return None if text is None else datetime.fromisoformat(str(text))
