"""Watchers as data: what is refused, and how they travel (contract 10.1)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from assetflow import Asset, AssetWatcher, flow, task
from assetflow.core.codec import FlowDeclaration, declaration_from_text, declaration_to_text
from assetflow.core.schedule_values import to_schedule
from assetflow.core.schedules import ConsumerOptions
from assetflow.core.watchers.addresses import source_of_url, with_variables
from assetflow.core.watchers.triggers import trigger_from_json
from assetflow.errors import InvalidSchedule, InvalidWatcher
from assetflow.watchers import FileTrigger, MessageQueueTrigger, Trigger, block

QUEUE = MessageQueueTrigger("amqp://mq.internal", queue="orders")
FILES = FileTrigger("/data/in/*.json", every=timedelta(seconds=5))


def watched(*watchers: AssetWatcher) -> Asset:
    return Asset("s3://shop/orders", watchers=watchers)


def declaration(schedule: Asset, produces: tuple[Asset, ...] = ()) -> FlowDeclaration:
    return FlowDeclaration(ConsumerOptions(to_schedule(schedule)), produces)


REFUSED: list[tuple[str, Callable[[], object], str]] = [
    ("password", lambda: MessageQueueTrigger("amqp://me:hunter2@mq", queue="q"), "has a password"),
    ("password of files", lambda: FileTrigger("ftp://me:hunter2@host/in/*"), "has a password"),
    ("scheme", lambda: MessageQueueTrigger("nats://mq", queue="q"), "'nats' is not known"),
    ("no scheme", lambda: MessageQueueTrigger("mq.internal", queue="q"), "has no scheme"),
    ("no queue", lambda: MessageQueueTrigger("amqp://mq"), "exactly one of queue and stream"),
    ("both", lambda: MessageQueueTrigger("redis://mq", queue="a", stream="b"), "exactly one"),
    ("blank", lambda: MessageQueueTrigger("amqp://mq", queue=" "), "queue is ' '"),
    ("stream of RabbitMQ", lambda: MessageQueueTrigger("amqp://mq", stream="s"), "no streams"),
    ("path", lambda: MessageQueueTrigger("amqp://mq", queue="q", extra="a..b"), "not a dotted path"),
    ("filter", lambda: MessageQueueTrigger("amqp://mq", queue="q", filter={"a": [1]}), "compares 'a' with a list"),
    ("bytes", lambda: MessageQueueTrigger("amqp://mq", queue="q", format="bytes", extra="a"), "extra is a path"),
    ("batch", lambda: MessageQueueTrigger("amqp://mq", queue="q", batch=0), "batch is 0"),
    ("relative", lambda: FileTrigger("in/*.json"), "not an absolute path"),
    ("leaves", lambda: FileTrigger("s3://bucket/../other/*"), "leaves its folder or bucket"),
    ("no group", lambda: FileTrigger("/in/*", partition_key="date=(.*)"), "has no group `key`"),
    ("no expression", lambda: FileTrigger("/in/*", partition_key="("), "not a regular expression"),
    ("often", lambda: FileTrigger("/in/*", every=timedelta(milliseconds=1)), "every is"),
    ("block", lambda: block("orders"), "does not name a block"),
    ("name", lambda: AssetWatcher(" ", QUEUE), "not a name"),
    ("trigger", lambda: AssetWatcher("w", MessageQueueTrigger), "is a class"),  # type: ignore[arg-type]
    ("watcher", lambda: Asset("a", watchers=[QUEUE]), "is not a watcher"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("make", "words"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED])
def test_rule_10_1_refused_where_it_is_written(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidWatcher) as caught:
        make()
    assert words in str(caught.value)
    assert caught.value.fix
    assert "hunter2" not in str(caught.value)


def test_an_unknown_scheme_names_the_known_ones_and_their_extras() -> None:
    with pytest.raises(InvalidWatcher, match=r"amqp://.*assetflow\[rabbitmq\].*redis://.*assetflow\[redis\]"):
        MessageQueueTrigger("sqs://eu", queue="q")


def test_rule_10_1_a_name_is_one_trigger() -> None:
    assert watched(AssetWatcher("w", QUEUE), AssetWatcher("w", QUEUE)).watchers == (AssetWatcher("w", QUEUE),)
    with pytest.raises(InvalidWatcher, match="'w' stands for two triggers"):
        watched(AssetWatcher("w", QUEUE), AssetWatcher("w", FILES))


@pytest.mark.parametrize(
    "trigger",
    [
        QUEUE,
        FILES,
        MessageQueueTrigger(block("secret/q"), stream="s", group="g", extra="a.b", filter={"a": None}, batch=7),
        MessageQueueTrigger("redis://:${PW}@h/2", queue="q", format="bytes", alias=None),
        FileTrigger("s3://b/in/**", partition_key="(?P<key>.)", start="existing"),
        FileTrigger("s3://b/in/**", per="look"),
    ],
)
def test_it_travels_with_the_deployment(trigger: Trigger) -> None:
    asset = watched(AssetWatcher("w", trigger))
    for stored in (declaration(asset), declaration(Asset("other"), (asset,))):
        read = declaration_from_text(declaration_to_text(stored))
        assert [each.watchers for each in read.assets if each == asset] == [(AssetWatcher("w", trigger),)]
    assert trigger_from_json(json.loads(json.dumps(trigger.as_json()))) == trigger


def test_a_reader_that_does_not_know_watchers_refuses_the_declaration() -> None:
    plain, text = (json.loads(declaration_to_text(declaration(watched(*w)))) for w in ((), (AssetWatcher("w", QUEUE),)))
    assert (plain["version"], text["version"], text["needs"]) == (1, 2, ["watchers"])
    text["nodes"][0]["watchers"][0]["trigger"]["kind"] = "pigeons"
    with pytest.raises(InvalidSchedule, match="unknown kind 'pigeons'"):
        declaration_from_text(json.dumps(text))


def test_a_flow_declares_the_watchers_of_all_its_mentions_of_an_asset() -> None:
    plain, with_queue, with_files = watched(), watched(AssetWatcher("q", QUEUE)), watched(AssetWatcher("f", FILES))

    @task(outlets=[plain])
    def one() -> None: ...

    @task(outlets=[with_queue])
    def two() -> None: ...

    @flow(produces=[with_files])
    def both() -> None:
        one()
        two()

    (produced,) = both.declaration.produces
    assert isinstance(produced, Asset)
    assert [each.name for each in produced.watchers] == ["f", "q"]


def test_variables_are_read_where_it_is_watched() -> None:
    url = "amqp://me:${PW}@MQ.internal/shop/"
    assert with_variables(url, {"PW": "hunter2"}) == "amqp://me:hunter2@MQ.internal/shop/"
    with pytest.raises(InvalidWatcher, match="PW is not set"):
        with_variables(url, {})


def test_rule_10_2_a_source_has_no_user_and_always_a_port() -> None:
    ports = {"amqp": 5672}
    sources = {source_of_url(url, ports) for url in ("amqp://me:x@MQ/shop/", "AMQP://mq:5672/shop?heartbeat=9")}
    assert sources == {"amqp://mq:5672/shop"}
