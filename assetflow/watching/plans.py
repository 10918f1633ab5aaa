"""Which watchers are run together: those of one queue share a connection, and each message goes to all of them."""

from __future__ import annotations

from collections.abc import Iterable

from assetflow.core.values.other_triggers import WebhookTrigger
from assetflow.core.values.triggers import MessageQueueTrigger
from assetflow.core.watchers.intake import Watched
from assetflow.ledger.records import WatcherRecord
from assetflow.watching.ports import WatchPlan


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
