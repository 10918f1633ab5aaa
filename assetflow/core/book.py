"""What the fold keeps its state in: a port with two adapters, the ledger's tables and a book in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from assetflow.core.conditions import Token
from assetflow.core.consumers import Consumer, Decision, Receipt
from assetflow.core.events import AssetEvent

# The queued events of one consumer (and target key) in short: URI to the different keys of its events.
Pending = Mapping[str, Collection[str | None]]


class Book(Protocol):
    """State of the fold: names, links, events, consumers, queues, receipts, decisions.

    A book is used by one thread at a time, and all that a fold writes belongs to one transaction.
    """

    # Names and links

    def owner_of(self, name: str) -> str | None:
        """The URI that a name belongs to."""
        ...

    def names_of(self, uri: str) -> Collection[str]: ...
    def declare(self, name: str, uri: str) -> None:
        """Let a free name belong to a URI."""
        ...

    def aliases_of(self, uri: str) -> Collection[str]: ...
    def tokens_of(self, uri: str) -> frozenset[Token]:
        """All tokens under which a schedule may want this URI now: itself, its names, the aliases linked to it."""
        ...

    def link(self, alias: str, uri: str) -> None:
        """Link a URI to an alias, for good."""
        ...

    # Events

    def new_events(self, recording: UUID, events: Sequence[AssetEvent]) -> Sequence[AssetEvent]:
        """Those that are not recorded yet.

        An event is recorded already if its id is, or if the same recording, delivered earlier by another attempt
        of its task, holds an event of the same asset and key (2.1).
        """
        ...

    def append(self, event: AssetEvent, recording: UUID, now: datetime) -> AssetEvent:
        """Write an event behind all others; the event with its sequence."""
        ...

    # Consumers

    def wanting(self, tokens: frozenset[Token]) -> Sequence[Consumer]:
        """The consumers whose schedule has one of these tokens, by id, each once."""
        ...

    def save(self, consumer: Consumer) -> None:
        """Write a consumer, new or changed."""
        ...

    def forget(self, consumer: Consumer) -> None:
        """Take a consumer out of the registry; its receipts and decisions stay."""
        ...

    # Queue

    def pending(self, consumer: int, target_key: str | None) -> Pending: ...
    def target_keys(self, consumer: int) -> Collection[str | None]:
        """The keys under which something is queued; `{None}` or nothing for a plain consumer."""
        ...

    def queued(self, consumer: int, target_key: str | None) -> Sequence[AssetEvent]:
        """The queued events, oldest first."""
        ...

    def receipts_of(self, consumer: int, event: int) -> Sequence[Receipt]: ...
    def write(self, event: AssetEvent, receipt: Receipt) -> None:
        """Write a receipt; the one before it for the same event, consumer and key is replaced."""
        ...

    def unqueue(self, event: AssetEvent, consumer: int, target_key: str | None) -> None:
        """Take away a queued receipt that another one takes the place of (5.6)."""
        ...

    # Decisions

    def is_busy(self, consumer: int, target_key: str | None) -> bool:
        """Whether a run that a decision of this consumer (and key) started has not ended (4.7)."""
        ...

    def decide(self, decision: Decision) -> None:
        """Write a decision; the receipts of its events become `consumed`."""
        ...


def all_tokens(uri: str, names: Iterable[str], aliases: Iterable[str]) -> frozenset[Token]:
    """The tokens of a URI that has these names and aliases."""
    return frozenset(
        (Token("uri", uri), *(Token("name", name) for name in names), *(Token("alias", alias) for alias in aliases))
    )


def all_queued(book: Book, consumer: int) -> Iterable[tuple[str | None, AssetEvent]]:
    """Every queued event of a consumer with its target key, keys in order, oldest first."""
    for key in sorted(book.target_keys(consumer), key=lambda key: key or ""):
        for event in book.queued(consumer, key):
            yield key, event
