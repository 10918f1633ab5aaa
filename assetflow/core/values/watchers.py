"""`AssetWatcher`: a name for something outside that updates an asset."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, cast

from assetflow.core.json_data import MAX_KEY_LENGTH, check_key
from assetflow.core.values.addresses import address_from_json
from assetflow.core.values.other_triggers import ClassTrigger, WebhookTrigger
from assetflow.core.values.table_triggers import DeltaTableTrigger, IcebergTableTrigger, SQLTrigger
from assetflow.core.values.triggers import FileTrigger, MessageQueueTrigger, Trigger
from assetflow.errors import InvalidEvent, InvalidWatcher, not_a


@dataclass(frozen=True)
class UnreadableTrigger(Trigger):
    """A stored trigger that this program cannot read: a later one wrote it, or a package with its broker is missing.

    Attributes:
        data: what is stored.
        error: why it cannot be read.
    """

    data: Mapping[str, object] = field(hash=False)
    error: InvalidWatcher = field(hash=False, compare=False)
    kind: ClassVar[str] = "unreadable"

    @property
    def place(self) -> str:
        """The stored text."""
        return json.dumps(self.data, sort_keys=True)

    def as_json(self) -> dict[str, object]:
        """Return what is stored."""
        return dict(self.data)

    def describe(self) -> str:
        """Return that it cannot be read, and its kind."""
        return f"{self.data.get('kind')}, which cannot be read here"


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


_FIX = 'Write AssetWatcher("orders-queue", MessageQueueTrigger("amqp://mq.internal", queue="orders"))'


@dataclass(frozen=True)
class AssetWatcher:
    """Something outside that updates an asset, such as messages of a queue, files or new versions of a table.

    >>> from assetflow import Asset, AssetWatcher, flow
    >>> from assetflow.watchers import MessageQueueTrigger
    >>> queue = MessageQueueTrigger("amqp://mq.internal", queue="orders")
    >>> orders = Asset("s3://shop/orders", watchers=[AssetWatcher("orders-queue", queue)])
    >>> @flow(schedule=orders)
    ... def report(): ...

    `assetflow watcher start` runs the watchers of all deployed flows. Contract 10.1.

    Parameters:
        name: the watcher's name, for people, of at most 250 characters. In all deployments it stands for one and the
            same trigger.
        trigger: what is watched: a trigger of `assetflow.watchers`.

    Raises:
        InvalidWatcher: the name is blank or too long, or `trigger` is not a trigger.
    """

    name: str
    trigger: Trigger

    def __post_init__(self) -> None:
        try:
            check_key(self.name)
        except InvalidEvent as error:
            raise InvalidWatcher(
                f"{self.name!r:.60} is not a name for a watcher, a text of 1 to {MAX_KEY_LENGTH} characters",
                fix=_FIX,
                rule="10.1",
            ) from error
        if not isinstance(cast(object, self.trigger), Trigger):
            message, fix = not_a(self.trigger, "a trigger", _FIX)
            raise InvalidWatcher(message, where=f"watcher {self.name!r}", fix=fix, rule="10.1")

    def as_json(self) -> dict[str, object]:
        """Return the watcher as JSON."""
        return {"name": self.name, "trigger": self.trigger.as_json()}


def watcher_from_json(data: object) -> AssetWatcher:
    """Return the watcher that was written.

    Raises:
        InvalidWatcher: its trigger cannot be read by this version.
    """
    given = cast("Mapping[str, object]", data)
    return AssetWatcher(cast(str, given["name"]), trigger_from_json(cast("Mapping[str, object]", given["trigger"])))


def check_watchers(watchers: object, where: str) -> tuple[AssetWatcher, ...]:
    """Return the watchers of an asset. Contract 10.1.

    Raises:
        InvalidWatcher: a value is not a watcher, or two triggers have one name.
    """
    if not isinstance(watchers, list | tuple):
        raise InvalidWatcher(f"watchers is {watchers!r}", where=where, fix="Write watchers=[AssetWatcher(...)]")
    found = cast("list[object]", watchers)
    for each in found:
        if not isinstance(each, AssetWatcher):
            message, fix = not_a(each, "a watcher", _FIX)
            raise InvalidWatcher(message, where=where, fix=fix, rule="10.1")
    named = cast("list[AssetWatcher]", found)
    if conflict := second_trigger(named):
        raise InvalidWatcher(
            f"the name {conflict!r} stands for two triggers", where=where, fix="Give each its own name", rule="10.1"
        )
    return tuple({each.name: each for each in named}.values())


def second_trigger(watchers: Iterable[AssetWatcher]) -> str | None:
    """Return a name that stands for two different triggers, or `None`. Contract 10.1."""
    known: dict[str, Trigger] = {}
    for each in watchers:
        if known.setdefault(each.name, each.trigger) != each.trigger:
            return each.name
    return None
