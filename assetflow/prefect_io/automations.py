"""One automation per asset-scheduled deployment: it shows the schedule in Prefect's UI, and its switch pauses it.

The automation has no owner: Prefect deletes and recreates the automations that a deployment owns on every deploy.
assetflow recognizes it by the tag `assetflow:schedule` and by the deployment that it runs. It keeps name, description,
trigger and action as the deployment needs them, recreates the automation if a user deletes it, and never changes the
switch.

A schedule is compiled to Prefect's own triggers by one pure function over the postfix form of its condition. On its way
up the tree it keeps two kinds of values: an OR of leaves and ANDs, and an AND of ORs. It merges nested gates of one
kind, so that the triggers are only as deep as the condition alternates between AND and OR. A gate without members needs
no special case: an AND of nothing is true, an OR of nothing is false. A quorum, a count and a span are triggers of
their own (`require`, `threshold`, `within`); Prefect has nothing for periods, so a `since` shows its condition only.
Contract 4.1, 9.17.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias, cast
from uuid import UUID

from prefect.events.actions import RunDeployment
from prefect.events.schemas.automations import (
    Automation,
    AutomationCore,
    CompoundTrigger,
    EventTrigger,
    Posture,
    TriggerTypes,
)
from prefect.events.schemas.deployment_triggers import (
    DeploymentCompoundTrigger,
    DeploymentEventTrigger,
    DeploymentTriggerTypes,
)
from prefect.events.schemas.events import ResourceSpecification
from pydantic import ValidationError

from assetflow.core.grouping import grouped
from assetflow.core.values.conditions import AssetAny, Condition, Gate, Leaf, Token, fold_condition
from assetflow.core.values.schedule_values import ScheduleValue, to_schedule
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.values.words import LONGEST
from assetflow.core.wire.deployments import ShownAutomation
from assetflow.errors import InvalidSchedule, UnsupportedDelivery
from assetflow.prefect_io.automation_text import (
    automation_description,
    automation_name,
    refusal_description,
    refusal_name,
    short_sentence,
)
from assetflow.prefect_io.deployments import ChangeFeed
from assetflow.prefect_io.names import (
    ALIAS_ROLE,
    ASSET_UPDATED,
    CONDITION_SHOWN,
    MATERIALIZATION_SUCCEEDED,
    SCHEDULE_SATISFIED,
    SCHEDULE_TAG,
    alias_resource_id,
    deployment_resource_id,
)
from assetflow.prefect_io.rest import Json, PrefectApi

_RUN_DEPLOYMENT = "run-deployment"
_OURS: Json = {"automations": {"tags": {"all_": [SCHEDULE_TAG]}}}

PrefectTrigger: TypeAlias = "EventTrigger | CompoundTrigger"

UPDATES = frozenset({ASSET_UPDATED, MATERIALIZATION_SUCCEEDED})
"""The Prefect events that are updates of an asset. Contract 2.6."""

MAX_DEPTH = 8
"""Deeper triggers block Prefect's server, which takes twice as long with each level (14: a second, 20: a minute)."""


def deployment_triggers(schedule: ScheduleValue | None) -> list[DeploymentTriggerTypes | TriggerTypes]:
    """Return a schedule as Prefect triggers, for `flow.deploy(triggers=...)`, `serve` and `to_deployment`.

    >>> from assetflow import Asset, deployment_triggers
    >>> [trigger.name for trigger in deployment_triggers(Asset("s3://shop/orders") | Asset("s3://shop/customers"))]
    ['runs when s3://…/orders OR s3://…/customers was updated']

    With these triggers Prefect decides, not assetflow. It decides rightly for one asset and for `a | b`. With any other
    condition it starts too many runs or too few; use `@flow(schedule=...)` for those. `times` counts no `@materialize`
    tasks. Contract 2.10, 9.17.

    Parameters:
        schedule: what `@flow(schedule=...)` takes. Times are left out: Prefect has schedules for them.

    Returns:
        One trigger, named after the condition; an empty list if the schedule has no assets or can never hold.

    Raises:
        InvalidSchedule: it is not a schedule, or alternates between AND and OR more often than Prefect can store.
        UnsupportedDelivery: it has periods (`since`) or opening hours, or it is an `Eager` or a `Lazy` schedule.
            Prefect's triggers have none of these.
    """
    options = ConsumerOptions(to_schedule(schedule))
    if options.schedule.keeping is not None:
        raise UnsupportedDelivery(
            "Prefect's triggers know no versions, so they cannot tell what is out of date",
            rule="8.1",
            fix="Write @flow(schedule=Eager(...)) and run the evaluator",
        )
    if options.schedule.condition is None:
        return []
    _refuse_periods_and_openings(options.schedule)
    triggers = condition_triggers(options.schedule.condition, UPDATES)
    return [_named(trigger, short_sentence(options)) for trigger in triggers]


def _refuse_periods_and_openings(schedule: Schedule) -> None:
    condition = schedule.condition
    periods = condition is not None and any(
        isinstance(node, Gate) and node.kind == "since" for node in condition.postfix
    )
    if periods or schedule.opening is not None:
        raise UnsupportedDelivery(
            f"Prefect's triggers have no {'periods' if periods else 'opening hours'}: {schedule.describe()}",
            rule="9.17",
            fix="Write @flow(schedule=...) and run the evaluator, or schedule on the condition alone",
        )


def _named(trigger: PrefectTrigger, name: str) -> DeploymentEventTrigger | DeploymentCompoundTrigger:
    """Return the trigger as a deployment trigger, which has a name."""
    kind = DeploymentCompoundTrigger if isinstance(trigger, CompoundTrigger) else DeploymentEventTrigger
    return kind(name=name, **dict(trigger))


def condition_triggers(condition: Condition, events: Collection[str]) -> list[PrefectTrigger]:
    """Return the condition as one trigger on events with these names, or an empty list if no event can satisfy it.

    Raises:
        InvalidSchedule: the triggers would be nested deeper than Prefect can store.
    """
    compiler = _Compiler(frozenset(events))
    root = fold_condition(condition, compiler.leaf, compiler.gate)
    if root == _TRUE:
        # The condition is true without any update of its own: any queued event makes the decision.
        root = _Or(tuple(dict.fromkeys(leaf.token for leaf in condition.leaves)))
    if root == _FALSE:
        return []
    if root.depth > MAX_DEPTH:
        raise InvalidSchedule(
            f"the condition alternates {root.depth} times between AND and OR, Prefect's triggers at most {MAX_DEPTH}",
            fix="Write it with fewer brackets",
        )
    return [compiler.trigger(root)]


def escaped(text: str) -> str:
    """Escape a text, so that Prefect's label patterns (`fnmatch`, and `!` in front negates) match it literally."""
    literal = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in text)
    # `[!]` would be read as a negated set, and a set needs a second member: one that no URI can hold.
    return f"[¡!]{literal[1:]}" if literal.startswith("!") else literal


def event_trigger(
    events: Iterable[str],
    match: dict[str, str | list[str]] | None = None,
    related: dict[str, str | list[str]] | None = None,
) -> EventTrigger:
    """Return a trigger on each single event with one of these names, with all fields that Prefect's API requires."""
    return EventTrigger(
        type="event",
        expect=set(events),
        after=set(),
        for_each=set(),
        match=ResourceSpecification(match or {}),
        match_related=ResourceSpecification(related or {}),
        posture=Posture.Reactive,
        threshold=1,
        within=timedelta(0),
    )


def compound_trigger(require: Literal["all", "any"] | int, triggers: Iterable[PrefectTrigger]) -> CompoundTrigger:
    """Return an AND (`all`), an OR (`any`) or a quorum (a number) of triggers, without a time limit."""
    return CompoundTrigger(type="compound", require=require, triggers=[*triggers], within=None)


@dataclass(frozen=True, eq=False)
class _Gates:
    """The compiled members of an OR that are not leaves; compared by identity, since they may be deep."""

    triggers: tuple[PrefectTrigger, ...] = ()


_NO_GATES = _Gates()


@dataclass(frozen=True)
class _Or:
    tokens: tuple[Token, ...]
    gates: _Gates = _NO_GATES
    depth: int = 1


@dataclass(frozen=True)
class _And:
    members: tuple[_Or, ...]
    depth: int = 1


_TRUE = _And(())
_FALSE = _Or(())


@dataclass(frozen=True)
class _Compiler:
    events: frozenset[str]

    def leaf(self, leaf: Leaf) -> _Or | _And:
        return _Or((leaf.token,))

    def gate(self, gate: Gate, members: list[_Or | _And]) -> _Or | _And:
        match gate.kind, gate.argument:
            case "at_least", int(needed):
                return self._at_least(needed, members)
            case "times", int(count) if count > 1:
                # Prefect counts the events of one trigger only, and only within a span: the longest there is.
                posted = replace(self, events=self.events - {MATERIALIZATION_SUCCEEDED}).trigger(members[0])
                counted = posted.model_copy(update={"threshold": count, "within": LONGEST})
                return self._alone(counted, members[0])
            case "within", timedelta() as span if members[0] not in (_TRUE, _FALSE):
                return self._alone(_limited(self.trigger(members[0]), span), members[0])
            case (("times" | "within" | "since"), _):
                return members[0]
            case "any", _:
                return self._any(members)
            case _:
                return self._all(members)

    def trigger(self, value: _Or | _And) -> PrefectTrigger:
        triggers = (
            [self.trigger(member) for member in value.members]
            if isinstance(value, _And)
            else [*self.leaves(value.tokens), *value.gates.triggers]
        )
        kind: Literal["all", "any"] = "all" if isinstance(value, _And) else "any"
        return triggers[0] if len(triggers) == 1 else compound_trigger(kind, triggers)

    def _all(self, members: list[_Or | _And]) -> _Or | _And:
        if _FALSE in members:
            return _FALSE
        parts: dict[_Or, None] = {}
        for member in members:
            parts.update(dict.fromkeys(member.members if isinstance(member, _And) else (member,)))
        if len(parts) == 1:
            return next(iter(parts))
        return _And(tuple(parts), 1 + max((part.depth for part in parts), default=0))

    def _any(self, members: list[_Or | _And]) -> _Or | _And:
        if _TRUE in members:
            return _TRUE
        members = [member for member in members if member != _FALSE]
        if len(members) == 1:
            return members[0]
        tokens: dict[Token, None] = {}
        gates: list[PrefectTrigger] = []
        for member in members:
            if isinstance(member, _Or):
                tokens.update(dict.fromkeys(member.tokens))
                gates.extend(member.gates.triggers)
            else:
                gates.append(self.trigger(member))
        if not gates:
            return _Or(tuple(tokens))
        return _Or(tuple(tokens), _Gates(tuple(gates)), 1 + max(member.depth for member in members))

    def _at_least(self, needed: int, members: list[_Or | _And]) -> _Or | _And:
        """Return a quorum. Members that are always true count at once, others that are never true never."""
        needed -= members.count(_TRUE)
        open_members = [member for member in members if member not in (_TRUE, _FALSE)]
        if needed <= 0:
            return _TRUE
        if needed in (1, len(open_members)):
            return self._any(open_members) if needed == 1 else self._all(open_members)
        if needed > len(open_members):
            return _FALSE
        quorum = compound_trigger(needed, map(self.trigger, open_members))
        return _Or((), _Gates((quorum,)), 1 + max(member.depth for member in open_members))

    def _alone(self, trigger: PrefectTrigger, member: _Or | _And) -> _Or:
        """Return a trigger that gates around it do not merge with their own."""
        return _Or((), _Gates((trigger,)), member.depth)

    def leaves(self, tokens: Iterable[Token]) -> list[PrefectTrigger]:
        """Return the triggers for all assets, all references by name, and all aliases: a list is an OR."""
        found = grouped(tokens)
        triggers: list[PrefectTrigger] = []
        if uris := found.get("uri"):
            triggers += self._on({"prefect.resource.id": [*map(escaped, uris)]})
        if names := found.get("name"):
            triggers += self._on({"prefect.resource.name": [*map(escaped, names)]})
        if aliases := found.get("alias"):
            ids: list[str] = [escaped(alias_resource_id(alias)) for alias in aliases]
            related: dict[str, str | list[str]] = {"prefect.resource.role": ALIAS_ROLE, "prefect.resource.id": ids}
            triggers.append(event_trigger(self.events - {MATERIALIZATION_SUCCEEDED}, related=related))
        return triggers

    def _on(self, match: dict[str, str | list[str]]) -> list[PrefectTrigger]:
        """Return the triggers on updates of assets, without the events that assetflow posts beside them (2.10)."""
        triggers: list[PrefectTrigger] = []
        if posted := self.events - {MATERIALIZATION_SUCCEEDED}:
            triggers.append(event_trigger(posted, match))
        if MATERIALIZATION_SUCCEEDED in self.events:
            by_task = {"prefect.resource.role": "task-run"}
            triggers.append(event_trigger([MATERIALIZATION_SUCCEEDED], match, dict(by_task)))
        return triggers


def _limited(trigger: PrefectTrigger, span: timedelta) -> PrefectTrigger:
    """Return a trigger whose events have to come within a span; of two spans, the shorter counts."""
    known = trigger.within or span
    return trigger.model_copy(update={"within": min(known, span)})


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
        return compound_trigger("any", [start, *_Compiler(frozenset({CONDITION_SHOWN})).leaves(inputs)])
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
