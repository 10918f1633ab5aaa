"""What a watcher would find, for tests: a message or a file, without a broker or a bucket. Contract chapter 10."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from fsspec.utils import glob_translate  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, observation, read_versions
from assetflow.core.values.triggers import FileTrigger, MessageQueueTrigger
from assetflow.core.values.watchers import WebhookTrigger
from assetflow.core.watchers import files, intake
from assetflow.core.watchers.intake import Watched, WatcherIntake
from assetflow.errors import InvalidEvent, InvalidWatcher, UnknownWatcher
from assetflow.ledger import Ledger
from assetflow.ledger.records import WatcherRecord

_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Outside:
    """The outside of a ledger: messages and files for its watchers."""

    place: str

    def observe(self, asset: Asset, version: str | Mapping[str, str], now: datetime) -> list[AssetEvent]:
        """Record which version of a source was seen; see `Harness.observe`."""
        versions = read_versions(version, partitions=not isinstance(version, str), where=asset.label)
        origin = Origin("api", by="assetflow.testing")
        seen = observation(asset, versions, id=uuid4(), occurred=now, origin=origin)
        with Ledger.open(self.place) as ledger:
            recorded, _ = ledger.writer.events.record([seen], now)[0]
        for _, error in recorded.refused:
            raise error
        return recorded.events

    def message(self, watcher: str, body: object, number: str | None, now: datetime) -> list[AssetEvent]:
        """Record a message of the queue of a watcher; see `Harness.message`."""
        found = self._find(watcher)
        trigger = found.trigger
        if not isinstance(trigger, MessageQueueTrigger | WebhookTrigger):
            raise InvalidWatcher(f"{watcher} watches no queue: {trigger.describe()}", fix="Write h.file(…)")
        written = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = intake.Message(written, number)
        found_now = intake.intake_of(
            [(given, number or str(uuid4()))], [_watched(found)], "harness", trigger.describe(), now
        )
        return self._record(found_now, now)

    def file(self, watcher: str, name: str, size: int, now: datetime) -> list[AssetEvent]:
        """Record a file that a watcher finds; see `Harness.file`."""
        found = self._find(watcher)
        trigger = found.trigger
        if not isinstance(trigger, FileTrigger):
            raise InvalidWatcher(f"{watcher} watches no files: {trigger.describe()}", fix="Write h.message(…)")
        path = _path(trigger, name)
        change = files.Look({path: files.SeenFile(size, now.isoformat(), str(uuid4()))}, (), {})
        return self._record(files.intake_of(change, _watched(found), "harness", now), now)

    def _find(self, name: str) -> WatcherRecord:
        with Ledger.open(self.place) as ledger:
            found = {each.name: each for each in ledger.reader.watchers.all()}
        if name not in found:
            known = f"the watchers are {', '.join(sorted(found))}" if found else "no deployed asset has one"
            raise UnknownWatcher(f"there is no watcher {name!r}; {known}", fix="Deploy a flow whose asset has it")
        return found[name]

    def _record(self, intake: WatcherIntake, now: datetime) -> list[AssetEvent]:
        if intake.refused:
            raise InvalidEvent(intake.refused[0].reason, rule=intake.refused[0].rule)
        with Ledger.open(self.place) as ledger:
            done = ledger.writer.watchers.record(intake, now)
        return [event for recorded, _ in done for event in recorded.events]


def _watched(record: WatcherRecord) -> Watched:
    # A watcher that has never looked would take the file as known (10.4).
    return Watched(record.name, record.trigger, record.assets, begun=True)


def _path(trigger: FileTrigger, name: str) -> str:
    """Return the path of a file under the fixed part of a trigger's path."""
    parts = trigger.path.split("/")
    fixed = next((place for place, part in enumerate(parts) if _WILD.search(part)), len(parts) - 1)
    path = name if name.startswith("/") or "://" in name else "/".join((*parts[:fixed], name))
    if not re.match(str(glob_translate(trigger.path)), path):
        raise InvalidEvent(f"{path} is not among the files {trigger.path}", rule="10.7", fix="Name a file that matches")
    return path
