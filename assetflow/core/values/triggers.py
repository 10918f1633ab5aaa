"""The triggers of watchers, as data: what is watched, and what of it becomes an update (contract chapter 10)."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from assetflow.core.values.addresses import (
    BROKERS,
    KNOWN,
    PLACES,
    Address,
    PrefectBlock,
    address_to_json,
    check_address,
    check_broker_address,
    without_user,
)
from assetflow.errors import InvalidWatcher

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from assetflow.core.values.watchers import MessageTrigger

Start = Literal["known", "existing"]
_WILD_BUCKET = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://[^/]*[*?\[]")
_WHOLE_DAY = timedelta(days=1)


def check_location(path: object, *, example: str) -> None:
    """Refuse what is not an absolute path or a URL, has a password, or leaves its folder or bucket.

    Raises:
        InvalidWatcher
    """
    if not isinstance(path, str) or not ("://" in path or path.startswith("/")):
        raise InvalidWatcher(f"{path!r} is not an absolute path or a URL", fix=f"Write {example}")
    check_stays(path)
    # The library of the scheme says whether it can open it, in the process that watches.
    check_address(path if "://" in path else f"file://{path}", bool, known="")


def check_stays(path: str) -> None:
    """Refuse a path that leaves its folder or bucket. Variables in it may bring that about.

    Raises:
        InvalidWatcher
    """
    plain = without_user(path)
    if ".." in re.split(r"[/\\]", path):
        raise InvalidWatcher(f"{plain} leaves its folder or bucket", fix="Write the path without `..`")
    if "::" in path:
        raise InvalidWatcher(
            f"{plain.partition('::')[0]}::… chains several places", fix="Write one place: s3://bucket/in/*"
        )
    if _WILD_BUCKET.match(path):
        raise InvalidWatcher(f"{plain} names no single bucket", fix="Write the bucket: s3://bucket/in/*")


def check_looks(every: object, start: object) -> None:
    """Check the time between two looks, from a second to a day, and how a watcher begins (10.4).

    Raises:
        InvalidWatcher
    """
    if not isinstance(every, timedelta) or not timedelta(seconds=1) <= every <= _WHOLE_DAY:
        raise InvalidWatcher(
            f"`every` must be a timedelta from 1 s to 1 day, not {every!r}", fix="Write timedelta(minutes=5)"
        )
    if start not in ("known", "existing"):
        raise InvalidWatcher(f"start is {start!r}", fix='Write "known" or "existing"', rule="10.4")


NOT_THERE = object()


def check_path(path: object, option: str) -> str:
    """Return a dotted path that an option of a trigger was given.

    Raises:
        InvalidWatcher: it is not a text, or a part of it is empty.
    """
    if not isinstance(path, str) or not all(path.split(".")):
        raise InvalidWatcher(
            f"{option} is {path!r}, which is not a dotted path", fix=f'Write {option}="payload.date"', rule="10.2"
        )
    return path


def value_at(data: object, path: str) -> object:
    """Return the value at a dotted path in JSON data, or `MISSING`."""
    for name in path.split("."):
        if not isinstance(data, Mapping):
            return NOT_THERE
        data = cast("Mapping[str, object]", data).get(name, NOT_THERE)
    return data


def last_name(path: str) -> str:
    """Return the last name of a dotted path."""
    return path.rpartition(".")[2]


Format = Literal["json", "bytes"]
_PATHS = ("extra", "partition_key", "asset", "alias")
_SCALARS = (str, int, float, bool, type(None))


def check_reading(trigger: MessageTrigger) -> None:
    """Refuse paths, filters and formats that cannot work.

    Raises:
        InvalidWatcher
    """
    for name in _PATHS:
        if (path := getattr(trigger, name)) is not None:
            check_path(path, name)
    for path, value in trigger.filter.items():
        check_path(path, "filter")
        if not isinstance(value, _SCALARS):
            raise InvalidWatcher(
                f"filter compares {path!r} with a {type(value).__name__}",
                fix="Compare with a text, a number, True, False or None",
                rule="10.5",
            )
    if trigger.format not in ("json", "bytes"):
        raise InvalidWatcher(f"format is {trigger.format!r}", fix='Write "json" or "bytes"', rule="10.2")
    paths = [name for name in (*_PATHS, "filter") if getattr(trigger, name)]
    if trigger.format == "bytes" and paths:
        raise InvalidWatcher(
            f"{paths[0]} is a path, and messages of the format bytes have none", fix='Write format="json"'
        )


GROUP = "assetflow.watchers"


@cache
def other_kinds() -> Mapping[str, EntryPoint]:
    """Return what opens each kind of queue that an installed package brings, by the scheme of its addresses."""
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=GROUP) if each.name not in BROKERS}


def is_of_queue(scheme: str) -> bool:
    """Return True for the schemes of our own brokers and of other kinds, for which packages are looked through."""
    return scheme in BROKERS or (bool(scheme) and scheme in other_kinds())


Per = Literal["file", "look"]

MOST_MESSAGES = 1_000
LONGEST_WITHIN = timedelta(minutes=10)


class Trigger(ABC):
    """The base class of what an `AssetWatcher` watches: data that a deployment can store.

    Attributes:
        kind: its name in stored declarations.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def place(self) -> str:
        """What it watches, in one text: triggers with the same place share a connection and a cursor."""

    @abstractmethod
    def describe(self) -> str:
        """Return the trigger in words: "queue orders of amqp://mq.internal"."""

    def as_json(self) -> dict[str, object]:
        """Return the trigger as JSON, without what is as by default."""
        found: dict[str, object] = {"kind": self.kind}
        for each in fields(cast("Any", self)):
            value = getattr(self, each.name)
            if value != (each.default_factory() if callable(each.default_factory) else each.default):
                found[each.name] = _written(value)
        return found


def _written(value: object) -> object:
    match value:
        case timedelta():
            return value.total_seconds()
        case PrefectBlock():
            return address_to_json(value)
        case Mapping():
            return dict(cast("Mapping[str, object]", value))
        case _:
            return value


@dataclass(frozen=True)
class MessageQueueTrigger(Trigger):
    """Messages of a queue, each of which is an update.

    >>> from assetflow import Asset, AssetWatcher
    >>> from assetflow.watchers import MessageQueueTrigger
    >>> queue = MessageQueueTrigger("amqp://mq.internal", queue="orders", partition_key="date")
    >>> orders = Asset("s3://shop/orders", watchers=[AssetWatcher("orders-queue", queue)])

    Any producer's messages will do, no envelope is expected. Paths are dotted: `"payload.date"` is the field `date` of
    the field `payload`. A message is acknowledged after its update is recorded. Contract 10.2, 10.3, 10.5.

    Parameters:
        url: the server: `amqp://` or `amqps://` for RabbitMQ, `redis://` or `rediss://` for Redis, `sqs://eu-west-1`
            for SQS, `kafka://one:9092,two:9092` for Kafka. A password in it is refused: write
            `"${ORDERS_QUEUE_URL}"`, a variable of the process that watches, or `block(...)`.
        queue: the queue in RabbitMQ or SQS, or the list in Redis.
        stream: the stream in Redis, instead of `queue`.
        topic: the topic in Kafka, instead of `queue`.
        group: the consumer group of the stream or the topic, which nobody else may use.
        extra: the path of what becomes the update's extra, under the last name of the path; by default the whole
            message, under `payload`.
        partition_key: the path of the partition key.
        asset: the path of the URI of the updated asset, instead of the asset that has the watcher.
        alias: the path of the name of an alias through which the update comes.
        filter: paths and the values that they must have; other messages are acknowledged and counted.
        format: "json", or "bytes" for messages that are not JSON; then there are no paths.
        batch: how many messages are taken at once at most, 1 to 1,000.
        within: makes one recording of the messages that come within this time after the first, up to ten minutes and
            up to `batch` messages; a flow runs once for them. By default each message is a recording of its own.

    Raises:
        InvalidWatcher: the address has a password or an unknown scheme, not exactly one of `queue`, `stream` and
            `topic` is given, or a path or another option cannot work.
    """

    url: Address
    _: KW_ONLY
    queue: str | None = None
    stream: str | None = None
    topic: str | None = None
    group: str = "assetflow"
    extra: str | None = None
    partition_key: str | None = None
    asset: str | None = None
    alias: str | None = None
    filter: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)
    format: Format = "json"
    batch: int = 100
    within: timedelta | None = None
    kind: ClassVar[str] = "queue"

    def __post_init__(self) -> None:
        if isinstance(url := check_address(self.url, is_of_queue, known=KNOWN), str):
            check_broker_address(url)
        self._check_names()
        check_reading(self)
        _check_number("batch", self.batch, MOST_MESSAGES)
        self._check_within()

    @property
    def place(self) -> str:
        """The server with the queue, stream or topic, and its group: watchers of one place share a connection."""
        group = f" {self.group}" if self.queue is None else ""
        return f"{self.url} {self._names}{group}"

    def describe(self) -> str:
        """Return the trigger in words: "queue orders of amqp://mq.internal"."""
        url = str(self.url) if isinstance(self.url, PrefectBlock) else without_user(self.url)
        return f"{self._names} of {url.partition('?')[0]}"

    @property
    def _names(self) -> str:
        return next(f"{what} {name}" for what in PLACES if (name := getattr(self, what)) is not None)

    def _check_within(self) -> None:
        given = cast(object, self.within)
        if given is None:
            return
        if not isinstance(given, timedelta) or not timedelta() < given <= LONGEST_WITHIN:
            raise InvalidWatcher(f"within is {given!r}", fix="Write a timedelta of at most ten minutes", rule="10.2")

    def _check_names(self) -> None:
        given = [what for what in PLACES if getattr(self, what) is not None]
        if len(given) != 1:
            raise InvalidWatcher(
                "a message queue needs exactly one of queue, stream and topic", fix='Write queue="orders"'
            )
        for name in (*given, "group"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise InvalidWatcher(f"{name} is {value!r}", fix=f'Write {name}="orders"')
        broker = BROKERS.get(str(self.url).partition(":")[0].lower())
        if broker is not None and given[0] not in broker.places:
            raise InvalidWatcher(
                f"{broker.title} has no {given[0]}s here", fix=f'Write {broker.places[0]}="orders"', rule="10.1"
            )


@dataclass(frozen=True)
class FileTrigger(Trigger):
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
        check_location(self.path, example='"/data/in/*.json" or "s3://bucket/in/*"')
        if self.path.endswith("/"):
            raise InvalidWatcher(f"{self.describe()} is a folder", fix=f'Write "{without_user(self.path)}*"')
        check_looks(self.every, self.start)
        if self.partition_key is not None:
            _check_expression(self.partition_key)
        if self.per not in ("file", "look"):
            raise InvalidWatcher(f"per is {self.per!r}", fix='Write "file" or "look"')
        if self.per == "look" and self.partition_key is not None:
            raise InvalidWatcher("the files of a look may have several keys", fix='Write per="file"')

    @property
    def place(self) -> str:
        """The path of the files."""
        return self.path

    def describe(self) -> str:
        """Return the trigger in words: "files s3://shop/landing/*.json"."""
        return f"files {without_user(self.path)}"


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
        raise InvalidWatcher(
            f"`{name}` must be a whole number from 1 to {most:,}, not {value!r}", fix=f"Write {name}=1"
        )
