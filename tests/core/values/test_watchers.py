"""Watchers as data: what is refused, and how they travel (contract 10.1)."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from assetflow import Asset, AssetWatcher
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.watchers import trigger_from_json
from assetflow.core.wire import FlowDeclaration, declaration_from_text, declaration_to_text
from assetflow.errors import InvalidSchedule, InvalidWatcher
from assetflow.watchers import (
    ClassTrigger,
    DeltaTableTrigger,
    FileTrigger,
    IcebergTableTrigger,
    MessageQueueTrigger,
    SQLTrigger,
    Trigger,
    WebhookTrigger,
    block,
)

QUEUE = MessageQueueTrigger("amqp://mq.internal", queue="orders")
FILES = FileTrigger("/data/in/*.json", every=timedelta(seconds=5))


def watched(*watchers: AssetWatcher) -> Asset:
    return Asset("s3://shop/orders", watchers=watchers)


def declaration(schedule: Asset, produces: tuple[Asset, ...] = ()) -> FlowDeclaration:
    return FlowDeclaration(ConsumerOptions(to_schedule(schedule)), produces)


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: MessageQueueTrigger("amqp://me:hunter2@mq", queue="q"), "has a password"),
    (lambda: SQLTrigger("jdbc:mysql://me:hunter2@db/shop", "select 1"), "has a password"),
    (lambda: FileTrigger("ftp://me:hunter2@host/in/*"), "has a password"),
    (lambda: FileTrigger("s3://*/in/*"), "no single bucket"),
    (lambda: FileTrigger("zip://*::ftp://me:hunter2@host/a.zip"), "chains several places"),
    (lambda: FileTrigger("s3://shop/in/"), "is a folder"),
    (lambda: MessageQueueTrigger("nats://mq", queue="q"), "'nats' is not known"),
    (lambda: MessageQueueTrigger("mq.internal", queue="q"), "has no scheme"),
    (lambda: MessageQueueTrigger("amqp://mq"), "exactly one of queue, stream and topic"),
    (lambda: MessageQueueTrigger("redis://mq", queue="a", stream="b"), "exactly one"),
    (lambda: MessageQueueTrigger("amqp://mq", queue=" "), "queue is ' '"),
    (lambda: MessageQueueTrigger("amqp://mq", stream="s"), "no streams"),
    (lambda: MessageQueueTrigger("kafka://mq:9092", queue="q"), "Kafka has no queues"),
    (
        lambda: MessageQueueTrigger("kafka://mq:9092?sasl.username=me&sasl.password=hunter2", topic="t"),
        "has sasl.password",
    ),
    (lambda: MessageQueueTrigger("kafka://me:${P}@mq:9092", topic="t"), "not an address of Kafka"),
    (lambda: MessageQueueTrigger("kafka://mq:9092?plugin.library.paths=evil.so", topic="t"), "'plugin.library.paths'"),
    (lambda: MessageQueueTrigger("sqs://eu-west-1/orders", queue="q"), "not an address of SQS"),
    (lambda: MessageQueueTrigger("amqp://mq", queue="q", extra="a..b"), "not a dotted path"),
    (lambda: MessageQueueTrigger("amqp://mq", queue="q", filter={"a": [1]}), "compares 'a' with a list"),
    (lambda: MessageQueueTrigger("amqp://mq", queue="q", format="bytes", extra="a"), "extra is a path"),
    (lambda: MessageQueueTrigger("amqp://mq", queue="q", batch=0), "`batch` must be a whole number from 1"),
    (lambda: MessageQueueTrigger("amqp://mq", queue="q", within=timedelta(hours=1)), "within is"),
    (lambda: WebhookTrigger("hunter2"), "stands in the code"),
    (lambda: WebhookTrigger("${A}hunter2"), "stands in the code"),
    (lambda: WebhookTrigger("${A}", signs="gitlab"), "signs is 'gitlab'"),  # type: ignore[arg-type]
    (lambda: WebhookTrigger("${A}", extra="a..b"), "not a dotted path"),
    (lambda: FileTrigger("in/*.json"), "not an absolute path"),
    (lambda: FileTrigger("s3://bucket/../other/*"), "leaves its folder or bucket"),
    (lambda: FileTrigger("/in/*", partition_key="date=(.*)"), "has no group `key`"),
    (lambda: FileTrigger("/in/*", partition_key="("), "not a regular expression"),
    (lambda: FileTrigger("/in/*", every=timedelta(milliseconds=1)), "`every` must be"),
    (lambda: FileTrigger("/in/*", start="now"), "start is 'now'"),  # type: ignore[arg-type]
    (lambda: DeltaTableTrigger("orders"), "not an absolute path"),
    (lambda: DeltaTableTrigger("s3://me:hunter2@lake/t"), "has a password"),
    (lambda: DeltaTableTrigger("s3://lake/../t"), "leaves its folder or bucket"),
    (lambda: DeltaTableTrigger("/lake/t", every=timedelta(days=2)), "`every` must be"),
    (lambda: ClassTrigger("shop.mails"), "does not name a class"),
    (lambda: ClassTrigger("shop:Mails", options={"a": {1}}), "not JSON"),
    (lambda: ClassTrigger("shop:Mails", options={"password": "hunter2"}), "password is a secret"),
    (lambda: IcebergTableTrigger(" ", "shop.orders"), "catalog is ' '"),
    (lambda: IcebergTableTrigger("lake", "orders"), "table is 'orders'"),
    (lambda: IcebergTableTrigger("l", "a.b", properties={"token": "hunter2"}), "token is a secret"),
    (lambda: IcebergTableTrigger("l", "a.b", properties={"uri": "postgresql://me:hunter2@db/c"}), "has a password"),
    (lambda: SQLTrigger("postgresql://me:hunter2@db/shop", "select 1"), "has a password"),
    (lambda: SQLTrigger("postgresql://db/shop?password=hunter2", "select 1"), "has password"),
    (lambda: SQLTrigger("sqlite:///shop.db", " "), "query is ' '"),
    (lambda: SQLTrigger("shop.db", "select 1"), "has no scheme"),
    (lambda: block("orders"), "does not name a block"),
    (lambda: AssetWatcher(" ", QUEUE), "not a name"),
    (lambda: AssetWatcher("w", MessageQueueTrigger), "is a class"),  # type: ignore[arg-type]
    (lambda: Asset("a", watchers=[QUEUE]), "is not a watcher"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("make", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_rule_10_1_refused_where_it_is_written(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidWatcher) as caught:
        make()
    assert words in str(caught.value)
    assert caught.value.fix
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "w" * 251, "€" * 200, None])
def test_rule_10_1_a_name_fits_into_the_index_of_postgres(name: Any) -> None:
    with pytest.raises(InvalidWatcher, match="a text of 1 to 250 characters"):
        AssetWatcher(name, FileTrigger("/in/*"))


def test_rule_10_1_a_name_is_one_trigger() -> None:
    assert watched(AssetWatcher("w", QUEUE), AssetWatcher("w", QUEUE)).watchers == (AssetWatcher("w", QUEUE),)
    with pytest.raises(InvalidWatcher, match="'w' stands for two triggers"):
        watched(AssetWatcher("w", QUEUE), AssetWatcher("w", FILES))


@pytest.mark.parametrize(
    "trigger",
    [
        QUEUE,
        MessageQueueTrigger("kafka://a:9092,b:9092?sasl.password=${P}", topic="orders", group="shop"),
        MessageQueueTrigger("sqs://eu-west-1/123456789012", queue="orders"),
        MessageQueueTrigger("sqs://${REGION}", queue="orders", within=timedelta(seconds=5)),
        WebhookTrigger("${SECRET}", signs="github", filter={"ref": "main"}),
        WebhookTrigger(block("secret/shop"), extra="data"),
        FILES,
        MessageQueueTrigger(block("secret/q"), stream="s", group="g", extra="a.b", filter={"a": None}, batch=7),
        MessageQueueTrigger("redis://:${PW}@h/2", queue="q", format="bytes", alias=None),
        FileTrigger("s3://b/in/**", partition_key="(?P<key>.)", start="existing"),
        FileTrigger("s3://b/in/**", per="look"),
        DeltaTableTrigger("s3://lake/t"),
        IcebergTableTrigger("lake", "shop.orders"),
        IcebergTableTrigger("lake", "a.b.c", properties={"token": "${TOKEN}"}, every=timedelta(hours=1)),
        SQLTrigger("postgresql+psycopg://me:${PW}@db/shop", "select max(at) from orders", start="existing"),
        SQLTrigger(block("secret/shop"), "select 1"),
        ClassTrigger("shop.mails:Mails", options={"folder": "orders", "many": [1, None]}),
        DeltaTableTrigger("/lake/t", every=timedelta(minutes=1), start="existing"),
    ],
)
def test_it_travels_with_the_deployment(trigger: Trigger) -> None:
    asset = watched(AssetWatcher("w", trigger))
    for stored in (declaration(asset), declaration(Asset("other"), (asset,))):
        read = declaration_from_text(declaration_to_text(stored))
        assert [each.watchers for each in read.assets if each == asset] == [(AssetWatcher("w", trigger),)]
    assert trigger_from_json(json.loads(json.dumps(trigger.as_json()))) == trigger


def test_a_reader_that_does_not_know_a_trigger_refuses_the_declaration() -> None:
    text = json.loads(declaration_to_text(declaration(watched(AssetWatcher("w", QUEUE)))))
    text["nodes"][0]["watchers"][0]["trigger"]["kind"] = "pigeons"
    with pytest.raises(InvalidSchedule, match="unknown kind 'pigeons'"):
        declaration_from_text(json.dumps(text))
