"""Carry out the steps about versions, runs that last, and freshness."""

from __future__ import annotations

from typing import cast

from assetflow.core.freshness import backfilling
from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.recording import retry
from assetflow.core.freshness.records import Backfill, Run, Target
from assetflow.core.partitions import check_key
from assetflow.core.rules import registry
from assetflow.core.rules.fold import Touched, record
from assetflow.core.simulate.actions import carry_out
from assetflow.core.simulate.answer import freshness_answer, plan_answer, status_answer, target_to_answer
from assetflow.core.simulate.reading import is_object
from assetflow.core.simulate.steps import (
    AgainStep,
    BackfillStep,
    BeginStep,
    FinishStep,
    FreshnessStep,
    ObserveStep,
    PlanStep,
    RetryStep,
    RunStep,
    StatusStep,
    TriggerStep,
)
from assetflow.core.simulate.world import World, begin_later, end, lasts, run_again, trigger
from assetflow.core.values.assets import check_data_version
from assetflow.core.values.events import AssetEvent, Origin, Recording


@carry_out.register
def _(action: ObserveStep, world: World) -> Touched:
    asset = action.observe()
    by_key = cast("dict[str | None, object]", action.version if is_object(action.version) else {None: action.version})
    found: list[AssetEvent] = []
    for key, version in by_key.items():
        if key is not None:
            check_key(key)
        if version is not None:
            text = check_data_version(str(version))
            number = world.new_id("observation", world.step, key or "")
            found.append(AssetEvent(number, asset, world.now, Origin("api"), partition_key=key, data_version=text))
    recording = Recording(world.new_id("recording", world.step), observed=tuple(found))
    recorded = record(world.state, recording, world.now)
    for _, error in recorded.refused:
        raise error
    world.note_events(recorded.events)
    return recorded.touched


@carry_out.register
def _(action: TriggerStep, world: World) -> Touched:
    consumer = world.consumer(action.trigger)
    if lasts(world, consumer.id):
        trigger(world, Target(consumer.id, action.partition_key))
    return {}


@carry_out.register
def _(action: BeginStep, world: World) -> Touched:
    for run in _runs(world, action.begin, action.partition_key):
        begin_later(world, run)
    return {}


@carry_out.register
def _(action: FinishStep, world: World) -> Touched:
    consumer = world.consumer(action.finish)
    touched: Touched = {}
    for run in _runs(world, action.finish, action.partition_key):
        touched |= end(world, run, action)
    if not lasts(world, consumer.id):
        world.state.decisions.end_runs(consumer.id)
        registry.touch_ended(world.state, consumer.id, None, touched)
    return touched


@carry_out.register
def _(action: AgainStep, world: World) -> Touched:
    target = Target(world.consumer(action.again).id, action.partition_key)
    if not lasts(world, target.consumer):
        world.state.decisions.retry_run(*target)
    elif target in world.lasting.last:
        run_again(world, world.lasting.last[target])
    return {}


@carry_out.register
def _(action: RunStep, world: World) -> Touched:
    consumer = world.consumer(action.run)
    if not lasts(world, consumer.id):
        return {}
    key = action.partition_key if _node(world, action.run).is_partitioned else None
    run = trigger(world, Target(consumer.id, key))
    return end(world, run, action)


@carry_out.register
def _(action: RetryStep, world: World) -> Touched:
    retry(world.state.freshness, _node(world, action.retry), action.partition_key, world.now)
    return {}


@carry_out.register
def _(action: BackfillStep, world: World) -> Touched:
    freshness, of = world.state.freshness, action.backfill
    above = backfilling.targets_of(freshness, of.asset().uri, of.keys, down=of.down)
    if of.dry_run:
        waves = backfilling.waves_of(backfilling.steps_of(freshness, above))
        found = [[target_to_answer(world, target) for target in wave] for wave in waves]
        world.answers.append({"step": world.step, "waves": found})
    else:
        world.backfills += 1
        backfilling.begin_backfill(freshness, above, Backfill(world.backfills, world.now))
    return {}


@carry_out.register
def _(action: StatusStep, world: World) -> Touched:
    items = None if action.status is None else [(asset().uri, key) for asset, key in action.status]
    world.answers.append({"step": world.step, "status": status_answer(world, items)})
    return {}


@carry_out.register
def _(action: FreshnessStep, world: World) -> Touched:
    uris = None if action.freshness is None else [asset().uri for asset in action.freshness]
    world.answers.append({"step": world.step, "freshness": freshness_answer(world, uris)})
    return {}


@carry_out.register
def _(action: PlanStep, world: World) -> Touched:  # noqa: ARG001
    world.answers.append({"step": world.step, "plan": plan_answer(world)})
    return {}


def _node(world: World, name: str) -> FlowNode:
    node = world.state.freshness.graph.find(world.consumer(name).id)
    assert node is not None, "a consumer with outputs is in the data graph"
    return node


def _runs(world: World, name: str, key: str | None) -> list[Run]:
    """Return the runs of a consumer that go on: those of one key, or all."""
    runs = world.state.freshness.runs.of(world.consumer(name).id)
    return [run for run in runs if key is None or run.target.key == key]
