"""Changes of tables and queries as updates, with a cursor. Contract 10.2, 10.4, 10.6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid5

from assetflow.core.json_data import fit_text
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.posted_events import event_by_hand
from assetflow.core.visible import shown
from assetflow.core.watchers.intake import CursorStep, RefusedChange, Watched, WatcherIntake
from assetflow.errors import AssetflowError

# The one item of a cursor that is a single value.
CURSOR = "cursor"
_NAMESPACE = UUID("5b8c3a0e-2f35-5f0b-9a55-60c1f2c5d8aa")


@dataclass(frozen=True)
class Change:
    """Something outside that has changed: an update.

    >>> from assetflow.watchers import Change
    >>> class Mails:
    ...     async def watch(self, cursor):
    ...         for number in range((cursor or 0) + 1, 4):
    ...             yield Change(id=str(number), extra={"subject": f"mail {number}"}, cursor=number)

    Contract 10.2, 10.4.

    Attributes:
        id: what tells this change from all others of its source; the same change has the same id whenever it is found.
        extra: the extra of the update.
        partition_key: the partition key of the update.
        occurred: when it happened, with a time zone; `None` for now.
        label: what people call the change: "version 17". By default its id.
        cursor: where the watcher begins after this change, as JSON; `None` for where it began before.
    """

    id: str
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    partition_key: str | None = None
    occurred: datetime | None = None
    label: str = ""
    cursor: object = None


@dataclass(frozen=True)
class Found:
    """The findings of a look.

    Attributes:
        changes: oldest first.
        cursor: where the next look begins, as JSON.
        is_all: False if there is more to be found at once.
    """

    changes: Sequence[Change]
    cursor: object
    is_all: bool = True


def intake_of(found: Found, watched: Watched, source: str, label: str, now: datetime) -> WatcherIntake:
    """Return what becomes of changes: one recording for each, and the cursor.

    Parameters:
        source: what was looked at, without user and password; ids follow from it (contract 10.2).
        label: what people call it: "Delta table s3://lake/orders".
    """
    intake = WatcherIntake(source, cursor=CursorStep(watched.name, {CURSOR: found.cursor}))
    for change in found.changes:
        try:
            events = _events(change, watched, source, label, now)
        except AssetflowError as error:
            intake.refused.append(_refused(change, watched, source, label, error))
            continue
        intake.recordings.append(Recording(_id("change", source, change.id), tuple(events)))
        intake.makers.update({event.id: (watched.name,) for event in events})
    return intake


def _events(change: Change, watched: Watched, source: str, label: str, now: datetime) -> list[AssetEvent]:
    return [
        event_by_hand(
            asset,
            id=_id("update", source, change.id, asset.uri, change.partition_key or ""),
            occurred=change.occurred or now,
            origin=Origin("watcher", by=_by(change, label)),
            extra=change.extra,
            partition_key=change.partition_key,
        )
        for asset in watched.assets
    ]


def _refused(change: Change, watched: Watched, source: str, label: str, error: AssetflowError) -> RefusedChange:
    payload = {"change": _by(change, label), "partition_key": change.partition_key, "extra": dict(change.extra)}
    number = _id("refused", source, change.id, watched.name)
    return RefusedChange(number, payload, shown(error), (watched.name,), error.rule)


def _by(change: Change, label: str) -> str:
    return fit_text(f"{label}, {change.label or change.id}")


def _id(*parts: str) -> UUID:
    return uuid5(_NAMESPACE, fit_text("|".join(parts)))
