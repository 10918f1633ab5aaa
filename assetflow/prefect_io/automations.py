"""One automation per asset-scheduled deployment: it shows the schedule in Prefect's UI, and its switch pauses it.

The automation has no owner: Prefect deletes and recreates the automations that a deployment owns on every deploy.
assetflow recognizes it by the tag `assetflow:schedule` and by the deployment that it runs. It keeps name, description,
trigger and action as the deployment needs them, recreates the automation if a user deletes it, and never changes the
switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from prefect.events.actions import RunDeployment
from prefect.events.schemas.automations import Automation, AutomationCore
from pydantic import ValidationError

from assetflow.core.values.conditions import AssetAny
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire.deployments import Deployed, ShownAutomation
from assetflow.errors import InvalidSchedule
from assetflow.prefect_io.automation_text import (
    automation_description,
    automation_name,
    refusal_description,
    refusal_name,
)
from assetflow.prefect_io.deployments import ChangeFeed
from assetflow.prefect_io.names import CONDITION_SHOWN, SCHEDULE_SATISFIED, SCHEDULE_TAG, deployment_resource_id
from assetflow.prefect_io.rest import Json, PrefectApi
from assetflow.prefect_io.triggers import (
    PrefectTrigger,
    compound_trigger,
    condition_triggers,
    event_trigger,
    updates_of_any,
)

_RUN_DEPLOYMENT = "run-deployment"
_OURS: Json = {"automations": {"tags": {"all_": [SCHEDULE_TAG]}}}


def automation_for(deployment_id: UUID, consumer: str, options: ConsumerOptions) -> AutomationCore:
    """Return the automation that shows the schedule of a deployment, without `enabled`.

    Parameters:
        consumer: the name `flow/deployment`.
    """
    return AutomationCore(
        name=automation_name(consumer, options),
        description=automation_description(options),
        tags=[SCHEDULE_TAG],
        trigger=_showing(deployment_id, options),
        actions=[_run_of(deployment_id)],
    )


def _run_of(deployment_id: UUID) -> RunDeployment:
    return RunDeployment(source="selected", deployment_id=deployment_id, parameters=None, job_variables=None)


def _showing(deployment_id: UUID, options: ConsumerOptions) -> PrefectTrigger:
    """Return a trigger that shows the condition, or the inputs of an Eager or Lazy flow.

    Only the deployment's own event, which a user may emit, fires it.
    """
    start = event_trigger({SCHEDULE_SATISFIED}, {"prefect.resource.id": deployment_resource_id(deployment_id)})
    condition, keeping = options.schedule.condition, options.schedule.keeping
    if keeping is not None:
        # Aliases are not inputs (8.1).
        inputs = sorted(token for token in keeping.start_tokens or options.input_tokens if token.kind != "alias")
        return compound_trigger("any", [start, *updates_of_any(inputs, {CONDITION_SHOWN})])
    if condition is None:
        return compound_trigger("any", [start])
    try:
        shown = condition_triggers(condition, {CONDITION_SHOWN})
    except InvalidSchedule:
        # Too deep for Prefect: show only the assets; the description has the whole condition.
        shown = condition_triggers(AssetAny(*condition.leaves), {CONDITION_SHOWN})
    return compound_trigger("any", [start, *shown])


@dataclass(frozen=True)
class Unreadable:
    """What an automation does, in a form that this version of Prefect does not know: a user edited it elsewhere."""

    tags: Sequence[str]


def to_shown(row: Json) -> ShownAutomation:
    """Read one of assetflow's automations from its JSON."""
    updated = row.get("updated")
    return ShownAutomation(
        id=UUID(str(row["id"])),
        name=str(row["name"]),
        updated=None if updated is None else datetime.fromisoformat(updated),
        deployment_id=_deployment_run_by(row),
        enabled=bool(row.get("enabled", True)),
        content=_content(row),
    )


def _content(row: Json) -> Automation | Unreadable:
    try:
        return Automation.model_validate(row)
    except ValidationError:
        return Unreadable(tuple(map(str, row.get("tags") or ())))


def _deployment_run_by(row: Json) -> UUID | None:
    actions = cast("list[Json]", row.get("actions") or [])
    runs = [each.get("deployment_id") for each in actions if each.get("type") == _RUN_DEPLOYMENT]
    return UUID(str(runs[0])) if runs and runs[0] is not None else None


class Automations(ChangeFeed[ShownAutomation]):
    """The automations of assetflow on a Prefect server, and their changes."""

    def __init__(self, api: PrefectApi) -> None:
        super().__init__(api, "/automations", to_shown, _OURS)

    async def of_deployment(self, deployment_id: UUID) -> ShownAutomation | None:
        """Return the automation that shows this deployment's schedule, or `None`."""
        rows = await self._api.get(f"/automations/related-to/{deployment_resource_id(deployment_id)}")
        ours = [row for row in cast("list[Json]", rows or []) if SCHEDULE_TAG in (row.get("tags") or ())]
        return to_shown(ours[0]) if ours else None

    def wanted(self, deployed: Deployed) -> AutomationCore:
        """Return the automation that a deployment should have, without `enabled`."""
        return automation_for(deployed.id, deployed.name, deployed.options)

    def refused(self, deployment_id: UUID, name: str, options: ConsumerOptions | None, why: str) -> AutomationCore:
        """Return the automation of a deployment that is refused, without `enabled`.

        Parameters:
            name: `flow/deployment`.
            options: the options by which the deployment still runs; `None` if it is not a consumer.
        """
        if options is not None and options.schedule.starts_runs:
            before = automation_for(deployment_id, name, options)
            words = refusal_description(why, f"What it had before stays. {before.description}")
            return before.model_copy(update={"description": words})
        return AutomationCore(
            name=refusal_name(name),
            description=refusal_description(why, "Its schedule starts nothing until then."),
            tags=[SCHEDULE_TAG],
            trigger=event_trigger({CONDITION_SHOWN}),
            actions=[_run_of(deployment_id)],
        )

    @staticmethod
    def is_in_step(shown: ShownAutomation, wanted: AutomationCore) -> bool:
        """Return True if an automation is as wanted. Other tags and the switch belong to the user."""
        has = shown.content
        return (
            not isinstance(has, Unreadable)
            and (has.name, has.description, has.trigger) == (wanted.name, wanted.description, wanted.trigger)
            and has.actions == wanted.actions
            and set(wanted.tags) <= set(has.tags)
        )

    async def create(self, deployment_id: UUID, wanted: AutomationCore, *, enabled: bool) -> ShownAutomation:
        """Create the automation of a deployment."""
        body = {**wanted.model_dump(mode="json"), "enabled": enabled}
        number = UUID(cast("dict[str, Any]", await self._api.post("/automations/", body))["id"])
        return ShownAutomation(number, wanted.name, None, deployment_id, enabled, wanted)

    async def update(self, shown: ShownAutomation, wanted: AutomationCore) -> None:
        """Update an automation. The request leaves out the switch, so that it does not change on the server."""
        body = wanted.model_dump(mode="json", exclude={"enabled", "owner_resource"})
        body["tags"] = list(dict.fromkeys([*shown.content.tags, *wanted.tags]))
        await self._api.put(f"/automations/{shown.id}", body)

    async def delete(self, automation: UUID) -> None:
        await self._api.delete(f"/automations/{automation}")

    async def switch(self, automation: UUID, *, enabled: bool) -> None:
        """Turn an automation on or off, which resumes or pauses its consumer."""
        await self._api.patch(f"/automations/{automation}", {"enabled": enabled})
