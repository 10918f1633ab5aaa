"""What watchers watch: messages of queues, and files.

>>> from assetflow import Asset, AssetWatcher, flow
>>> from assetflow.watchers import MessageQueueTrigger
>>> queue = MessageQueueTrigger("amqp://mq.internal", queue="orders")
>>> orders = Asset("s3://shop/orders", watchers=[AssetWatcher("orders-queue", queue)])
>>> @flow(schedule=orders)
... def report(triggering_asset_events): ...

Each message in the queue is an update of the asset, and starts the flow. Contract chapter 10.
"""

from assetflow.core.watchers.addresses import block
from assetflow.core.watchers.triggers import FileTrigger, MessageQueueTrigger, Trigger

__all__ = ["FileTrigger", "MessageQueueTrigger", "Trigger", "block"]
