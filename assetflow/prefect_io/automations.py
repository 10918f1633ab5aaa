"""One automation per asset-scheduled deployment: it shows the schedule in Prefect's UI, and its switch pauses it.

The automation has no owner, since Prefect deletes and makes again what a deployment owns whenever it is deployed. It is
known by the tag `assetflow:schedule` and by the deployment that it runs. assetflow keeps name, description, trigger and
action in step with the deployment, makes the automation again if somebody deletes it, and never touches the switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast
from uuid import UUID

from prefect.events.actions import RunDeployment
from prefect.events.schemas.automations import Automation, AutomationCore, EventTrigger

from assetflow.core.conditions import AssetAny
from assetflow.core.schedules import ConsumerOptions, Schedule
from assetflow.errors import InvalidSchedule, UnsupportedDelivery
from assetflow.prefect_io.latest import Changes, Latest
from assetflow.prefect_io.names import CONDITION_SHOWN, SCHEDULE_SATISFIED, SCHEDULE_TAG, deployment_resource_id
from assetflow.prefect_io.rest import Json, PrefectApi
from assetflow.prefect_io.triggers import (
    UPDATES,
    PrefectTrigger,
    compound_trigger,
    condition_triggers,
    event_trigger,
)
from assetflow.prefect_io.wording import automation_description, automation_name

Delivery = Literal["evaluator", "prefect"]

_DECIDES: dict[Delivery, str] = {"evaluator": "The evaluator of assetflow", "prefect": "Prefect"}
_OURS: Json = {"automations": {"tags": {"all_": [SCHEDULE_TAG]}}}


@dataclass(frozen=True)
class Shown:
    """An automation of ours as Prefect has it.

    Attributes:
        deployment_id: the deployment that it runs; none if somebody took the action away.
        enabled: its switch.
    """

    id: UUID
    updated: datetime | None
    deployment_id: UUID | None
    enabled: bool
    content: AutomationCore

    @property
    def name(self) -> str:
        return self.content.name


def automation_for(
    deployment_id: UUID, consumer: str, options: ConsumerOptions, *, delivery: Delivery = "evaluator"
) -> AutomationCore:
    """The automation that a deployment with this schedule should have; `enabled` is left open.

    Parameters:
        consumer: `flow/deployment`.
        delivery: `evaluator` gives one that shows the condition and does not decide it; `prefect` one that decides.

    Raises:
        UnsupportedDelivery: with `prefect`, a condition that Prefect decides wrongly.
    """
    schedule = options.schedule
    trigger = _deciding(options, consumer) if delivery == "prefect" else _showing(deployment_id, schedule)
    return AutomationCore(
        name=automation_name(consumer, schedule),
        description=automation_description(schedule, who_decides=_DECIDES[delivery]),
        tags=[SCHEDULE_TAG],
        trigger=trigger,
        actions=[RunDeployment(source="selected", deployment_id=deployment_id, parameters=None, job_variables=None)],
    )


def refuse_what_prefect_decides_wrongly(options: ConsumerOptions, where: str) -> None:
    """Let pass what Prefect's own triggers decide rightly: one asset, or a flat OR of assets.

    Raises:
        UnsupportedDelivery: anything else, with an example that goes wrong.
    """
    example = _example_that_breaks(options)
    if example:
        raise UnsupportedDelivery(
            f"Prefect's own triggers cannot decide a schedule on {options.schedule.describe()}: {example}",
            where=where,
            fix="Unset ASSETFLOW_DELIVERY and run the evaluator, or schedule the flow on one asset or on `a | b`",
        )


def _example_that_breaks(options: ConsumerOptions) -> str:
    schedule = options.schedule
    if schedule.is_partitioned:
        return "on `a & b` per partition, updates of a for one key and of b for another start a run, and should not"
    if options.coalesce:
        return "`coalesce` waits while a run is going on, they start a run per update"
    if options.while_paused == "keep":
        return "`while_paused='keep'` keeps what comes during a pause, they drop it"
    if schedule.timetable is not None:
        return "of its times, they run a daily 02:30 at 01:30 on the day when clocks go forward"
    if schedule.condition is None:
        return ""
    kinds = {leaf.token.kind for leaf in schedule.condition.leaves}
    if "alias" in kinds:
        return "an asset that is linked to the alias and then updated directly starts nothing"
    if "name" in kinds:
        return "an update that gives the asset another name starts nothing"
    triggers = condition_triggers(schedule.condition, UPDATES)
    if not triggers or isinstance(triggers[0], EventTrigger):
        return ""
    if triggers[0].require == "all":
        return "on `a & b`, the updates a, a, b start a run that is handed the last a only; a, a redeploy, b start none"
    return "on `a | (b & c)`, the updates b, a, c start two runs instead of one"


def _deciding(options: ConsumerOptions, consumer: str) -> PrefectTrigger:
    refuse_what_prefect_decides_wrongly(options, f"deployment {consumer!r}")
    condition = options.schedule.condition
    triggers = condition_triggers(condition, UPDATES) if condition is not None else []
    # A schedule without assets never runs; its automation is there all the same, and nothing triggers it.
    return triggers[0] if triggers else event_trigger({CONDITION_SHOWN})


def _showing(deployment_id: UUID, schedule: Schedule) -> PrefectTrigger:
    """Anybody may start the deployment by emitting its event; the rest is there to be looked at."""
    start = event_trigger({SCHEDULE_SATISFIED}, {"prefect.resource.id": deployment_resource_id(deployment_id)})
    condition = schedule.condition
    if condition is None:
        return compound_trigger("any", [start])
    try:
        shown = condition_triggers(condition, {CONDITION_SHOWN})
    except InvalidSchedule:
        # Too deep for Prefect: its assets can still be seen, and the description has the words.
        shown = condition_triggers(AssetAny(*condition.leaves), {CONDITION_SHOWN})
    return compound_trigger("any", [start, *shown])


def to_shown(row: Json) -> Shown:
    """An automation of ours, read from its JSON."""
    automation = Automation.model_validate(row)
    runs = [action.deployment_id for action in automation.actions if isinstance(action, RunDeployment)]
    updated = row.get("updated")
    return Shown(
        id=automation.id,
        updated=None if updated is None else datetime.fromisoformat(updated),
        deployment_id=runs[0] if runs else None,
        enabled=automation.enabled,
        content=automation,
    )


def in_step(shown: Shown, wanted: AutomationCore) -> bool:
    """Whether the automation is as it should be; further tags and the switch are the user's."""
    has = shown.content
    return (
        (has.name, has.description, has.trigger) == (wanted.name, wanted.description, wanted.trigger)
        and has.actions == wanted.actions
        and set(wanted.tags) <= set(has.tags)
    )


class Automations:
    """The automations of ours on a Prefect server."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api
        self._latest = Latest(api, "/automations", to_shown, _OURS)

    async def changes(self) -> Changes[Shown]:
        """What changed since the last call; everything at the first.

        Raises:
            PrefectUnreachable, PrefectRefused: nothing is lost, the next call tells it.
        """
        return await self._latest.changes()

    async def changed_since(self, moment: datetime) -> Sequence[Shown]:
        """Those that changed after a time; `changes` tells them too."""
        return await self._latest.changed_since(moment)

    async def find(self, automation: UUID) -> Shown | None:
        """The automation with this id, even if somebody took our tag away from it."""
        return await self._latest.find(automation)

    async def of_deployment(self, deployment_id: UUID) -> Shown | None:
        """The automation of ours that shows this deployment's schedule."""
        rows = await self._api.get(f"/automations/related-to/{deployment_resource_id(deployment_id)}")
        ours = [row for row in cast("list[Json]", rows or []) if SCHEDULE_TAG in (row.get("tags") or ())]
        return to_shown(ours[0]) if ours else None

    async def create(self, wanted: AutomationCore, *, enabled: bool) -> UUID:
        """Make an automation; its id."""
        body = {**wanted.model_dump(mode="json"), "enabled": enabled}
        return UUID(cast("dict[str, Any]", await self._api.post("/automations/", body))["id"])

    async def update(self, shown: Shown, wanted: AutomationCore) -> None:
        """Bring an automation in step. The switch is not sent, so that it stays as it is on the server."""
        body = wanted.model_dump(mode="json", exclude={"enabled", "owner_resource"})
        body["tags"] = list(dict.fromkeys([*shown.content.tags, *wanted.tags]))
        await self._api.put(f"/automations/{shown.id}", body)

    async def delete(self, automation: UUID) -> None:
        await self._api.delete(f"/automations/{automation}")

    async def switch(self, automation: UUID, *, enabled: bool) -> None:
        """Pause or resume a schedule."""
        await self._api.patch(f"/automations/{automation}", {"enabled": enabled})
