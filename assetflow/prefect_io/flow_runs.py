"""The flow runs that decisions lead to: made under the decision's id, never twice, and asked how they ended."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from assetflow.core.codec import RunContext, run_context_to_json
from assetflow.core.consumers import Decision
from assetflow.core.events import AssetEvent
from assetflow.errors import PrefectRefused, PrefectUnreachable
from assetflow.prefect_io.names import (
    CONSUMER_LABEL,
    DECISION_LABEL,
    KEY_PARAMETER,
    PARTITION_KEY_LABEL,
    TRACEPARENT_LABEL,
)
from assetflow.prefect_io.rest import Json, PrefectApi

TERMINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED", "CRASHED"})
NAMES_SHOWN = 3


@dataclass(frozen=True)
class Automation:
    """The automation that shows a consumer's schedule in Prefect."""

    id: UUID
    name: str


class FlowRuns:
    """Flow runs of a Prefect server."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api
        # Whoever makes runs makes them one after the other: two at once on SQLite are slower than one.
        self._one_at_a_time = asyncio.Lock()

    async def create(self, decision: Decision, context: RunContext, automation: Automation | None) -> UUID:
        """Create the run of a decision, or find the one that is there; its id.

        Raises:
            PrefectUnreachable: unknown whether it was created; asking again is safe.
            PrefectRefused: there will be no run (the deployment is gone, its parameters are incomplete).
        """
        return await self.make(decision.deployment_id, run_request(decision, context), automation)

    async def make(self, deployment_id: UUID, request: Json, automation: Automation | None) -> UUID:
        """Create a run of a deployment, or find the one with the same idempotency key; its id.

        Raises:
            PrefectUnreachable, PrefectRefused: as `create`.
        """
        async with self._one_at_a_time:
            path = f"/deployments/{deployment_id}/create_flow_run"
            answer = cast(Json, await self._api.post(path, request, _provenance(automation)))
        key = request.get("idempotency_key")
        if answer.get("idempotency_key", key) != key:
            # A stale answer of something on the way, perhaps: the run that is asked for may be there or not.
            raise PrefectUnreachable(f"Prefect answered with run {answer.get('id')}, which was not asked for")
        if str(answer.get("deployment_id")) != str(deployment_id):
            raise PrefectRefused(
                f"Prefect answered with run {answer.get('id')} of another deployment ({answer.get('deployment_id')}): "
                f"its flow already has a run with the idempotency key {key}"
            )
        return UUID(str(answer["id"]))

    async def ended(self, runs: Sequence[UUID]) -> dict[UUID, str]:
        """Those of the runs that have ended, with the name of their last state; "Deleted" for those that are gone.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        if not runs:
            return {}
        body = {"flow_runs": {"id": {"any_": [str(run) for run in runs]}}, "limit": len(runs)}
        answer = cast("list[Json]", await self._api.post("/flow_runs/filter", body))
        found = {UUID(str(run["id"])): run for run in answer}
        states = {run: _end(found[run]) for run in runs if run in found}
        for run in runs:
            if run not in found and await self._api.get(f"/flow_runs/{run}") is None:
                states[run] = "Deleted"
        return {run: state for run, state in states.items() if state}


def run_request(decision: Decision, context: RunContext) -> dict[str, Any]:
    """The body of create_flow_run.

    The only parameter is the partition key, a text: Prefect would execute objects such as those in an event's extra.
    """
    labels = {DECISION_LABEL: str(decision.id), CONSUMER_LABEL: context.consumer}
    if context.traceparent:
        labels[TRACEPARENT_LABEL] = context.traceparent
    parameters: dict[str, str] = {}
    if decision.target_key is not None:
        labels[PARTITION_KEY_LABEL] = parameters[KEY_PARAMETER] = decision.target_key
    return {
        "name": run_name(decision),
        "idempotency_key": str(decision.id),
        "context": run_context_to_json(context),
        "labels": labels,
        **({"parameters": parameters} if parameters else {}),
        "tags": ["assetflow"],
        "state": {"type": "SCHEDULED", "name": "Scheduled", "message": _message(decision)},
    }


def run_name(decision: Decision) -> str:
    """A name that a person reads in a list of runs: the key or the assets, and the head of the decision's id."""
    what = decision.target_key if decision.target_key is not None else _listed(decision.events, "-")
    return f"{what}-{str(decision.id)[:6]}"


def _message(decision: Decision) -> str:
    number = len(decision.events)
    if decision.kind == "backfill":
        return f"Started by a backfill for {decision.target_key}"
    updates = "1 update" if number == 1 else f"{number} updates"
    key = "" if decision.target_key is None else f" for {decision.target_key}"
    return f"Started by {updates}{key}: {_listed(decision.events, ', ')}"


def _listed(events: Iterable[AssetEvent], separator: str) -> str:
    names = list(dict.fromkeys(_short(event) for event in events))
    shown = names[:NAMES_SHOWN] + (["more"] if len(names) > NAMES_SHOWN else [])
    return separator.join(shown)


def _short(event: AssetEvent) -> str:
    asset = event.asset
    return asset.name if asset.name != asset.uri else asset.uri.rstrip("/").rpartition("/")[2][:60]


def _provenance(automation: Automation | None) -> dict[str, str]:
    if automation is None:
        return {}
    name = b64encode(automation.name.encode()).decode()
    return {"Prefect-Automation-ID": str(automation.id), "Prefect-Automation-Name": name}


def _end(run: Json) -> str:
    return str(run["state_name"]) if run.get("state_type") in TERMINAL else ""
