"""What watchers watch: messages of queues, files, tables, queries, and webhooks.

>>> from assetflow import Asset, AssetWatcher, flow
>>> from assetflow.watchers import MessageQueueTrigger
>>> queue = MessageQueueTrigger("amqp://mq.internal", queue="orders")
>>> orders = Asset("s3://shop/orders", watchers=[AssetWatcher("orders-queue", queue)])
>>> @flow(schedule=orders)
... def report(triggering_asset_events): ...

Each message in the queue is an update of the asset, and starts the flow. Contract chapter 10.
"""

from assetflow.core.values.addresses import block
from assetflow.core.values.table_triggers import DeltaTableTrigger, IcebergTableTrigger, SQLTrigger
from assetflow.core.values.triggers import FileTrigger, MessageQueueTrigger, Trigger
from assetflow.core.values.watchers import ClassTrigger, WebhookTrigger
from assetflow.core.watchers.intake import Message
from assetflow.core.watchers.table_changes import Change

__all__ = [
    "Change",
    "ClassTrigger",
    "DeltaTableTrigger",
    "FileTrigger",
    "IcebergTableTrigger",
    "Message",
    "MessageQueueTrigger",
    "SQLTrigger",
    "Trigger",
    "WebhookTrigger",
    "block",
]
