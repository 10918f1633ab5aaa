"""The triggers of watchers, as data: what is watched, and what of it becomes an update (contract chapter 10)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields
from datetime import timedelta
from typing import Any, ClassVar, Literal, Protocol, cast, runtime_checkable

from assetflow.core.watchers.addresses import (
    Address,
    Block,
    address_from_json,
    address_to_json,
    check_address,
    without_user,
)
from assetflow.core.watchers.paths import check_path
from assetflow.errors import InvalidWatcher

Json = Mapping[str, object]
Format = Literal["json", "bytes"]
Start = Literal["known", "existing"]
Per = Literal["file", "look"]

AMQP = ("amqp", "amqps")
REDIS = ("redis", "rediss")
QUEUES = "amqp:// and amqps:// (assetflow[rabbitmq]), redis:// and rediss:// (assetflow[redis])"
MOST_MESSAGES = 1_000
_WHOLE_DAY = timedelta(days=1)
_SCALARS = (str, int, float, bool, type(None))


@runtime_checkable
class Trigger(Protocol):
    """What an `AssetWatcher` watches: data that a deployment can store.

    Attributes:
        kind: its name in stored declarations.
        place: what it watches, in one text: triggers with the same place share a connection and a cursor.
    """

    kind: ClassVar[str]

    @property
    def place(self) -> str:
        """What it watches, in one text."""
        ...

    def as_json(self) -> dict[str, object]:
        """Return the trigger as JSON, without what is as by default."""
        ...

    def describe(self) -> str:
        """Return the trigger in words: "queue orders of amqp://mq.internal"."""
        ...


@dataclass(frozen=True)
class MessageQueueTrigger:
    """Messages of a queue, each of which is an update.

    >>> from assetflow import Asset, AssetWatcher
    >>> from assetflow.watchers import MessageQueueTrigger
    >>> queue = MessageQueueTrigger("amqp://mq.internal", queue="orders", partition_key="date")
    >>> orders = Asset("s3://shop/orders", watchers=[AssetWatcher("orders-queue", queue)])

    Any producer's messages will do, no envelope is expected. Paths are dotted: `"payload.date"` is the field `date` of
    the field `payload`. A message is acknowledged after its update is recorded. Contract 10.2, 10.3, 10.5.

    Parameters:
        url: the server: `amqp://` or `amqps://` for RabbitMQ, `redis://` or `rediss://` for Redis. A password in it is
            refused: write `"${ORDERS_QUEUE_URL}"`, a variable of the process that watches, or `block(...)`.
        queue: the queue in RabbitMQ, or the list in Redis.
        stream: the stream in Redis, instead of `queue`.
        group: the consumer group of the stream.
        extra: the path of what becomes the update's extra, under the last name of the path; by default the whole
            message, under `payload`.
        partition_key: the path of the partition key.
        asset: the path of the URI of the updated asset, instead of the asset that has the watcher.
        alias: the path of the name of an alias through which the update comes.
        filter: paths and the values that they must have; other messages are acknowledged and counted.
        format: "json", or "bytes" for messages that are not JSON; then there are no paths.
        batch: how many messages are recorded at once at most, 1 to 1,000.

    Raises:
        InvalidWatcher: the address has a password or an unknown scheme, not exactly one of `queue` and `stream` is
            given, or a path or another option cannot work.
    """

    url: Address
    _: KW_ONLY
    queue: str | None = None
    stream: str | None = None
    group: str = "assetflow"
    extra: str | None = None
    partition_key: str | None = None
    asset: str | None = None
    alias: str | None = None
    filter: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)
    format: Format = "json"
    batch: int = 100
    kind: ClassVar[str] = "queue"

    def __post_init__(self) -> None:
        check_address(self.url, (*AMQP, *REDIS), known=QUEUES)
        self._check_names()
        self._check_paths()
        _check_number("batch", self.batch, MOST_MESSAGES)

    @property
    def place(self) -> str:
        """The server with the queue, or with the stream and its group: watchers of one place share a connection."""
        group = f" {self.group}" if self.stream is not None else ""
        return f"{self.url} {'queue' if self.stream is None else 'stream'} {self.queue or self.stream}{group}"

    def as_json(self) -> dict[str, object]:
        """Return the trigger as JSON, without what is as by default."""
        return {"kind": self.kind, **_changed(self, url=address_to_json(self.url), filter=dict(self.filter))}

    def describe(self) -> str:
        """Return the trigger in words: "queue orders of amqp://mq.internal"."""
        url = str(self.url) if isinstance(self.url, Block) else without_user(self.url)
        name = f"queue {self.queue}" if self.stream is None else f"stream {self.stream}"
        return f"{name} of {url}"

    def _check_paths(self) -> None:
        for name in ("extra", "partition_key", "asset", "alias"):
            if (path := getattr(self, name)) is not None:
                check_path(path, name)
        for path, value in self.filter.items():
            check_path(path, "filter")
            if not isinstance(value, _SCALARS):
                raise InvalidWatcher(
                    f"filter compares {path!r} with a {type(value).__name__}",
                    fix="Compare with a text, a number, True, False or None",
                    rule="10.5",
                )
        if self.format not in ("json", "bytes"):
            raise InvalidWatcher(f"format is {self.format!r}", fix='Write "json" or "bytes"', rule="10.2")
        paths = [name for name in ("extra", "partition_key", "asset", "alias", "filter") if getattr(self, name)]
        if self.format == "bytes" and paths:
            raise InvalidWatcher(
                f"{paths[0]} is a path, and messages of the format bytes have none", fix='Write format="json"'
            )

    def _check_names(self) -> None:
        if (self.queue is None) == (self.stream is None):
            raise InvalidWatcher(
                "a message queue needs exactly one of queue and stream", fix='Write queue="orders" or stream="orders"'
            )
        for name in ("queue", "stream", "group"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise InvalidWatcher(f"{name} is {value!r}", fix=f'Write {name}="orders"')
        if self.stream is not None and str(self.url).startswith(AMQP):
            raise InvalidWatcher("RabbitMQ has queues here, no streams", fix='Write queue="orders"')


@dataclass(frozen=True)
class FileTrigger:
    """Files that appear or change, each of which is an update.

    >>> from datetime import timedelta
    >>> from assetflow import Asset, AssetWatcher
    >>> from assetflow.watchers import FileTrigger
    >>> landing = FileTrigger("s3://shop/landing/date=*/*.json", partition_key=r"date=(?P<key>[0-9-]+)/")
    >>> orders = Asset("s3://shop/orders", watchers=[AssetWatcher("landing", landing)])

    On a disk, a file counts when its size and its time stand still between two looks; in an object store, at the first
    look. A new watcher takes the files that are there as known. Contract 10.4, 10.7.

    Parameters:
        path: the files, with `*`, `**`, `?` and `[…]`: an absolute path, or a URL that fsspec opens, such as
            `s3://bucket/landing/*.json`. A password in it is refused.
        every: the time between two looks, from one second to a day. Local folders are also looked at when they change.
        partition_key: a regular expression with the group `key`, which is searched in the file's path.
        per: "file" for one update for each file, or "look" for one update for all files of a look.
        start: "known", or "existing" to record the files that are there when the watcher is new.

    Raises:
        InvalidWatcher: the path leaves its folder or bucket, the expression has no group `key`, or another option
            cannot work.
    """

    path: str
    every: timedelta = timedelta(seconds=30)
    partition_key: str | None = None
    per: Per = "file"
    start: Start = "known"
    kind: ClassVar[str] = "file"

    def __post_init__(self) -> None:
        self._check_place()
        if not isinstance(cast(object, self.every), timedelta) or not timedelta(seconds=1) <= self.every <= _WHOLE_DAY:
            raise InvalidWatcher(f"every is {self.every!r}", fix="Write a timedelta from one second to a day")
        if self.partition_key is not None:
            _check_expression(self.partition_key)
        if self.per not in ("file", "look"):
            raise InvalidWatcher(f"per is {self.per!r}", fix='Write "file" or "look"')
        if self.start not in ("known", "existing"):
            raise InvalidWatcher(f"start is {self.start!r}", fix='Write "known" or "existing"', rule="10.4")
        if self.per == "look" and self.partition_key is not None:
            raise InvalidWatcher("the files of a look may have several keys", fix='Write per="file"')

    @property
    def place(self) -> str:
        """The path of the files."""
        return self.path

    def as_json(self) -> dict[str, object]:
        """Return the trigger as JSON, without what is as by default."""
        return {"kind": self.kind, **_changed(self, every=self.every.total_seconds())}

    def describe(self) -> str:
        """Return the trigger in words: "files s3://shop/landing/*.json"."""
        return f"files {without_user(self.path)}"

    def _check_place(self) -> None:
        if not isinstance(cast(object, self.path), str) or not ("://" in self.path or self.path.startswith("/")):
            raise InvalidWatcher(
                f"{self.path!r} is not an absolute path or a URL", fix='Write "/data/in/*.json" or "s3://bucket/in/*"'
            )
        check_address(self.path if "://" in self.path else f"file://{self.path}", _AnyScheme(), known="")
        if ".." in re.split(r"[/\\]", self.path):
            raise InvalidWatcher(f"{self.path} leaves its folder or bucket", fix="Write the path without `..`")


class _AnyScheme(tuple[str, ...]):
    """All schemes: fsspec says which it can open, in the process that watches."""

    def __contains__(self, scheme: object) -> bool:
        return bool(scheme)


def _changed(trigger: MessageQueueTrigger | FileTrigger, **written: object) -> dict[str, object]:
    """Return the fields of a trigger that are not as by default; `written` has those that JSON writes differently."""
    found: dict[str, object] = {}
    for each in fields(trigger):
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        value = getattr(trigger, each.name)
        if value != default:
            found[each.name] = written.get(each.name, value)
    return found


def _check_expression(expression: object) -> None:
    try:
        groups = re.compile(cast(str, expression)).groupindex
    except (re.error, TypeError) as error:
        raise InvalidWatcher(
            f"partition_key is {expression!r}, which is not a regular expression: {error}",
            fix=r'Write partition_key=r"date=(?P<key>[0-9-]+)/"',
        ) from error
    if "key" not in groups:
        raise InvalidWatcher(
            f"the expression {expression!r} has no group `key`", fix=r'Write partition_key=r"date=(?P<key>[0-9-]+)/"'
        )


def _check_number(name: str, value: object, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidWatcher(f"{name} is {value!r}", fix=f"Write a whole number from 1 to {most:,}")


def trigger_from_json(data: Json) -> Trigger:
    """Return the trigger that `as_json` wrote.

    Raises:
        InvalidWatcher: it has a kind or an option that this version does not know, or an option that cannot work.
    """
    kind, given = data.get("kind"), {name: value for name, value in data.items() if name != "kind"}
    try:
        if kind == MessageQueueTrigger.kind:
            return MessageQueueTrigger(address_from_json(given.pop("url")), **cast("dict[str, Any]", given))
        if kind == FileTrigger.kind:
            if "every" in given:
                given["every"] = timedelta(seconds=cast(float, given["every"]))
            return FileTrigger(**cast("dict[str, Any]", given))
    except (TypeError, KeyError) as error:
        raise InvalidWatcher(f"a stored watcher cannot be read: {error}", fix="Update assetflow") from error
    raise InvalidWatcher(f"a stored watcher has the unknown kind {kind!r}", fix="Update assetflow", rule="10.1")
