"""Runs that last: they begin with a decision, a time or a step, read their inputs then, and end later."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID

from assetflow.core.freshness.reads import inputs_now
from assetflow.core.freshness.recording import Made, begin_run, confirm, end_run, retry_run
from assetflow.core.freshness.records import Item, Run, RunKind, Target
from assetflow.core.rules.fold import Touched, record
from assetflow.core.rules.registry import touch_ended
from assetflow.core.simulate.steps import Ending, RunState
from assetflow.core.simulate.world import TimeRun, World
from assetflow.core.values.assets import Asset, check_data_version
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceFlowRun
from assetflow.errors import InvalidScenario

LONGEST_CHAIN = 1_000

_ALMOST_NO_TIME = timedelta(seconds=1)


def lasts(world: World, number: int) -> bool:
    """Return True if the runs of a consumer last."""
    return number in world.lasting.specs


def follow_decisions(world: World, decisions: Iterable[Decision]) -> None:
    """Let the runs of decisions begin."""
    for decision in decisions:
        if lasts(world, decision.consumer):
            target = Target(decision.consumer, decision.target_key)
            found = [run for run in world.state.freshness.runs.of_target(target) if run.id == decision.id]
            _follow(world, found[0] if found else begin(world, target, decision.id, "asset"))


def follow_times(world: World, runs: Iterable[TimeRun]) -> None:
    """Let the runs of the clock begin."""
    for run in runs:
        if lasts(world, run.consumer):
            number = world.new_id("time run", run.consumer, run.tick.time)
            _follow(world, begin(world, Target(run.consumer, run.tick.partition_key), number, "time"))


def trigger(world: World, target: Target) -> Run:
    """Let a manual run begin."""
    number = world.new_id("manual run", target.consumer, world.lasting.begun.get(target.consumer, 0))
    run = begin(world, target, number, "manual")
    _follow(world, run)
    return run


def begin(world: World, target: Target, number: UUID, kind: RunKind) -> Run:
    """Remember a run that begins now."""
    node = world.state.freshness.graph.find(target.consumer)
    assert node is not None, "a consumer with outputs is in the data graph"
    return begin_run(world.state.freshness, node, target.key, number, kind, world.now)


def _follow(world: World, run: Run) -> None:
    """Work out when and how a run ends that has begun."""
    _check_chain(world, run)
    lasting, consumer = world.lasting, run.target.consumer
    spec, count = lasting.specs[consumer], lasting.begun.get(consumer, 0)
    lasting.begun[consumer] = count + 1
    versions = {uri: given[count] for uri, given in spec.gives.items() if count < len(given)}
    state = spec.outcomes[count] if spec.takes is not None and count < len(spec.outcomes) else "completed"
    lasting.endings[run.id] = Ending(state=cast("RunState", state), versions=versions)
    if spec.takes is not None:
        lasting.ends[run.id] = world.now + timedelta(seconds=spec.takes[min(count, len(spec.takes) - 1)])


def _check_chain(world: World, run: Run) -> None:
    """Note after the end of which run another one begins.

    Raises:
        InvalidScenario: runs that take almost no time follow each other without end.
    """
    followed, ended = world.lasting.followed, world.lasting.ended
    if ended is None:
        return
    followed[run.id] = ended, followed[ended.id][1] + 1 if ended.id in followed else 1
    if followed[run.id][1] < LONGEST_CHAIN:
        return
    way = [run, ended]
    while way[-1].target.consumer != run.target.consumer:
        way.append(followed[way[-1].id][0])
    names = " → ".join(world.names[each.target.consumer] for each in reversed(way))
    raise InvalidScenario(
        f"these flows keep each other running: {names}",
        where=f"step {world.step}",
        fix="Let their runs take time, with `takes`, or take one of their inputs away",
    )


def next_end(world: World) -> datetime | None:
    """Return when the next run ends by itself."""
    return min(world.lasting.ends.values(), default=None)


def end_next(world: World, until: datetime) -> Touched | None:
    """End the next run that ends by itself up to a moment; return the consumers to check, `None` if there is none."""
    due = [(at, place, number) for place, (number, at) in enumerate(world.lasting.ends.items()) if at <= until]
    if not due:
        return None
    at, _, number = min(due)
    world.now = max(world.now, at)
    run = _open_run(world, number)
    if run is None:
        del world.lasting.ends[number]
        return {}
    return end(world, run, None)


def end(world: World, run: Run, ending: Ending | None) -> Touched:
    """End a run: record what it made, from the versions that it read; return the consumers to check.

    Parameters:
        ending: how a step ends it; `None` if it ends by itself.
    """
    if ending is not None and ending.held_back:
        _check_held_back(world, run, ending)
        ending = replace(ending, state="failed")
    own = world.lasting.endings.pop(run.id, Ending())
    world.lasting.ends.pop(run.id, None)
    ending = own if ending is None else replace(ending, versions={**own.versions, **ending.versions})
    world.lasting.ended = run if world.now - run.asked < _ALMOST_NO_TIME else None
    touched = _record_outputs(world, run, ending)
    end_run(world.state.freshness, run, ending.state, world.now)
    world.lasting.last[run.target] = run
    consumer, key = run.target.consumer, run.target.key
    if run.kind == "asset":
        world.state.decisions.end_run(consumer, key)
        touch_ended(world.state, consumer, [key], touched)
    return touched


def _check_held_back(world: World, run: Run, ending: Ending) -> None:
    """Raise `InvalidScenario` if a run holds back what it does not make, or what it has updated."""
    wrong = [uri for uri in ending.held_back if uri not in run.pins or uri in (ending.made or ())]
    if wrong or ending.state != "completed":
        what = f"holds back {wrong[0]}" if wrong else f'holds data back, and has "state": "{ending.state}"'
        raise InvalidScenario(
            f"a run of {world.names[run.target.consumer]} {what}",
            where=f"step {world.step}",
            fix="Name outputs of the consumer that the run has not updated; it fails in any case",
        )


def retry(world: World, run: Run) -> None:
    """Let a run go on again that has ended, until a step ends it."""
    freshness = world.state.freshness
    node = freshness.graph.find(run.target.consumer)
    if node is not None:
        retry_run(freshness, node, run, world.now, freshness.place())
        if run.kind == "asset":
            world.state.decisions.retry_run(run.target.consumer, run.target.key)


def begin_later(world: World, run: Run) -> None:
    """Let a run begin now that was asked for before: what it reads is read now, and it ends when it would have."""
    freshness = world.state.freshness
    node = freshness.graph.find(run.target.consumer)
    if node is not None:
        freshness.runs.began(run, world.now, inputs_now(freshness, node))


def _open_run(world: World, number: UUID) -> Run | None:
    found = (run for consumer in world.lasting.specs for run in world.state.freshness.runs.of(consumer))
    return next((run for run in found if run.id == number), None)


def _record_outputs(world: World, run: Run, ending: Ending) -> Touched:
    for uri in run.pins:
        if uri in ending.versions:
            check_data_version(ending.versions[uri])
    made = list(run.pins) if ending.state == "completed" else []
    if ending.made is not None:
        made = [uri for uri in run.pins if uri in ending.made]
    events = [_event(world, run, uri, ending) for uri in made if uri not in ending.skips]
    recorded = record(world.state, Recording(world.new_id("run", run.id, run.asked), tuple(events)), world.now)
    world.note_events(recorded.events)
    for uri in run.pins if ending.state == "completed" else ():
        if uri in ending.skips:
            how = Made(run.target.consumer, run.pins[uri], run.tried.code_versions.get(uri), run.began)
            number = world.new_id("confirmation", run.id, run.asked, uri)
            confirm(world.state.freshness, Item(uri, run.target.key or ending.partition_key), number, how, world.now)
    return recorded.touched


def _event(world: World, run: Run, uri: str, ending: Ending) -> AssetEvent:
    consumer = world.state.consumers.find(run.target.consumer)
    deployment = None if consumer is None else consumer.deployment_id
    return AssetEvent(
        id=world.new_id("output", run.id, run.asked, uri),
        asset=Asset(uri),
        occurred=world.now,
        origin=Origin("task", flow_run=SourceFlowRun(run.id, deployment_id=deployment)),
        partition_key=run.target.key or ending.partition_key,
        code_version=run.tried.code_versions.get(uri),
        data_version=cast("str | None", ending.versions.get(uri)),
        inputs=run.pins[uri],
        started=run.began,
    )
