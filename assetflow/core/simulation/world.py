"""The world of a simulation: a book in memory, the consumers by name, and what is noted down for the answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid5

from assetflow.core.consumers import Consumer, Decision
from assetflow.core.events import AssetEvent
from assetflow.core.memory_book import MemoryBook
from assetflow.core.simulation.timers import Timers
from assetflow.core.timetables import Tick
from assetflow.errors import AssetflowError, UnknownConsumer

_NAMESPACE = UUID("b1f6a4a7-4b0d-5d0c-9d0b-5f1f6d8f2c35")


@dataclass(frozen=True)
class TimeRun:
    """A run of a consumer's time table."""

    step: int
    consumer: int
    tick: Tick


@dataclass(frozen=True)
class Failure:
    """A step, or the consumer of one, that had no effect."""

    step: int | None
    consumer: str | None
    error: AssetflowError


@dataclass
class World:
    """All state of a simulation. `step` and `now` are those of the step that is carried out."""

    now: datetime
    step: int | None = None
    book: MemoryBook = field(default_factory=MemoryBook)
    timers: Timers = field(default_factory=Timers)
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    names: dict[int, str] = field(default_factory=dict[int, str])
    step_of_event: list[int | None] = field(default_factory=list["int | None"])
    step_of_decision: dict[UUID, int] = field(default_factory=dict[UUID, int])
    time_runs: list[TimeRun] = field(default_factory=list[TimeRun])
    answers: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    failures: list[Failure] = field(default_factory=list[Failure])

    def consumer(self, name: str) -> Consumer:
        """The consumer of this name.

        Raises:
            UnknownConsumer: there is none, or no more.
        """
        if name not in self.numbers:
            raise UnknownConsumer(f"no consumer {name!r}", rule="format", fix="Deploy it first")
        return self.book.consumers[self.numbers[name]]

    @property
    def consumers(self) -> list[Consumer]:
        """The consumers that are deployed, in the order in which they were."""
        return [self.book.consumers[number] for number in sorted(self.numbers.values())]

    def new_consumer_id(self, name: str) -> int:
        """The number of a consumer that is new; a name that comes again gets another one (3.6)."""
        number = len(self.names) + 1
        self.names[number] = name
        self.numbers[name] = number
        return number

    def new_id(self, *parts: object) -> UUID:
        """An id that is the same whenever the scenario is simulated."""
        return uuid5(_NAMESPACE, "|".join(map(str, parts)))

    def note_events(self, events: list[AssetEvent]) -> None:
        self.step_of_event += [self.step] * len(events)

    def note_decisions(self, decisions: list[Decision]) -> None:
        assert self.step is not None
        self.step_of_decision |= {decision.id: self.step for decision in decisions}

    def fail(self, error: AssetflowError, consumer: str | None = None) -> None:
        self.failures.append(Failure(self.step, consumer, error))
