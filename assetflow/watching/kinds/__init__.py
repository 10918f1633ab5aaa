"""The kinds of sources: brokers and file systems, each with a library of its own that an extra installs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import datetime
from typing import Protocol, cast
from uuid import UUID, uuid4

from assetflow.core.values.triggers import MessageQueueTrigger
from assetflow.core.watchers.intake import Message, Note, Notes, Watched, WatcherIntake, intake_of
from assetflow.errors import WatchingFailed


@contextmanager
def needing(package: str, extra: str, where: str) -> Generator[None]:
    """Turn a failure to import a package in the block into an error that names the extra which installs it.

    Raises:
        WatchingFailed: the package is missing.
    """
    try:
        yield
    except ImportError as error:
        raise WatchingFailed(
            f"{package} is not installed", where=where, fix=f'pip install "assetflow[{extra}]"'
        ) from error


class BrokerQueue(Protocol):
    """An open queue of a broker. Whatever its methods raise, the connection is closed and opened again.

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
            seconds: how long to collect messages after the first one, unless the batch is full before.
        """
        ...

    async def left(self) -> Sequence[Message]:
        """Return messages that were delivered before and not acknowledged; an empty list after the last. Contract 10.3.

        Those of the last call have been acknowledged. A broker whose messages all have ids has none of them.
        """
        return []

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


class MessageSource:
    """The messages of an open queue.

    Parameters:
        watched: the watchers of the queue.
        notes: the messages without ids that the ledger has noted.
    """

    def __init__(
        self, queue: BrokerQueue, watched: Sequence[Watched], notes: Sequence[Note], now: Callable[[], datetime]
    ) -> None:
        self._queue = queue
        self._watched = watched
        self._notes = Notes(notes)
        self._now = now
        # One that waits for no others is not held up by one that does.
        triggers = [cast(MessageQueueTrigger, each.trigger) for each in watched]
        self._within = min(0.0 if each.within is None else each.within.total_seconds() for each in triggers)
        self._refused: list[int] = []
        self._tokens: list[UUID] = []
        self._is_empty = False

    async def step(self) -> WatcherIntake:
        """Return what is to be recorded of the next messages."""
        # While messages are noted, those that may be the noted ones are taken alone, before anything new.
        messages = await (self._queue.left() if self._notes.left else self._queue.take(self._within))
        new_notes: list[Note] = []
        self._tokens = []
        numbered = [(each, each.id or self._token(each, new_notes)) for each in messages]
        intake = intake_of(numbered, self._watched, self._queue.source, self._queue.label, self._now())
        intake.notes += new_notes
        self._refused = intake.poison
        if not messages:
            # No message was left unacknowledged, so none can come again.
            intake.forget += self._notes.left
            self._notes = Notes()
        self._is_empty = not messages
        return intake

    def _token(self, message: Message, new_notes: list[Note]) -> str:
        """Return what stands for the id of a message without one: that of a noted message, else a new one."""
        token = self._notes.take(message)
        if token is None:
            token = uuid4()
            new_notes.append(Note(token, message.digest))
        self._tokens.append(token)
        return str(token)

    async def recorded(self) -> Sequence[UUID]:
        """Acknowledge the messages, and return their notes."""
        if not self._is_empty:
            await self._queue.acknowledge(self._refused)
        return self._tokens

    async def lag(self) -> int | None:
        """Return how many messages wait."""
        return await self._queue.depth()
