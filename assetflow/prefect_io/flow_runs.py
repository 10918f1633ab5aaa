"""Create the flow runs of decisions, each once under the decision's id, and find out how they ended."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any, cast
from uuid import UUID

from assetflow.core.freshness.causes import causes_in_words
from assetflow.core.json_data import fit_text
from assetflow.core.rules.runs import listed, run_name
from assetflow.core.run_changes import DELETED, RunEnd
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Automation, Decision
from assetflow.core.wire import RunContext, run_context_to_json
from assetflow.errors import PrefectNotFound, PrefectRefused, PrefectUnreachable, Unsendable
from assetflow.prefect_io.answers import id_of, unconfirmed
from assetflow.prefect_io.names import (
    BECAUSE_LABEL,
    CONSUMER_LABEL,
    DEADLINE_LABEL,
    DECISION_LABEL,
    KEY_PARAMETER,
    PARTITION_KEY_LABEL,
    PREDECESSOR_LABEL,
    TRACEPARENT_LABEL,
)
from assetflow.prefect_io.open_runs import PAGE, end_in
from assetflow.prefect_io.rest import Json, PrefectApi
from assetflow.prefect_io.turns import Turns

MOST_IN_LABEL = 1_000
_RETRIED = {"type": "SCHEDULED", "name": "AwaitingRetry", "message": "Retried by assetflow"}


class FlowRuns:
    """Flow runs of a Prefect server."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api
        # Create runs one after the other: on SQLite, two at once are slower than one.
        self._turns = Turns()

    async def create(self, decision: Decision, context: RunContext, automation: Automation | None) -> UUID:
        """Create the run of a decision, or find the one that exists, and return its id.

        Raises:
            PrefectUnreachable: the run may have been created; a retry is safe.
            PrefectRefused: the run cannot be created (the deployment is gone, its parameters are incomplete).
            Unsendable: the request cannot be written; nothing was sent.
        """
        try:
            request = run_request(decision, context)
        except Exception as error:
            raise Unsendable(f"the request for its run cannot be made: {error!r}") from error
        return await self.make(decision.deployment_id, request, automation)

    async def make(self, deployment_id: UUID, request: Json, automation: Automation | None) -> UUID:
        """Create a run of a deployment, or find the one with the same idempotency key, and return its id.

        Raises:
            PrefectUnreachable, PrefectRefused, Unsendable: as `create`.
        """
        path = f"/deployments/{deployment_id}/create_flow_run"
        async with self._turns.of(deployment_id):
            try:
                answer = await self._api.post(path, request, _provenance(automation))
            except PrefectRefused as refusal:
                await self._confirm(refusal, deployment_id)
                raise
        return _run_in(answer, deployment_id, request.get("idempotency_key"))

    async def _confirm(self, refusal: PrefectRefused, deployment_id: UUID) -> None:
        """Make sure that Prefect itself refused the run, and not a proxy that answers wrongly for a while.

        Raises:
            PrefectUnreachable: Prefect does not confirm it.
        """
        try:
            deployment = await self._api.get(f"/deployments/{deployment_id}")
        except PrefectRefused:
            # Prefect refuses nobody a look at a deployment: whatever answers this is not Prefect.
            raise unconfirmed(refusal) from refusal
        if deployment is None:
            confirmed = isinstance(refusal, PrefectNotFound) and await self._api.is_prefect()
        else:
            confirmed = not isinstance(refusal, PrefectNotFound) and id_of(deployment) == deployment_id
        if not confirmed:
            raise unconfirmed(refusal) from refusal

    async def ended(self, runs: Sequence[UUID]) -> dict[UUID, RunEnd]:
        """Return the runs that have ended, and how; a run that is gone was deleted.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        if not runs:
            return {}
        body = {"flow_runs": {"id": {"any_": [str(run) for run in runs]}}, "limit": len(runs)}
        answer = cast("list[Json]", await self._api.post("/flow_runs/filter", body))
        found = {UUID(str(run["id"])): run for run in answer}
        states = {run: end_in(found[run]) for run in runs if run in found}
        for run in runs:
            if run not in found and await self._api.get(f"/flow_runs/{run}") is None:
                states[run] = DELETED
        return {run: end for run, end in states.items() if end is not None}


async def retry_runs(api: PrefectApi, runs: Sequence[UUID]) -> list[UUID]:
    """Let runs that have ended run again, each with what it was given, and return their ids. Others stay as they are.

    Raises:
        PrefectUnreachable, PrefectRefused: those before may run again.
    """
    retried: list[UUID] = []
    for place in range(0, len(runs), PAGE):
        ended = await FlowRuns(api).ended(runs[place : place + PAGE])
        for run in (each for each, end in ended.items() if end is not DELETED):
            await api.post(f"/flow_runs/{run}/set_state", {"state": _RETRIED, "force": True})
            retried.append(run)
    return retried


def run_request(decision: Decision, context: RunContext) -> dict[str, Any]:
    """Return the body of create_flow_run.

    The partition key, a text, is the only parameter: Prefect would interpret objects such as those in an extra.
    """
    labels = {DECISION_LABEL: str(decision.id), CONSUMER_LABEL: context.consumer}
    if context.asked is not None:
        labels[BECAUSE_LABEL] = fit_text(causes_in_words(context.asked.because))[:MOST_IN_LABEL]
        if context.asked.predecessor is not None:
            labels[PREDECESSOR_LABEL] = str(context.asked.predecessor)
    if context.traceparent:
        labels[TRACEPARENT_LABEL] = context.traceparent
    parameters: dict[str, str] = {}
    if decision.by_deadline:
        labels[DEADLINE_LABEL] = "true"
    # The run of an opening is scheduled for the opening, which is over by now: workers take it at once.
    starts = decision.scheduled or decision.opening
    details = {} if starts is None else {"state_details": {"scheduled_time": starts.isoformat()}}
    if decision.target_key is not None:
        labels[PARTITION_KEY_LABEL] = parameters[KEY_PARAMETER] = decision.target_key
    return {
        "name": run_name(decision.id, decision.target_key, _assets(decision), decision.because, context.consumer),
        "idempotency_key": str(decision.id),
        "context": run_context_to_json(context),
        "labels": labels,
        **({"parameters": parameters} if parameters else {}),
        "tags": ["assetflow"],
        "state": {"type": "SCHEDULED", "name": "Scheduled", "message": fit_text(_message(decision)), **details},
    }


def _run_in(answer: object, deployment_id: UUID, key: object) -> UUID:
    """Return the run in an answer to `create_flow_run`.

    Raises:
        PrefectRefused: the key belongs to a run of another deployment.
        PrefectUnreachable: the answer has another run. A proxy has answered, perhaps with an older answer of Prefect's,
            and the run may or may not exist.
    """
    run = id_of(answer)
    found = cast(Json, answer)
    of, its_key = found.get("deployment_id"), found.get("idempotency_key")
    if of is not None and str(of) != str(deployment_id) and its_key == key is not None:
        raise PrefectRefused(f"Prefect has the run {run} of another deployment, {of}, under this decision's key")
    if str(of) != str(deployment_id) or its_key not in (None, key):
        raise PrefectUnreachable(f"Prefect answered with run {run} of deployment {of}, which was not asked for")
    return run


def _assets(decision: Decision) -> Iterable[Asset]:
    return (event.asset for event in decision.events)


def _message(decision: Decision) -> str:
    number = len(decision.events)
    if decision.kind == "backfill":
        return f"Started by a backfill for {decision.target_key}"
    if decision.because:
        return f"Started because {causes_in_words(decision.because)}"
    updates = "1 update" if number == 1 else f"{number} updates"
    key = "" if decision.target_key is None else f" for {decision.target_key}"
    return f"Started by {updates}{key}: {listed(_assets(decision), ', ')}"


def _provenance(automation: Automation | None) -> dict[str, str]:
    if automation is None:
        return {}
    name = b64encode(automation.name.encode(errors="replace")).decode()
    return {"Prefect-Automation-ID": str(automation.id), "Prefect-Automation-Name": name}
