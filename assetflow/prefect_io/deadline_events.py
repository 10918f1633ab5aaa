"""Write the Prefect event of a missed deadline, to which users' automations can react. Contract 9.8."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid5

from assetflow.core.json_data import fit_object
from assetflow.core.values.consumers import MissedDeadline
from assetflow.prefect_io.names import DEADLINE_MISSED, deployment_resource_id

_NAMESPACE = UUID("6b2a1d0e-6e0b-5c0f-9d5b-0d3f0a9a7c11")


ASSETS_NAMED = 90  # Prefect takes 100 related resources.


def deadline_missed(
    missed: MissedDeadline, consumer: str, deployment_id: UUID, automation_id: UUID | None
) -> dict[str, Any]:
    """Return the event of a missed deadline. Its id follows from consumer, key and instant: Prefect stores it once.

    Parameters:
        consumer: the name `flow/deployment`.
        automation_id: the automation that shows its schedule.
    """
    key = missed.target_key
    named = missed.missing[:ASSETS_NAMED]
    event = {
        "id": str(uuid5(_NAMESPACE, "|".join((str(deployment_id), key or "", missed.due.isoformat())))),
        "occurred": missed.at.isoformat(),
        "event": DEADLINE_MISSED,
        "resource": {
            "prefect.resource.id": f"assetflow.consumer.{deployment_id}",
            "prefect.resource.name": consumer,
        },
        "related": [
            _related(deployment_resource_id(deployment_id), "deployment"),
            *([] if automation_id is None else [_related(f"prefect.automation.{automation_id}", "automation")]),
            *(_related(name, "missing") for name in named),
        ],
        "payload": {
            "version": 1,
            "consumer": consumer,
            "partition_key": key,
            "due": missed.due.isoformat(),
            "then": missed.then,
            "queued": missed.queued,
            "missing": list(named),
        },
    }
    return fit_object(event)


def _related(number: str, role: str) -> dict[str, str]:
    return {"prefect.resource.id": number, "prefect.resource.role": role}
