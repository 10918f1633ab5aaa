"""Triggers as deployments store them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, cast

from assetflow.core.values.addresses import address_from_json
from assetflow.core.values.other_triggers import WebhookTrigger
from assetflow.core.values.table_triggers import DeltaTableTrigger, IcebergTableTrigger
from assetflow.core.values.triggers import FileTrigger, MessageQueueTrigger, Trigger
from assetflow.core.watchers.class_trigger import ClassTrigger
from assetflow.core.watchers.sql_trigger import SQLTrigger
from assetflow.core.watchers.unreadable import UnreadableTrigger
from assetflow.errors import InvalidWatcher

Fields = dict[str, Any]


def _read(fields: Fields) -> Fields:
    """Return the fields of a trigger as its class takes them."""
    for name in ("url", "secret"):
        if name in fields:
            fields[name] = address_from_json(fields[name])
    for name in ("every", "within"):
        if name in fields:
            fields[name] = timedelta(seconds=fields[name])
    return fields


_KINDS: Mapping[object, Callable[..., Trigger]] = {
    each.kind: each
    for each in (
        MessageQueueTrigger,
        FileTrigger,
        DeltaTableTrigger,
        IcebergTableTrigger,
        SQLTrigger,
        ClassTrigger,
        WebhookTrigger,
    )
}


def trigger_from_json(data: Mapping[str, object]) -> Trigger:
    """Return the trigger that `as_json` wrote.

    Raises:
        InvalidWatcher: it has a kind or an option that this version does not know, or an option that cannot work.
    """
    kind, given = data.get("kind"), {name: value for name, value in data.items() if name != "kind"}
    if kind not in _KINDS:
        raise InvalidWatcher(f"a stored watcher has the unknown kind {kind!r}", fix="Update assetflow", rule="10.1")
    try:
        return _KINDS[kind](**_read(cast(Fields, given)))
    except (TypeError, KeyError) as error:
        raise InvalidWatcher(f"a stored watcher cannot be read: {error}", fix="Update assetflow") from error


def stored_trigger(data: Mapping[str, object]) -> Trigger:
    """Return the trigger that `as_json` wrote, or an `UnreadableTrigger` that says why it cannot be read."""
    try:
        return trigger_from_json(data)
    except InvalidWatcher as error:
        return UnreadableTrigger(data, error)
