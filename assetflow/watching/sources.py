"""Open what watchers watch: find out the address, and connect with the library of its kind."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import cast

from assetflow.core.values.addresses import (
    KAFKA,
    KNOWN,
    RABBITMQ,
    REDIS,
    SQS,
    Address,
    PrefectBlock,
    check_scheme,
    with_variables,
)
from assetflow.core.values.table_triggers import DeltaTableTrigger, IcebergTableTrigger, SQLTrigger
from assetflow.core.values.triggers import FileTrigger, MessageQueueTrigger, Schemes, check_stays, other_kinds
from assetflow.core.values.watchers import ClassTrigger, UnreadableTrigger
from assetflow.core.watchers.table_changes import CURSOR
from assetflow.errors import InvalidWatcher, WatchingFailed
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.watching.class_source import class_source
from assetflow.watching.kinds.files import open_files
from assetflow.watching.kinds.kafka import open_kafka
from assetflow.watching.kinds.rabbitmq import open_rabbitmq
from assetflow.watching.kinds.redis import open_redis
from assetflow.watching.kinds.sql import SQLQuery
from assetflow.watching.kinds.sqs import open_sqs
from assetflow.watching.kinds.tables import DeltaLog, IcebergTable
from assetflow.watching.looks import Looks, listening
from assetflow.watching.message_source import OpenQueue, message_source
from assetflow.watching.polled_source import FileSource, Polled, PolledSource
from assetflow.watching.watching import WatchedSource, WatchPlan

ReadBlock = Callable[[str], Awaitable[str]]

_QUEUES: Mapping[str, OpenQueue] = {
    **dict.fromkeys(RABBITMQ.schemes, open_rabbitmq),
    **dict.fromkeys(REDIS.schemes, open_redis),
    **dict.fromkeys(SQS.schemes, open_sqs),
    **dict.fromkeys(KAFKA.schemes, open_kafka),
}


class Sources:
    """Opens sources.

    Parameters:
        read_block: returns the URL that a block of Prefect holds.
        now: returns the current time.
    """

    def __init__(self, read_block: ReadBlock, now: Callable[[], datetime]) -> None:
        self._read_block = read_block
        self._now = now
        # A look that does not come back outlives what has been opened for it.
        self._looks: dict[tuple[str, str], Looks] = defaultdict(Looks)

    @asynccontextmanager
    async def open(self, plan: WatchPlan, ledger: LedgerThread) -> AsyncGenerator[WatchedSource]:
        """Open the source of a plan.

        Raises:
            WatchingFailed: it cannot be opened now.
            InvalidWatcher: its address cannot be used.
        """
        trigger = plan.watched[0].trigger
        looks = self._looks_of(plan)
        if isinstance(trigger, MessageQueueTrigger):
            url = await self._url(trigger.url)
            opens = _opens(check_scheme(url, Schemes(), known=KNOWN))
            # Watchers of one queue share its messages.
            trigger = replace(
                trigger, batch=min(cast(MessageQueueTrigger, each.trigger).batch for each in plan.watched)
            )
            async with opens(trigger, url) as queue, message_source(queue, plan.watched, ledger, self._now) as source:
                yield source
        elif isinstance(trigger, FileTrigger):
            path = with_variables(trigger.path, os.environ)
            check_stays(path)
            # The watcher may have begun since it was planned.
            watched = replace(
                plan.watched[0], begun=await ledger.call(ledger.reader.watchers.begun, plan.watched[0].name)
            )
            known = await ledger.call(ledger.reader.watchers.items, watched.name)
            files = await looks.take(partial(open_files, trigger, path))
            async with listening() as listener:
                source = FileSource(files, looks, watched, known, self._now, listener)
                await source.first_look()
                yield source
        elif isinstance(trigger, DeltaTableTrigger):
            table = await looks.take(partial(DeltaLog, trigger, with_variables(trigger.uri, os.environ)))
            yield await self._polled(table, plan, ledger)
        elif isinstance(trigger, IcebergTableTrigger):
            catalog = await looks.take(partial(IcebergTable, trigger))
            yield await self._polled(catalog, plan, ledger)
        elif isinstance(trigger, SQLTrigger):
            query = SQLQuery(trigger, await self._url(trigger.url))
            yield await self._polled(query, plan, ledger)
        elif isinstance(trigger, ClassTrigger):
            async with class_source(plan.watched[0], ledger, self._now) as source:
                yield source
        elif isinstance(trigger, UnreadableTrigger):
            raise trigger.error
        else:
            raise InvalidWatcher(f"a trigger of the kind {trigger.kind!r} cannot be watched", fix="Update assetflow")

    def _looks_of(self, plan: WatchPlan) -> Looks:
        return self._looks[plan.key, plan.watched[0].trigger.place]

    async def _polled(self, polled: Polled, plan: WatchPlan, ledger: LedgerThread) -> PolledSource:
        (watched,) = plan.watched
        cursor = (await ledger.call(ledger.reader.watchers.items, watched.name)).get(CURSOR)
        source = PolledSource(polled, self._looks_of(plan), watched, cursor, self._now)
        await source.first_look()
        return source

    async def _url(self, address: Address) -> str:
        if isinstance(address, PrefectBlock):
            return await self._read_block(address.name)
        return with_variables(address, os.environ)


def _opens(scheme: str) -> OpenQueue:
    """Return what opens the queues of a scheme.

    Raises:
        WatchingFailed: the package that brings it cannot be imported.
    """
    if scheme in _QUEUES:
        return _QUEUES[scheme]
    try:
        return cast(OpenQueue, other_kinds()[scheme].load())
    except (ImportError, AttributeError) as error:
        raise WatchingFailed(
            f"{other_kinds()[scheme].value}, which opens {scheme}://, cannot be imported: {error}",
            fix="Install its package again in the environment of `assetflow watcher`",
        ) from error
