"""A queue as a source: its messages become updates. Contract 10.2, 10.3."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import cast
from uuid import UUID, uuid4

from assetflow.core.values.triggers import MessageQueueTrigger
from assetflow.core.watchers.intake import Note, Watched, WatcherIntake
from assetflow.core.watchers.messages import Message, Notes, intake_of
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.watching.ports import BrokerQueue


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
        messages = await self._next()
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

    async def _next(self) -> Sequence[Message]:
        # While messages are noted, those that may be the noted ones are taken alone, before anything new.
        return await self._queue.left() if self._notes.left else await self._queue.take(self._within)

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


@asynccontextmanager
async def message_source(
    queue: BrokerQueue, watched: Sequence[Watched], ledger: LedgerThread, now: Callable[[], datetime]
) -> AsyncGenerator[MessageSource]:
    """Return an open queue as a source."""
    notes = await ledger.call(ledger.reader.watchers.notes, queue.source)
    yield MessageSource(queue, watched, notes, now)
