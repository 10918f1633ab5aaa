"""Simulating with a clock that runs between the steps: every instant at which time acts, in order. Contract 9.6."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from assetflow.core.freshness import backfilling
from assetflow.core.freshness.deciding import next_look
from assetflow.core.freshness.demands import judge_states
from assetflow.core.freshness.recording import retry
from assetflow.core.freshness.records import Backfill, Run, Target
from assetflow.core.partitions import check_key
from assetflow.core.rules import clock, keeping, registry
from assetflow.core.rules.fold import Touched, pass_over, record
from assetflow.core.simulate.actions import attempt, carry_out, deploy, in_order
from assetflow.core.simulate.answer import (
    Answer,
    answer_of,
    freshness_answer,
    plan_answer,
    status_answer,
    target_to_answer,
)
from assetflow.core.simulate.reading import is_object, refuse, short
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
    Scenario,
    StartStep,
    StatusStep,
    Step,
    StopStep,
    TickStep,
    TriggerStep,
    read_scenario,
    scenario_of_flows,
)
from assetflow.core.simulate.world import (
    TimeRun,
    World,
    begin_later,
    end,
    end_next,
    follow_decisions,
    follow_times,
    lasts,
    node_of,
    run_again,
    trigger,
)
from assetflow.core.values.assets import Asset, check_data_version
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.wire.declarations import FlowDeclaration
from assetflow.errors import AssetflowWarning


def pass_after(world: World, touched: Touched) -> None:
    """Make the pass that follows a step or the end of a run."""
    keep_up_to_date(world, pass_over(world.state, touched, world.now), recorded=False)


def run_times(world: World) -> bool:
    """Run the times of timetables that have come; return True if there are any."""
    assert world.step is not None
    now, step = world.now, world.step
    runs = [TimeRun(step, each.id, tick) for each in world.consumers for tick in world.timers.due(each, now)]
    world.time_runs += runs
    follow_times(world, runs)
    return bool(runs)


def follow(world: World, decisions: Iterable[Decision]) -> None:
    """Note decisions, and let their runs begin."""
    made = list(decisions)
    world.note_decisions(made)
    follow_decisions(world, made)


def keep_up_to_date(world: World, decided: Sequence[Decision] = (), *, recorded: bool) -> None:
    """Make the pass over what Eager and Lazy consumers and backfills ask for.

    Parameters:
        decided: the decisions of the pass before it, for event schedules.
    """
    follow(world, keeping.keep_up_to_date(world.state, decided, world.now, recorded=recorded))


def end_runs(world: World, until: datetime) -> bool:
    """End the runs that end by themselves up to a moment, each with its pass; return True if there were any."""
    ended = False
    while (touched := end_next(world, until)) is not None:
        pass_after(world, touched)
        ended = True
    return ended


def tell_states(world: World) -> None:
    """Judge the states of policies, and note those that are told."""
    judge_states(world.state.freshness, world.now, since=world.now)
    told = len(world.state.freshness.changes.policy_changes)
    world.step_of_told += [world.step] * (told - len(world.step_of_told))


_INSTANT = timedelta(microseconds=1)


def run_timed(world: World, scenario: Scenario) -> None:
    """Carry out the steps of a scenario, and let time act between them."""
    world.state.clocks.begun = world.now
    missed: list[tuple[int, Step]] = []
    stopped = False
    for number, step in enumerate(scenario.steps):
        if isinstance(step.action, StartStep):
            for earlier, its_step in missed:
                _advance(world, its_step.time, number)
                _carry_out(world, its_step, earlier, number)
            missed.clear()
            stopped = False
        elif stopped:
            missed.append((number, step))
            continue
        _advance(world, step.time, number)
        _carry_out(world, step, number, number)
        stopped = isinstance(step.action, StopStep)
    if scenario.steps and not stopped:
        _finish(world)


def _carry_out(world: World, step: Step, number: int, pass_number: int) -> None:
    """Carry out a step, and the pass that follows; while the evaluator is down, the pass comes with its start."""
    world.step, world.lasting.ended = number, None
    touched = attempt(world, step.action)
    world.step = pass_number
    pass_after(world, touched)
    end_runs(world, world.now)


def _advance(world: World, until: datetime, step: int) -> None:
    """Let time pass: end the present instant, go through those in between, and begin the last.

    Parameters:
        step: the number of the next step; what happens in between belongs to it.
    """
    if world.step is None:
        world.step = step
        pass_after(world, {})
        end_runs(world, world.now)
    if until == world.now:
        return
    _finish(world)
    world.step = step
    while (moment := _next(world)) is not None and moment < until:
        _begin(world, moment)
        _finish(world)
    if not world.lasting.specs:
        # Their times need no instants of their own: nothing follows from the runs.
        world.now = until - _INSTANT
        run_times(world)
    _begin(world, until)


def _next(world: World) -> datetime | None:
    """Return the next instant at which something happens by itself."""
    found = [clock.due_at(world.state, each, _keys(world, each)) for each in world.consumers if each.is_timed]
    found += [next_look(world.state.freshness), *world.lasting.ends.values()]
    if world.lasting.specs:
        found.append(world.timers.next_time())
    return min((moment for moment in found if moment is not None), default=None)


def _keys(world: World, consumer: Consumer) -> Collection[str | None]:
    """Return the keys of a consumer's queues: those with events, and those that have become empty but are still due."""
    filled = set(world.state.queues.target_keys(consumer.id))
    known = world.queue_keys.setdefault(consumer.id, set())
    known |= filled
    return filled | {key for key in known - filled if world.state.clocks.queue(consumer.id, key).due is not None}


def _begin(world: World, now: datetime) -> None:
    """Do part (1) of an instant, and end the runs that end at it by themselves."""
    world.now = world.state.clocks.begun = now
    world.lasting.ended = None
    for consumer in world.consumers:
        if consumer.is_timed:
            clock.begin(world.state, consumer, now, _keys(world, consumer))
    end_runs(world, now)


def _finish(world: World) -> None:
    """Do parts (3) to (5) of an instant, until no run of it ends at it any more."""
    while True:
        run_times(world)
        for consumer in world.consumers:
            if consumer.is_timed:
                follow(world, clock.finish(world.state, consumer, world.now, _keys(world, consumer)))
        keep_up_to_date(world, recorded=True)
        if not end_runs(world, world.now):
            break
    tell_states(world)
    missed = len(world.state.changes.missed)
    world.step_of_missed += [world.step] * (missed - len(world.step_of_missed))


def simulate(
    scenario: Mapping[str, object] | list[Any] | tuple[object, ...], steps: Sequence[object] = (), *, where: str = ""
) -> Answer:
    """Return what schedules would do with updates, without a server, a database or a clock.

    >>> from assetflow import Asset, flow, simulate
    >>> orders, customers = Asset("s3://shop/orders"), Asset("s3://shop/customers")
    >>> @flow(schedule=orders & customers)
    ... def report(): ...
    >>> answer = simulate([report], [orders, customers])
    >>> [(run["step"], run["consumer"]) for run in answer["runs"]]
    [(1, 'report')]

    It takes flows with the steps that they shall see, or a scenario as JSON data, in the format of the examples in
    `docs/contract.md`.

    Parameters:
        scenario: flows, whose schedules count and whose code does not run; or a scenario: `name`, `consumers`, `steps`.
        steps: for flows, what happens: an asset stands for its update, a mapping for a step as in a scenario. The steps
            are a minute apart, unless one says `at` or `advance`.
        where: the file that a scenario came from; errors name it.

    Returns:
        Plain JSON data: `name`, `runs`, `queued` and `pending_partitions`; `receipts`, `answers` and `errors` if there
        are any.

    Raises:
        InvalidScenario: the data does not have the format, an object is not a flow with a schedule, or flows keep each
            other running without pause. The error names the place, or the flows.
    """
    if isinstance(scenario, Mapping):
        if steps:
            refuse("a scenario has steps of its own", "steps", "Give steps beside flows only")
        return run_scenario(read_scenario(scenario, where))
    happens = [{"event": each} if isinstance(each, Asset) else each for each in steps]
    return run_scenario(scenario_of_flows("flows", _schedules(scenario), happens, "steps"))


def _schedules(flows: Iterable[object]) -> dict[str, ConsumerOptions]:
    found: dict[str, ConsumerOptions] = {}
    for each in flows:
        declaration = getattr(each, "declaration", None)
        if not isinstance(declaration, FlowDeclaration) or declaration.options.schedule == Schedule():
            refuse(f"{short(each)} is not a flow with a schedule", "flows", "Give flows made with @flow(schedule=...)")
        found[str(getattr(each, "name", ""))] = declaration.options
    return found


def run_scenario(scenario: Scenario) -> Answer:
    """Return the answer to a scenario."""
    with warnings.catch_warnings():
        # The author of a scenario does not need the warning that a password was cut off.
        warnings.simplefilter("ignore", AssetflowWarning)
        world = World(scenario.start)
        for name, spec in in_order(scenario.consumers):
            deploy(world, name, spec)
        if scenario.passes in ("live", "timed"):
            run_timed(world, scenario)
        else:
            _run(world, scenario)
        return answer_of(world, scenario.name, receipts=scenario.receipts, timed=scenario.passes == "timed")


def _run(world: World, scenario: Scenario) -> None:
    for number, step in enumerate(scenario.steps):
        world.step = number
        while end_next(world, step.time) is not None:
            pass
        world.now = step.time
        touched = attempt(world, step.action)
        if isinstance(step.action, TickStep):
            # The pass of a tick: everything that is due, and the states of policies last.
            run_times(world)
            keep_up_to_date(world, pass_over(world.state, touched, world.now), recorded=True)
            tell_states(world)
        while end_next(world, step.time) is not None:
            pass


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
    key = action.partition_key if node_of(world, consumer.id).is_partitioned else None
    run = trigger(world, Target(consumer.id, key))
    return end(world, run, action)


@carry_out.register
def _(action: RetryStep, world: World) -> Touched:
    retry(world.state.freshness, node_of(world, world.consumer(action.retry).id), action.partition_key, world.now)
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


def _runs(world: World, name: str, key: str | None) -> list[Run]:
    """Return the runs of a consumer that go on: those of one key, or all."""
    runs = world.state.freshness.runs.of(world.consumer(name).id)
    return [run for run in runs if key is None or run.target.key == key]
