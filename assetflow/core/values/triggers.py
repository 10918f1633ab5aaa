"""The triggers of watchers, as data: what is watched, and what of it becomes an update (contract chapter 10)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import ClassVar, Literal, Protocol, cast, runtime_checkable

from assetflow.core.values.addresses import Address, PrefectBlock, address_to_json, check_address, without_user
from assetflow.core.watchers.brokers import BROKERS, KNOWN, PLACES, check_broker_address
from assetflow.core.watchers.options import Start, changed_fields, check_every, check_location, check_start
from assetflow.core.watchers.other_kinds import Schemes
from assetflow.core.watchers.reading import Format, check_reading
from assetflow.errors import InvalidWatcher

Per = Literal["file", "look"]

MOST_MESSAGES = 1_000
LONGEST_WITHIN = timedelta(minutes=10)


@runtime_checkable
class Trigger(Protocol):
    """The trigger of an `AssetWatcher`: data that a deployment can store.

    Attributes:
        kind: its name in stored declarations.
        place: what it watches, in one text: triggers with the same place share a connection and a cursor.
    """

    kind: ClassVar[str]

    @property
    def place(self) -> str:
        """The place that it watches, in one text."""
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
        if isinstance(url := check_address(self.url, Schemes(), known=KNOWN), str):
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

    def as_json(self) -> dict[str, object]:
        """Return the trigger as JSON, without what is as by default."""
        written = changed_fields(
            self, url=address_to_json(self.url), filter=dict(self.filter), within=_seconds(self.within)
        )
        return {"kind": self.kind, **written}

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
        check_location(self.path, example='"/data/in/*.json" or "s3://bucket/in/*"')
        if self.path.endswith("/"):
            raise InvalidWatcher(f"{self.describe()} is a folder", fix=f'Write "{without_user(self.path)}*"')
        check_every(self.every)
        check_start(self.start)
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

    def as_json(self) -> dict[str, object]:
        """Return the trigger as JSON, without what is as by default."""
        return {"kind": self.kind, **changed_fields(self, every=self.every.total_seconds())}

    def describe(self) -> str:
        """Return the trigger in words: "files s3://shop/landing/*.json"."""
        return f"files {without_user(self.path)}"


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


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
