"""Queues of Amazon SQS, by aiobotocore. Credentials are found, and renewed, as by every program of AWS.

A message that was received is hidden from others for a while; the while is extended until the message is recorded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from importlib import import_module
from math import ceil
from typing import Any, cast

from assetflow.core.values.addresses import sqs_region, without_user
from assetflow.core.values.triggers import MessageQueueTrigger
from assetflow.core.watchers.intake import Message
from assetflow.errors import WatchingFailed
from assetflow.watching.kinds import BrokerQueue, needing

# The most that SQS takes or gives in one request, and the longest that it waits for a message.
AT_ONCE = 10
SECONDS_TO_WAIT = 20
SECONDS_TO_CONNECT = 10
LEAST_SECONDS_HIDDEN = 30


class SqsQueue(BrokerQueue):
    """An open queue of SQS; see `BrokerQueue`.

    Parameters:
        client: a client of aiobotocore.
        arn: the queue's name in all of AWS; ids follow from it.
        hidden: for how many seconds a message that was received is hidden.
    """

    def __init__(self, client: Any, url: str, arn: str, hidden: int, batch: int) -> None:
        self.source = arn
        self.label = f"SQS {arn.rpartition(':')[2]}"
        self._client = client
        self._url = url
        self._hidden = hidden
        self._batch = batch
        self._received: list[dict[str, Any]] = []

    async def take(self, seconds: float = 0.0) -> Sequence[Message]:
        """Return what SQS has for us."""
        self._received = []
        while not await self._receive(SECONDS_TO_WAIT):
            pass
        end = time.monotonic() + seconds
        while len(self._received) < self._batch:
            left = max(0, ceil(end - time.monotonic()))
            if not await self._receive(min(SECONDS_TO_WAIT, left)) and time.monotonic() >= end:
                break
        return [_message(each) for each in self._received]

    async def acknowledge(self, refused: Collection[int]) -> None:  # noqa: ARG002  (SQS counts deliveries instead)
        """Delete the messages."""
        await self._for_each("delete_message_batch", {})
        self._received = []

    async def depth(self) -> int:
        """Return about how many messages wait."""
        return int((await attributes(self._client, self._url))["ApproximateNumberOfMessages"])

    async def keep_hidden(self) -> None:
        """Hide what is not recorded yet again and again, until cancelled."""
        while True:
            await asyncio.sleep(self._hidden / 2)
            with suppress(Exception):
                await self._hide(self._hidden)

    async def release(self) -> None:
        """Let others see what is not recorded."""
        with suppress(Exception):
            await self._hide(0)

    async def _receive(self, seconds: int) -> int:
        answer = await self._client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=min(AT_ONCE, self._batch - len(self._received)),
            WaitTimeSeconds=seconds,
            VisibilityTimeout=self._hidden,
            AttributeNames=["SentTimestamp", "ApproximateReceiveCount"],
        )
        found = answer.get("Messages", [])
        self._received += found
        return len(found)

    async def _hide(self, seconds: int) -> None:
        await self._for_each("change_message_visibility_batch", {"VisibilityTimeout": seconds})

    async def _for_each(self, operation: str, options: dict[str, object]) -> None:
        """Call an operation for all messages that were received."""
        for start in range(0, len(self._received), AT_ONCE):
            some = enumerate(self._received[start : start + AT_ONCE])
            entries = [{"Id": str(place), "ReceiptHandle": each["ReceiptHandle"], **options} for place, each in some]
            answer = await getattr(self._client, operation)(QueueUrl=self._url, Entries=entries)
            if failed := answer.get("Failed"):
                raise WatchingFailed(f"SQS did not do {operation}: {failed[0].get('Message')}", where=self.source)


def _message(received: dict[str, Any]) -> Message:
    told = received.get("Attributes", {})
    sent = datetime.fromtimestamp(int(told["SentTimestamp"]) / 1000, UTC) if "SentTimestamp" in told else None
    redelivered = int(told.get("ApproximateReceiveCount", 1)) > 1
    return Message(received["Body"].encode(), received["MessageId"], redelivered, sent)


async def attributes(client: Any, url: str) -> dict[str, str]:
    """Return what SQS tells of a queue."""
    names = ["QueueArn", "VisibilityTimeout", "ApproximateNumberOfMessages"]
    answer = await client.get_queue_attributes(QueueUrl=url, AttributeNames=names)
    return cast("dict[str, str]", answer["Attributes"])


@asynccontextmanager
async def open_sqs(trigger: MessageQueueTrigger, url: str) -> AsyncGenerator[SqsQueue]:
    """Open a queue of SQS.

    Raises:
        WatchingFailed: AWS does not answer, or refuses the credentials; there is no such queue; aiobotocore is missing.
    """
    with needing("aiobotocore", "sqs", without_user(url)):
        session = cast(Any, import_module("aiobotocore.session"))
        config = cast(Any, import_module("aiobotocore.config"))
        exceptions = cast(Any, import_module("botocore.exceptions"))
    region, account = sqs_region(url)
    owner = {"QueueOwnerAWSAccountId": account} if account else {}
    options = config.AioConfig(connect_timeout=SECONDS_TO_CONNECT, read_timeout=3 * SECONDS_TO_WAIT)
    try:
        made = session.get_session().create_client("sqs", region_name=region or None, config=options)
        async with made as client:
            queue_url = (await client.get_queue_url(QueueName=trigger.queue, **owner))["QueueUrl"]
            told = await attributes(client, queue_url)
            hidden = max(LEAST_SECONDS_HIDDEN, int(told["VisibilityTimeout"]))
            queue = SqsQueue(client, queue_url, told["QueueArn"], hidden, trigger.batch)
            hiding = asyncio.create_task(queue.keep_hidden())
            try:
                yield queue
            finally:
                hiding.cancel()
                await queue.release()
    except exceptions.ClientError as error:
        raise WatchingFailed(_told(error, trigger), where=url, fix="Correct the queue's name, or its policy") from error
    except exceptions.BotoCoreError as error:
        raise WatchingFailed(f"SQS cannot be used: {error}", where=url) from error


def _told(error: Any, trigger: MessageQueueTrigger) -> str:
    told = error.response.get("Error", {})
    if "NonExistentQueue" in str(told.get("Code")) or "QueueDoesNotExist" in str(told.get("Code")):
        return f"SQS has no queue {trigger.queue!r}"
    return f"SQS refuses {error.operation_name}: {told.get('Code')}: {told.get('Message')}"
