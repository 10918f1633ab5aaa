"""Listings of files as updates, with a cursor. Contract 10.4, 10.7."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast
from uuid import UUID, uuid5

from assetflow.core.json_data import fit_text
from assetflow.core.values.events import AssetEvent, Origin, Recording, event_by_hand
from assetflow.core.values.triggers import FileTrigger
from assetflow.core.values.words import shown
from assetflow.core.watchers.intake import CursorStep, RefusedChange, Watched, WatcherIntake
from assetflow.errors import AssetflowError, InvalidEvent

_NAMESPACE = UUID("0a3d5d0e-7f53-5d3f-9d0a-52b1c6f3ad31")
# More names would not fit into the extra of an update.
MOST_NAMES = 200


@dataclass(frozen=True)
class SeenFile:
    """A file as a listing shows it: its size in bytes, its time, and the version that an object store gives it."""

    size: int
    modified: str = ""
    version: str = ""

    def as_json(self) -> list[object]:
        """Return it as JSON."""
        return [self.size, self.modified, self.version]

    @classmethod
    def from_json(cls, data: object) -> SeenFile:
        """Return the file that was written."""
        return cls(*cast("tuple[int, str, str]", data))


Listing = Mapping[str, SeenFile]


@dataclass(frozen=True)
class Look:
    """The findings of a look at files.

    Attributes:
        changed: the files that are new or have changed, by path.
        gone: the paths of known files that are gone.
        unsettled: the files that changed since the last look; if they are the same at the next look, they count.
    """

    changed: Listing
    gone: Sequence[str]
    unsettled: Listing


def look(known: Listing, before: Listing, now: Listing, *, is_store: bool) -> Look:
    """Compare a listing with what is known. Contract 10.7.

    Parameters:
        known: the files of the cursor.
        before: the files that had not settled at the last look.
        now: the listing.
        is_store: True for an object store, where a file is there as a whole: it counts at the first look.
    """
    new = {path: file for path, file in now.items() if known.get(path) != file}
    changed = {path: file for path, file in new.items() if is_store or before.get(path) == file}
    return Look(
        changed, [path for path in known if path not in now], {p: f for p, f in new.items() if p not in changed}
    )


def intake_of(look: Look, watched: Watched, source: str, now: datetime) -> WatcherIntake:
    """Return what becomes of a look: one recording, with an update for each changed file or one for all of them.

    A new watcher takes the files that are there as known, unless it is to record them. Contract 10.4.

    Parameters:
        source: where the files are, without user and password.
    """
    trigger = cast(FileTrigger, watched.trigger)
    known = {path: file.as_json() for path, file in look.changed.items()}
    intake = WatcherIntake(source, cursor=CursorStep(watched.name, known, look.gone))
    if not watched.begun and trigger.start == "known":
        return intake
    if trigger.per == "look" and look.changed:
        _add(intake, watched, _of_look(look.changed, watched, source, now))
    if trigger.per == "file":
        for path, file in sorted(look.changed.items()):
            try:
                _add(intake, watched, _of_file(path, file, watched, source, now))
            except AssetflowError as error:
                intake.refused.append(_refused(path, file, watched, source, error))
    return intake


def _add(intake: WatcherIntake, watched: Watched, events: list[AssetEvent]) -> None:
    intake.recordings.append(Recording(uuid5(_NAMESPACE, f"recording|{events[0].id}"), tuple(events)))
    intake.makers.update({event.id: (watched.name,) for event in events})


def _of_file(path: str, file: SeenFile, watched: Watched, source: str, now: datetime) -> list[AssetEvent]:
    facts: dict[str, object] = {"path": fit_text(path), "size": file.size, "modified": file.modified}
    number = "|".join((source, path, str(file.size), file.modified, file.version))
    return _events(watched, f"file {path}", number, facts, _key(path, watched), now)


def _of_look(files: Listing, watched: Watched, source: str, now: datetime) -> list[AssetEvent]:
    paths = sorted(files)
    facts: dict[str, object] = {"files": [fit_text(path) for path in paths[:MOST_NAMES]], "count": len(paths)}
    number = "|".join((source, *(f"{path}|{files[path].as_json()}" for path in paths)))
    return _events(watched, watched.trigger.describe(), number, facts, None, now)


def _events(
    watched: Watched, by: str, number: str, extra: Mapping[str, object], key: str | None, now: datetime
) -> list[AssetEvent]:
    return [
        event_by_hand(
            asset,
            id=uuid5(_NAMESPACE, f"update|{number}|{asset.uri}|{key or ''}"),
            occurred=now,
            origin=Origin("watcher", by=fit_text(by)),
            extra=extra,
            partition_key=key,
        )
        for asset in watched.assets
    ]


def _key(path: str, watched: Watched) -> str | None:
    expression = cast(FileTrigger, watched.trigger).partition_key
    if expression is None:
        return None
    found = re.search(expression, path)
    if found is None or found["key"] is None:
        what = "does not match" if found is None else "has no key for"
        raise InvalidEvent(f"the path {path} {what} {expression!r}", rule="10.2")
    return found["key"]


def _refused(path: str, file: SeenFile, watched: Watched, source: str, error: AssetflowError) -> RefusedChange:
    number = uuid5(_NAMESPACE, "|".join(("refused", source, path, str(file.as_json()), watched.name)))
    payload = {"file": fit_text(path), "size": file.size, "modified": file.modified}
    return RefusedChange(number, payload, shown(error), (watched.name,), error.rule)
