"""Write the Prefect event of a decision: it shows users why a run exists, and their automations can react to it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from assetflow.core.values.consumers import Automation, Decision
from assetflow.prefect_io.names import DECISION_MADE, deployment_resource_id

EVENTS_NAMED = 1_000
CAUSES_NAMED = 100
ASSETS_NAMED = 90  # Prefect takes 100 related resources.


def decision_made(
    decision: Decision, consumer: str, automation: Automation | None, flow_run: UUID, occurred: str
) -> dict[str, Any]:
    """Return the event of a decision. It has the decision's id, so that Prefect stores it once.

    Parameters:
        consumer: the name `flow/deployment`.
        occurred: the time of the event, in ISO format.
    """
    return {
        "id": str(decision.id),
        "occurred": occurred,
        "event": DECISION_MADE,
        "resource": {
            "prefect.resource.id": f"assetflow.decision.{decision.id}",
            "prefect.resource.name": consumer,
        },
        "related": _related(decision, automation, flow_run),
        "payload": {
            "version": 1,
            "consumer": consumer,
            "partition_key": decision.target_key,
            "events": [str(event.id) for event in decision.events[:EVENTS_NAMED]],
            "number_of_events": len(decision.events),
            **_because(decision),
        },
    }


def _because(decision: Decision) -> dict[str, Any]:
    """Return the causes for which an Eager or Lazy flow was asked for the run."""
    causes = [cause.as_json() for cause in decision.because[:CAUSES_NAMED]]
    return {"because": causes} if causes else {}


def _related(decision: Decision, automation: Automation | None, flow_run: UUID) -> list[dict[str, str]]:
    related = [
        _resource(f"prefect.flow-run.{flow_run}", "flow-run"),
        _resource(deployment_resource_id(decision.deployment_id), "deployment"),
    ]
    if automation is not None:
        related.append(_resource(f"prefect.automation.{automation.id}", "automation", automation.name))
    assets = {event.uri: event.asset.name for event in decision.events}
    return related + [_resource(uri, "asset", name) for uri, name in list(assets.items())[:ASSETS_NAMED]]


def _resource(number: str, role: str, name: str = "") -> dict[str, str]:
    named = {"prefect.resource.name": name} if name else {}
    return {"prefect.resource.id": number, "prefect.resource.role": role, **named}
