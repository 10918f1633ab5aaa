"""What a watcher found, as the ledger records it: in one transaction with the cursor. Contract 10.2 to 10.5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import Recording
from assetflow.core.values.triggers import Trigger


@dataclass(frozen=True)
class Watched:
    """A watcher, with the assets that it updates.

    Attributes:
        begun: False if the watcher never looked, so that what is there is known (contract 10.4).
    """

    name: str
    trigger: Trigger
    assets: tuple[Asset, ...]
    begun: bool = False


@dataclass(frozen=True)
class RefusedChange:
    """Something from outside that cannot be an update, with the reason. Contract 2.6.

    Attributes:
        id: the same for each delivery of the message.
        payload: what was sent.
        watchers: the names of the watchers that refuse it.
        rule: the number of the rule that it breaks.
    """

    id: UUID
    payload: object
    reason: str
    watchers: tuple[str, ...]
    rule: str | None = None


@dataclass(frozen=True)
class Note:
    """A message without an id that is recorded and not acknowledged. Contract 10.3.

    Attributes:
        token: what stands for its id.
        digest: the fingerprint of its content.
    """

    token: UUID
    digest: str


@dataclass(frozen=True)
class CursorStep:
    """How far a watcher has come: the items that it knows from now on, and those that it forgets."""

    watcher: str
    known: Mapping[str, object] = field(default_factory=dict[str, object])
    gone: Sequence[str] = ()


@dataclass
class WatcherIntake:
    """The recordings that are written in one transaction.

    Attributes:
        source: where it came from, without user and password.
        recordings: one for each message, or for each file or look (contract 10.2).
        refused: what cannot be an update.
        makers: the watchers that each event came by, by the id of the event.
        filtered: for each watcher, how many messages its filter did not want (contract 10.5).
        poison: the places of the messages that became no update because all that wanted them refused them.
        notes: the messages without ids among them.
        forget: the tokens of notes whose messages cannot come again.
        cursor: the step of the cursor, for what has one.
    """

    source: str
    recordings: list[Recording] = field(default_factory=list[Recording])
    refused: list[RefusedChange] = field(default_factory=list[RefusedChange])
    makers: dict[UUID, tuple[str, ...]] = field(default_factory=dict[UUID, "tuple[str, ...]"])
    filtered: dict[str, int] = field(default_factory=dict[str, int])
    poison: list[int] = field(default_factory=list[int])
    notes: list[Note] = field(default_factory=list[Note])
    forget: list[UUID] = field(default_factory=list[UUID])
    cursor: CursorStep | None = None
