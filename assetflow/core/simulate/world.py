"""The world of a simulation: a state in memory, consumers, timers, runs that last, and notes for the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID, uuid5

from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import inputs_now
from assetflow.core.freshness.recording import Made, begin_run, confirm, end_run, retry_run
from assetflow.core.freshness.records import Item, Run, RunKind, Target
from assetflow.core.rules.fold import Touched, record
from assetflow.core.rules.registry import touch_ended
from assetflow.core.rules.state import State
from assetflow.core.rules.timers import Timer, follow
from assetflow.core.simulate.consumers import ConsumerForm, ConsumerSpec
from assetflow.core.simulate.steps import Ending, RunState
from assetflow.core.time.timetables import Tick
from assetflow.core.values.assets import Asset, check_data_version
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceFlowRun
from assetflow.errors import AssetflowError, InvalidScenario, UnknownConsumer

_NAMESPACE = UUID("b1f6a4a7-4b0d-5d0c-9d0b-5f1f6d8f2c35")


@dataclass(frozen=True)
class TimeRun:
    """A run that a consumer's timetable starts."""

    step: int
    consumer: int
    tick: Tick


@dataclass(frozen=True)
class Failure:
    """A refused step, or one refused consumer of a step."""

    step: int | None
    consumer: str | None
    error: AssetflowError


class SimulatedTimers(dict[int, Timer]):
    """The timers of all consumers with a timetable. Contract 6.1."""

    def follow(self, consumer: Consumer, now: datetime) -> None:
        """Update the timer of a consumer that was deployed, changed, paused or resumed."""
        timer = follow(self.pop(consumer.id, None), consumer, now)
        if timer is not None:
            self[consumer.id] = timer

    def due(self, consumer: Consumer, now: datetime) -> list[Tick]:
        """Return the times since the last call, up to `now`; none while the consumer is paused."""
        timer = self.get(consumer.id)
        if timer is None or timer.is_idle:
            return []
        self[consumer.id] = timer.moved(now)
        return list(timer.due(now))

    def next_time(self) -> datetime | None:
        """Return the next time of any consumer that is not paused."""
        ticks = (timer.timetable.next_after(timer.after) for timer in self.values() if not timer.is_idle)
        return min((tick.time for tick in ticks if tick is not None), default=None)


@dataclass
class Lasting:
    """The runs that last of a simulation.

    Attributes:
        specs: how the runs of each consumer go.
        begun: how many runs of each consumer have begun.
        ends: when runs end that end by themselves, in the order in which they began.
        endings: how they end.
        ended: the run that ended last at this instant, if it took almost no time; `None` if there is none.
        followed: the runs that began after the end of such a run, each with that run and how many followed one another.
        last: the run of each target that ended last.
    """

    specs: dict[int, ConsumerForm] = field(default_factory=dict[int, ConsumerForm])
    begun: dict[int, int] = field(default_factory=dict[int, int])
    ends: dict[UUID, datetime] = field(default_factory=dict[UUID, datetime])
    endings: dict[UUID, Ending] = field(default_factory=dict[UUID, Ending])
    ended: Run | None = None
    followed: dict[UUID, tuple[Run, int]] = field(default_factory=dict[UUID, "tuple[Run, int]"])
    last: dict[Target, Run] = field(default_factory=dict[Target, Run])


@dataclass
class World:
    """The state of a running simulation; `step` and `now` belong to the current step.

    Attributes:
        queue_keys: the keys of the queues that each timed consumer had something in, at some time.
    """

    now: datetime
    step: int | None = None
    state: State = field(default_factory=State)
    timers: SimulatedTimers = field(default_factory=SimulatedTimers)
    names: dict[int, str] = field(default_factory=dict[int, str])
    step_of_event: list[int | None] = field(default_factory=list["int | None"])
    step_of_decision: dict[UUID, int] = field(default_factory=dict[UUID, int])
    step_of_missed: list[int | None] = field(default_factory=list["int | None"])
    time_runs: list[TimeRun] = field(default_factory=list[TimeRun])
    step_of_told: list[int | None] = field(default_factory=list["int | None"])
    queue_keys: dict[int, set[str | None]] = field(default_factory=dict[int, "set[str | None]"])
    backfills: int = 0
    lasting: Lasting = field(default_factory=Lasting)
    refused: dict[str, ConsumerSpec] = field(default_factory=dict[str, ConsumerSpec])
    answers: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    failures: list[Failure] = field(default_factory=list[Failure])

    def consumer(self, name: str) -> Consumer:
        """Return the consumer with this name.

        Raises:
            UnknownConsumer: no consumer with this name is deployed.
        """
        found = self.find(name)
        if found is None:
            raise UnknownConsumer(f"there is no consumer {name!r}", rule="format", fix="Deploy it first")
        return found

    def find(self, name: str) -> Consumer | None:
        """Return the consumer with this name, or `None` if none is deployed."""
        return next((each for each in self.consumers if each.name == name), None)

    @property
    def consumers(self) -> Sequence[Consumer]:
        """The deployed consumers, in the order in which they were deployed."""
        return self.state.consumers.live()

    def new_consumer_id(self, name: str) -> int:
        """Return the id for a new consumer. One that is deployed again after its removal gets another. Contract 3.6."""
        number = len(self.names) + 1
        self.names[number] = name
        return number

    def new_id(self, *parts: object) -> UUID:
        """Return an id that is the same each time that the scenario is simulated."""
        return uuid5(_NAMESPACE, "|".join(map(str, parts)))

    def note_events(self, events: list[AssetEvent]) -> None:
        self.step_of_event += [self.step] * len(events)

    def note_decisions(self, decisions: Iterable[Decision]) -> None:
        assert self.step is not None
        self.step_of_decision |= {decision.id: self.step for decision in decisions}

    def fail(self, error: AssetflowError, consumer: str | None = None) -> None:
        self.failures.append(Failure(self.step, consumer, error))


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
    return begin_run(world.state.freshness, node_of(world, target.consumer), target.key, number, kind, world.now)


def node_of(world: World, number: int) -> FlowNode:
    """Return what the data graph has of a consumer with outputs."""
    node = world.state.freshness.graph.find(number)
    assert node is not None, "a consumer with outputs is in the data graph"
    return node


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


def run_again(world: World, run: Run) -> None:
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
