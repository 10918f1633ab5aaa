"""The world of a simulation: a state in memory, the consumers by name, the timers, and notes for the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid5

from assetflow.core.freshness.records import Run, Target
from assetflow.core.rules.state import State
from assetflow.core.rules.timers import Timer, follow
from assetflow.core.simulate.consumers import ConsumerForm, ConsumerSpec
from assetflow.core.simulate.steps import Ending
from assetflow.core.time.timetables import Tick
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent
from assetflow.errors import AssetflowError, UnknownConsumer

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


class SimulatedTimers:
    """The timers of all consumers with a timetable. Contract 6.1."""

    def __init__(self) -> None:
        self._timers: dict[int, Timer] = {}

    def follow(self, consumer: Consumer, now: datetime) -> None:
        """Update the timer of a consumer that was deployed, changed, paused or resumed."""
        timer = follow(self._timers.pop(consumer.id, None), consumer, now)
        if timer is not None:
            self._timers[consumer.id] = timer

    def drop(self, consumer: Consumer) -> None:
        """Forget the timer of a consumer that was removed."""
        self._timers.pop(consumer.id, None)

    def due(self, consumer: Consumer, now: datetime) -> list[Tick]:
        """Return the times since the last call, up to `now`; none while the consumer is paused."""
        timer = self._timers.get(consumer.id)
        if timer is None or timer.is_idle:
            return []
        self._timers[consumer.id] = timer.moved(now)
        return list(timer.due(now))

    def next_time(self) -> datetime | None:
        """Return the next time of any consumer that is not paused."""
        ticks = (timer.timetable.next_after(timer.after) for timer in self._timers.values() if not timer.is_idle)
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
    numbers: dict[str, int] = field(default_factory=dict[str, int])
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
        if name not in self.numbers:
            raise UnknownConsumer(f"there is no consumer {name!r}", rule="format", fix="Deploy it first")
        return self._find(self.numbers[name])

    @property
    def consumers(self) -> list[Consumer]:
        """The deployed consumers, in the order in which they were deployed."""
        return [self._find(number) for number in sorted(self.numbers.values())]

    def _find(self, number: int) -> Consumer:
        found = self.state.consumers.find(number)
        assert found is not None, "a consumer that has a name is deployed"
        return found

    def new_consumer_id(self, name: str) -> int:
        """Return the id for a new consumer. One that is deployed again after its removal gets another. Contract 3.6."""
        number = len(self.names) + 1
        self.names[number] = name
        self.numbers[name] = number
        return number

    def new_id(self, *parts: object) -> UUID:
        """Return an id that is the same each time that the scenario is simulated."""
        return uuid5(_NAMESPACE, "|".join(map(str, parts)))

    def run_times(self) -> list[TimeRun]:
        """Run the times of timetables that have come since the last call."""
        assert self.step is not None
        found = [
            TimeRun(self.step, consumer.id, tick)
            for consumer in self.consumers
            for tick in self.timers.due(consumer, self.now)
        ]
        self.time_runs += found
        return found

    def note_told(self) -> None:
        """Note in which step the states were told that changed since the last call."""
        told = len(self.state.freshness.changes.policy_changes)
        self.step_of_told += [self.step] * (told - len(self.step_of_told))

    def note_events(self, events: list[AssetEvent]) -> None:
        self.step_of_event += [self.step] * len(events)

    def note_decisions(self, decisions: Iterable[Decision]) -> None:
        assert self.step is not None
        self.step_of_decision |= {decision.id: self.step for decision in decisions}

    def note_missed(self) -> None:
        """Note in which step the clock has looked at the deadlines that were missed since the last call."""
        missed = len(self.state.changes.missed)
        self.step_of_missed += [self.step] * (missed - len(self.step_of_missed))

    def fail(self, error: AssetflowError, consumer: str | None = None) -> None:
        self.failures.append(Failure(self.step, consumer, error))
