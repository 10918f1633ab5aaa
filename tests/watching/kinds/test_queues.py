"""Queues of RabbitMQ, streams and lists of Redis: each message is one update, whatever fails (10.2, 10.3, 10.5)."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from redis.asyncio import Redis

from assetflow.watchers import MessageQueueTrigger
from assetflow.watching.kinds.sqs import open_sqs
from tests.environment.waiting import until_async
from tests.watching.brokers import SECONDS_HIDDEN, SQS, KafkaCluster, SqsServer
from tests.watching.outside import NO_ID, ORDERS, RABBIT, REDIS, Direct, updates, watch, watching

pytestmark = pytest.mark.long
RABBITMQ, ON_REDIS = pytest.mark.rabbitmq, pytest.mark.redis
Send = Callable[..., Awaitable[None]]


@pytest.fixture(
    params=[
        pytest.param("ids", marks=RABBITMQ),
        pytest.param("no ids", marks=RABBITMQ),
        pytest.param("stream", marks=ON_REDIS),
        pytest.param("list", marks=ON_REDIS),
        "sqs",
        "kafka",
    ]
)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def trigger(
    kind: str, name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., MessageQueueTrigger]:
    # moto hides what it gave to a client that is gone.
    monkeypatch.setattr("assetflow.watching.kinds.sqs.LEAST_SECONDS_HIDDEN", SECONDS_HIDDEN)

    def make(**options: Any) -> MessageQueueTrigger:
        if kind == "sqs":
            return MessageQueueTrigger(SQS, queue=name, **options)
        if kind == "kafka":
            return MessageQueueTrigger(request.getfixturevalue("kafka").url, topic=name, **options)
        if kind in ("ids", "no ids"):
            return MessageQueueTrigger(RABBIT, queue=name, **options)
        return MessageQueueTrigger(REDIS, **{"stream" if kind == "stream" else "queue": name}, **options)

    return make


@pytest.fixture
def send(kind: str, name: str, request: pytest.FixtureRequest) -> Send:
    rabbit = cast(AbstractChannel, request.getfixturevalue("rabbit")) if kind in ("ids", "no ids") else None
    redis = cast(Redis, request.getfixturevalue("redis")) if kind in ("stream", "list") else None
    server = cast("SqsServer | KafkaCluster", request.getfixturevalue(kind)) if kind in ("sqs", "kafka") else None

    async def of_server(data: object, number: str) -> None:  # noqa: ARG001  the broker gives the ids
        assert server is not None
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        await asyncio.to_thread(server.send, name, body)

    async def of_rabbit(data: object, number: str) -> None:
        assert rabbit is not None
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        message = aio_pika.Message(body, message_id=number if kind == "ids" else NO_ID)
        await rabbit.default_exchange.publish(message, routing_key=name)

    async def of_redis(data: object, number: str) -> None:  # noqa: ARG001  Redis gives the ids
        assert redis is not None
        if kind == "list":
            await cast(Any, redis.lpush(name, data if isinstance(data, bytes) else json.dumps(data)))
        else:
            fields = cast("dict[str, object]", data) if isinstance(data, dict) else {"text": data}
            written = {k: v if isinstance(v, str | bytes) else json.dumps(v) for k, v in fields.items()}
            await redis.xadd(name, cast(Any, written))

    if server is not None:
        return of_server
    return of_rabbit if rabbit is not None else of_redis


async def test_rule_10_2_each_message_is_one_update(direct: Direct, trigger: Any, send: Send, kind: str) -> None:
    watch(direct.ledger, trigger(extra="order.items", partition_key="day"))
    for number in range(3):
        await send({"order": {"items": [number]}, "day": f"2026-01-0{number + 1}"}, f"m{number}")
    async with watching(direct):
        await until_async(lambda: len(updates(direct.ledger)) == 3)
        await send({"order": {"items": []}, "day": "2026-01-09"}, "m9")
        found = await until_async(lambda: made if len(made := updates(direct.ledger)) == 4 else None)
    assert [event.extra for event in found] == [{"items": [0]}, {"items": [1]}, {"items": [2]}, {"items": []}]
    assert [event.partition_key for event in found] == ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-09"]
    assert {event.uri for event in found} == {ORDERS}
    assert found[0].origin.kind == "watcher"
    said = {"ids": "RabbitMQ", "no ids": "RabbitMQ", "sqs": "SQS", "kafka": "Kafka"}.get(kind, "Redis")
    assert found[0].origin.by.startswith(f"{said} ")
    assert kind != "ids" or found[0].origin.by.endswith(", message m0")
    (shown,) = direct.ledger.reader.watchers.all()
    assert (shown.state, shown.updates, shown.refused) == ("watching", 4, 0)


@pytest.mark.parametrize("step", ["record", "recorded", "acknowledged"])
async def test_rule_10_3_a_crash_neither_loses_nor_doubles(direct: Direct, trigger: Any, send: Send, step: str) -> None:
    watch(direct.ledger, trigger())
    direct.fails.add(step)
    # Equal messages are several updates.
    for number in range(5):
        await send({"order": "1" if number % 2 else "2"}, f"m{number}")
    async with watching(direct):
        await until_async(lambda: len(updates(direct.ledger)) == 5)
        await send({"order": "1"}, "last")
        await until_async(lambda: len(updates(direct.ledger)) == 6)
    assert [event.extra["payload"] for event in updates(direct.ledger)].count({"order": "1"}) == 3
    async with watching(direct):
        await send({"order": "1"}, "after")
        await until_async(lambda: len(updates(direct.ledger)) == 7)


# The suite of tests/watching/test_conformance.py shows that all kinds collect and acknowledge.
ONE_KIND = pytest.mark.parametrize("kind", ["kafka"])


@ONE_KIND
async def test_rule_10_5_what_no_filter_wants_is_taken_and_counted(direct: Direct, trigger: Any, send: Send) -> None:
    watch(direct.ledger, trigger(filter={"kind": "order"}))
    for number, kind in enumerate(("refund", "order", "refund")):
        await send({"kind": kind}, f"m{number}")
    async with watching(direct):
        await until_async(lambda: direct.watcher.filtered == 2)
        await until_async(lambda: len(updates(direct.ledger)) == 1)
    async with watching(direct):
        await send({"kind": "order"}, "last")
        await until_async(lambda: len(updates(direct.ledger)) == 2)
    assert direct.watcher.filtered == 2


@pytest.mark.rule("10.2")
async def test_a_poison_message_is_refused_and_holds_nothing_up(
    direct: Direct, trigger: Any, send: Send, kind: str
) -> None:
    watch(direct.ledger, trigger(partition_key="day"))
    await send(b"{" if kind != "stream" else {"other": "x"}, "bad")
    await send({"day": " "}, "blank")
    await send({"day": "2026-01-01"}, "good")
    async with watching(direct):
        await until_async(lambda: len(updates(direct.ledger)) == 1)
    reasons = {each.reason for each in direct.ledger.reader.events.refused()}
    assert len(reasons) == 2
    assert direct.watcher.refused == 2


@RABBITMQ
async def test_a_paused_watcher_leaves_messages_in_the_queue(
    direct: Direct, rabbit: AbstractChannel, name: str
) -> None:
    watch(direct.ledger, MessageQueueTrigger(RABBIT, queue=name))

    async def is_left_alone() -> bool:
        return not (await rabbit.declare_queue(name, passive=True)).declaration_result.consumer_count

    async with watching(direct):
        await until_async(lambda: direct.watcher.state == "watching")
        direct.ledger.writer.watchers.switch("w", paused=True, now=datetime.now(UTC))
        await until_async(is_left_alone)
        await rabbit.default_exchange.publish(aio_pika.Message(b"{}"), routing_key=name)
        assert updates(direct.ledger) == []
        direct.ledger.writer.watchers.switch("w", paused=False, now=datetime.now(UTC))
        await until_async(lambda: len(updates(direct.ledger)) == 1)


@RABBITMQ
async def test_a_failing_watcher_is_shown_and_the_others_go_on(
    direct: Direct, rabbit: AbstractChannel, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG_PASSWORD", "hunter2")
    watch(direct.ledger, MessageQueueTrigger(RABBIT, queue="assetflow-test-none"), "none", "a")
    watch(direct.ledger, MessageQueueTrigger("amqp://guest:${WRONG_PASSWORD}@127.0.0.1", queue=name), "password", "b")
    watch(direct.ledger, MessageQueueTrigger("amqp://127.0.0.1:1", queue=name), "nobody", "c")
    watch(direct.ledger, MessageQueueTrigger(RABBIT, queue=name), "good", "d")
    async with watching(direct):
        await rabbit.default_exchange.publish(aio_pika.Message(b"{}"), routing_key=name)
        await until_async(lambda: len(updates(direct.ledger)) == 1)
        await until_async(lambda: sum(each.state == "failing" for each in direct.ledger.reader.watchers.all()) == 3)
    errors = {each.name: each.error for each in direct.ledger.reader.watchers.all()}
    assert "no queue 'assetflow-test-none'" in errors["none"]
    assert "refuses the user or the password" in errors["password"]
    assert "cannot be reached" in errors["nobody"]
    assert "hunter2" not in str(errors)


async def test_messages_of_sqs_stay_hidden_until_they_are_recorded(
    sqs: SqsServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assetflow.watching.kinds.sqs.LEAST_SECONDS_HIDDEN", 4)
    sqs.client.set_queue_attributes(QueueUrl=sqs.url(name), Attributes={"VisibilityTimeout": "4"})
    sqs.send(name, b"{}")
    async with open_sqs(MessageQueueTrigger(SQS, queue=name), SQS) as queue:
        (message,) = await queue.take()
        deadline = asyncio.get_running_loop().time() + 6
        while asyncio.get_running_loop().time() < deadline:
            found = await asyncio.to_thread(sqs.client.receive_message, QueueUrl=sqs.url(name), WaitTimeSeconds=1)
            assert not found.get("Messages")
    # What was not recorded can be seen at once by the next one.
    async with open_sqs(MessageQueueTrigger(SQS, queue=name), SQS) as queue:
        (again,) = await queue.take()
        assert (again.id, again.redelivered) == (message.id, True)
        await queue.acknowledge([])
        assert await queue.depth() == 0


@pytest.mark.rule("10.3")
async def test_a_ledger_in_trouble_does_not_let_sqs_count_deliveries(direct: Direct, sqs: SqsServer, name: str) -> None:
    sqs.create(f"{name}-dead")
    dead = sqs.client.get_queue_attributes(QueueUrl=sqs.url(f"{name}-dead"), AttributeNames=["QueueArn"])["Attributes"]
    policy = json.dumps({"deadLetterTargetArn": dead["QueueArn"], "maxReceiveCount": "1"})
    sqs.client.set_queue_attributes(QueueUrl=sqs.url(name), Attributes={"RedrivePolicy": policy})
    watch(direct.ledger, MessageQueueTrigger(SQS, queue=name))
    direct.away = 4
    sqs.send(name, b"{}")
    async with watching(direct):
        await until_async(lambda: len(updates(direct.ledger)) == 1, seconds=30)
    assert direct.away == 0
    assert direct.watcher.state == "watching"
    sqs.delete(f"{name}-dead")


@ON_REDIS
@pytest.mark.parametrize("written", ["json", "bytes"])
async def test_an_entry_that_was_trimmed_before_it_was_read_is_refused(
    direct: Direct, redis: Redis, name: str, written: Any
) -> None:
    await redis.xgroup_create(name, "assetflow", id="0", mkstream=True)
    for _ in range(3):
        await redis.xadd(name, {"order": "1"})
    await redis.xreadgroup("assetflow", "assetflow", cast(Any, {name: ">"}))
    await redis.xtrim(name, maxlen=0)
    await redis.xadd(name, {"order": "2"})
    watch(direct.ledger, MessageQueueTrigger(REDIS, stream=name, format=written))
    async with watching(direct):
        await until_async(lambda: len(updates(direct.ledger)) == 1)
    reasons = [each.reason for each in direct.ledger.reader.events.refused()]
    assert len(reasons) == 3
    assert "trimmed" in reasons[0]


@ONE_KIND
async def test_rule_10_2_messages_within_a_time_are_one_recording(direct: Direct, trigger: Any, send: Send) -> None:
    watch(direct.ledger, trigger(within=timedelta(minutes=1), batch=3))
    async with watching(direct):
        for number in range(3):
            await send({"number": str(number)}, f"m{number}")
        # A full batch waits for nothing.
        await until_async(lambda: len(updates(direct.ledger)) == 3)
    (recording,) = direct.ledger.reader.events.recordings()
    assert len(recording.events) == 3
