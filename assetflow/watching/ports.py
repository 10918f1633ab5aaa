"""What a watcher's loop needs of the outside: a queue, or files, and how they are opened."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from assetflow.core.values.other_triggers import WebhookTrigger
from assetflow.core.values.triggers import MessageQueueTrigger
from assetflow.core.watchers.intake import Watched, WatcherIntake
from assetflow.core.watchers.messages import Message
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger.records import WatcherRecord


class BrokerQueue(Protocol):
    """An open queue of a broker. Whatever its methods raise, the connection is closed and opened anew.

    Attributes:
        source: the server and the queue, without user and password; ids follow from it (contract 10.2).
        label: the queue as people call it: "RabbitMQ orders".
    """

    source: str
    label: str

    async def take(self, seconds: float = 0.0) -> Sequence[Message]:
        """Wait for messages, and return all that the broker has delivered, at least one.

        Those of the last call have been acknowledged.

        Parameters:
            seconds: how long to go on after the first message, unless the batch is full before.
        """
        ...

    async def left(self) -> Sequence[Message]:
        """Return messages that were delivered before and not acknowledged; an empty list after the last. Contract 10.3.

        Those of the last call have been acknowledged.
        """
        ...

    async def acknowledge(self, refused: Collection[int]) -> None:
        """Tell the broker that the messages of the last `take` are recorded, and return when it has heard.

        Parameters:
            refused: the places of messages to refuse instead, if the broker offers that.
        """
        ...

    async def depth(self) -> int:
        """Return how many messages wait."""
        ...


OpenQueue = Callable[[MessageQueueTrigger, str], AbstractAsyncContextManager[BrokerQueue]]


@dataclass(frozen=True)
class WatchPlan:
    """The watchers of one place, which share a task.

    Attributes:
        key: the same for the same place.
    """

    key: str
    watched: tuple[Watched, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.watched)


class WatchedSource(Protocol):
    """A source that a watcher's loop reads."""

    async def step(self) -> WatcherIntake:
        """Wait for something new, and return what is to be recorded."""
        ...

    async def recorded(self) -> Sequence[UUID]:
        """Go on after the last intake: it is in the ledger. Return the notes that are not needed any more."""
        ...

    async def lag(self) -> int | None:
        """Return how much waits; `None` if the source does not tell."""
        ...


OpenSource = Callable[[WatchPlan, LedgerThread], AbstractAsyncContextManager[WatchedSource]]


def plans_of(records: Iterable[WatcherRecord]) -> dict[str, WatchPlan]:
    """Return what has to be watched, by key. A queue is left alone while one of its watchers is paused."""
    found: dict[str, list[WatcherRecord]] = {}
    for each in records:
        if isinstance(each.trigger, WebhookTrigger):
            # The server takes them in.
            continue
        found.setdefault(_key(each), []).append(each)
    return {
        key: WatchPlan(key, tuple(Watched(each.name, each.trigger, each.assets) for each in together))
        for key, together in found.items()
        if not any(each.paused for each in together)
    }


def _key(record: WatcherRecord) -> str:
    if isinstance(record.trigger, MessageQueueTrigger):
        return f"{record.trigger.kind} {record.trigger.place}"
    # Each watcher of files has a cursor of its own.
    return f"{record.trigger.kind} {record.name}"
