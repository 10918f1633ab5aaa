"""Carry out the steps of a scenario, with the same rules as the running system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import singledispatch
from typing import cast
from uuid import UUID

from assetflow.core.freshness import deploying as freshness
from assetflow.core.freshness.deploying import check_flow
from assetflow.core.partitions import check_key
from assetflow.core.rules import opening_hours, registry
from assetflow.core.rules.fold import Touched, record
from assetflow.core.rules.registry import NamedEvents
from assetflow.core.simulate.answer import event_to_answer, explained
from assetflow.core.simulate.consumers import ConsumerSpec
from assetflow.core.simulate.steps import (
    Action,
    AdvanceStep,
    AliasEventStep,
    DeleteQueuedStep,
    EventStep,
    ExplainStep,
    GetQueuedStep,
    PauseStep,
    QueueFilter,
    RedeployStep,
    RemoveStep,
    ResumeStep,
    Said,
    StartStep,
    StopStep,
    TaskStep,
    TickStep,
)
from assetflow.core.simulate.world import World
from assetflow.core.values.assets import Asset, check_data_version
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent, Origin, Recording, check_extra
from assetflow.core.values.outcome import TaskOutcome, Update
from assetflow.core.values.uri import check_alias
from assetflow.errors import AssetflowError, OutletError

# The rules by which a flow may be refused because of what is deployed beside it.
_DEPENDS_ON_OTHERS = ("8.1", "8.10")


def in_order(specs: Mapping[str, ConsumerSpec]) -> list[tuple[str, ConsumerSpec]]:
    """Return consumers in the order in which they are deployed: as written, or by name if any of them makes assets."""
    return sorted(specs.items()) if any(spec.runs is not None for spec in specs.values()) else list(specs.items())


def deploy(world: World, name: str, spec: ConsumerSpec) -> Touched:
    """Deploy a consumer, or change its schedule if it exists, and return the consumers to check.

    A refused schedule changes nothing and is noted in the answer. One that is refused because of another deployment is
    looked at again whenever another one changes (8.1).
    """
    world.refused.pop(name, None)
    try:
        touched = _deploy(world, name, spec)
    except AssetflowError as error:
        world.fail(error, consumer=name)
        if error.rule in _DEPENDS_ON_OTHERS:
            world.refused[name] = spec
        return {}
    return touched | deploy_refused(world)


def deploy_refused(world: World) -> Touched:
    """Look again at the consumers that were refused because of others, by name."""
    touched: Touched = {}
    for name, spec in sorted(world.refused.items()):
        try:
            touched |= _deploy(world, name, spec)
        except AssetflowError:
            continue
        del world.refused[name]
        return touched | deploy_refused(world)
    return touched


def _deploy(world: World, name: str, spec: ConsumerSpec) -> Touched:
    before = world.find(name)
    touched = _deploy_new(world, name, spec) if before is None else _change(world, before, spec)
    consumer = world.consumer(name)
    touched |= registry.declare_names(world.state, spec.declares(), consumer.deployment_id)
    world.lasting.specs.pop(consumer.id, None)
    if spec.runs is not None:
        world.lasting.specs[consumer.id] = spec.runs
    return touched


def _deploy_new(world: World, name: str, spec: ConsumerSpec) -> Touched:
    options = spec.options()
    consumer = Consumer(0, name, world.new_id("deployment", name), options, paused=spec.paused)
    registry.check_names(world.state, consumer)
    check_flow(world.state.freshness, consumer)
    number = world.new_consumer_id(name)
    consumer = replace(consumer, id=number, deployment_id=world.new_id("deployment", number))
    registry.deploy(world.state, consumer)
    _follow(world, None, consumer)
    return registry.touched_by(world.state, consumer)


def _follow(world: World, before: Consumer | None, consumer: Consumer) -> None:
    world.timers.follow(consumer, world.now)
    opening_hours.follow(world.state, before, consumer, world.now)
    freshness.follow(world.state.freshness, before, consumer, world.now)


def _change(world: World, consumer: Consumer, spec: ConsumerSpec) -> Touched:
    changed = registry.change(world.state, consumer, spec.options())
    _follow(world, consumer, changed)
    return registry.touched_by(world.state, changed)


def attempt(world: World, action: Action) -> Touched:
    """Carry out one step; one that is refused has no effect but an entry in the answer's errors."""
    try:
        return carry_out(action, world)
    except AssetflowError as error:
        world.fail(error)
        return {}


@singledispatch
def carry_out(action: Action, world: World) -> Touched:
    """Carry out one step, and return the consumers that the next pass has to check.

    Raises:
        AssetflowError: the step is refused and had no effect.
    """
    raise NotImplementedError(action)


@carry_out.register
def _(action: EventStep, world: World) -> Touched:
    if action.data_version is not None:
        check_data_version(action.data_version)
    event = AssetEvent(
        id=world.new_id("event", action.id) if action.id is not None else world.new_id("step", world.step),
        asset=action.event(),
        occurred=world.now,
        origin=Origin("api"),
        extra=check_extra(action.extra),
        partition_key=None if action.partition_key is None else check_key(action.partition_key),
        aliases=tuple(sorted({check_alias(cast("str", alias)) for alias in action.aliases})),
        data_version=cast("str | None", action.data_version),
    )
    return record_events(world, [event])


@carry_out.register
def _(action: TaskStep | AliasEventStep, world: World) -> Touched:
    task = action.task
    outlets = [outlet() for outlet in task.outlets]
    said = [(entry, entry.asset()) for entry in task.emit]
    assets = [*(outlet for outlet in outlets if isinstance(outlet, Asset)), *(asset for _, asset in said)]
    # Of several URIs with one name, the first has it.
    named = {asset.name: asset.uri for asset in reversed(assets)}
    outcome = TaskOutcome(outlets, lambda name: world.state.names.owner_of(name) or named.get(name))
    updates = []
    if task.state == "completed":
        for entry, asset in said:
            _say(outcome, entry, asset)
        updates = outcome.updates(cast("str | None", task.partition_key))
    touched = registry.declare_names(world.state, assets)
    task_run = world.new_id("task run", world.step)
    recorded = record_events(world, [_task_event(update, task_run, world.now) for update in updates])
    # `touched` checks all keys of its consumers, which includes the keys in `recorded`.
    return recorded | touched


@carry_out.register
def _(action: TickStep, world: World) -> Touched:  # noqa: ARG001
    return {consumer.id: (consumer, None) for consumer in world.consumers}


@carry_out.register
def _(action: PauseStep, world: World) -> Touched:
    return _pause(world, action.pause, paused=True)


@carry_out.register
def _(action: ResumeStep, world: World) -> Touched:
    return _pause(world, action.resume, paused=False)


def _pause(world: World, name: str, *, paused: bool) -> Touched:
    before = world.consumer(name)
    changed = registry.switch(world.state, before, paused=paused, now=world.now)
    world.timers.follow(changed, world.now)
    return registry.touched_by_switch(world.state, before, changed)


@carry_out.register
def _(action: RedeployStep, world: World) -> Touched:
    touched: Touched = {}
    for name, spec in in_order(action.redeploy):
        touched |= deploy(world, name, spec)
    return touched


@carry_out.register
def _(action: RemoveStep, world: World) -> Touched:
    consumer = world.consumer(action.remove)
    registry.remove(world.state, consumer)
    freshness.leave(world.state.freshness, consumer.id, world.now)
    world.timers.pop(consumer.id, None)
    world.lasting.specs.pop(consumer.id, None)
    world.refused.pop(action.remove, None)
    return deploy_refused(world)


@carry_out.register
def _(action: GetQueuedStep, world: World) -> Touched:
    consumers, named, touched = _select(world, action.get_queued)
    found: dict[str, object] = {}
    for consumer in consumers:
        queue = world.state.queues.queued(consumer.id, action.get_queued.partition_key)
        if events := [event_to_answer(world, event) for event in queue if named.has(event)]:
            found[consumer.name] = events
    world.answers.append({"step": world.step, "queued": found})
    return touched


@carry_out.register
def _(action: DeleteQueuedStep, world: World) -> Touched:
    removal = action.delete_queued
    consumers, named, touched = _select(world, removal)
    keys = [removal.partition_key]
    removed = sum(
        registry.remove_queued(world.state, consumer, named.has, keys, by=removal.by, why=removal.why)
        for consumer in consumers
    )
    world.answers.append({"step": world.step, "removed": removed})
    return touched


@carry_out.register
def _(action: AdvanceStep | StopStep | StartStep, world: World) -> Touched:  # noqa: ARG001
    return {}


@carry_out.register
def _(action: ExplainStep, world: World) -> Touched:
    consumer = world.consumer(action.explain)
    world.answers.append({"step": world.step, "consumer": consumer.name, "explained": explained(world, consumer)})
    return {}


def record_events(world: World, events: Iterable[AssetEvent]) -> Touched:
    recording = Recording(world.new_id("recording", world.step), tuple(events))
    recorded = record(world.state, recording, world.now)
    world.note_events(recorded.events)
    return recorded.touched


def _task_event(update: Update, task_run: UUID, now: datetime) -> AssetEvent:
    return AssetEvent(
        id=update.event_id(task_run),
        asset=update.asset,
        occurred=now,
        origin=Origin("task"),
        extra=update.extra,
        partition_key=update.partition_key,
        aliases=update.aliases,
        data_version=update.data_version,
    )


def _say(outcome: TaskOutcome, entry: Said, asset: Asset) -> None:
    extra = cast("Mapping[str, object] | None", entry.extra)
    if entry.alias is None:
        outcome.say(asset, extra)
        if entry.partition_keys is not None:
            outcome.add_partitions(asset, cast("list[str]", entry.partition_keys))
        return
    if entry.partition_keys is not None:
        raise OutletError(
            f"partition keys are given for alias {entry.alias!r}", rule="2.5", fix="Its events have the run's key"
        )
    outcome.add(entry.alias, asset, extra)


def _select(world: World, chosen: QueueFilter) -> tuple[Sequence[Consumer], NamedEvents, Touched]:
    """Return the consumers and events that a step about queued events names, and the consumers to check afterwards."""
    consumers = world.consumers if chosen.consumer is None else [world.consumer(chosen.consumer)]
    asset = None if chosen.asset is None else chosen.asset()
    named = NamedEvents(None if asset is None else asset.uri, before=chosen.before)
    return consumers, named, {} if asset is None else registry.declare_names(world.state, [asset])
