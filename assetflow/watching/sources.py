"""Open what watchers watch: find out the address, and connect with the library of its kind."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial

from assetflow.core.watchers.addresses import Address, Block, check_scheme, with_variables
from assetflow.core.watchers.triggers import AMQP, QUEUES, REDIS, FileTrigger, MessageQueueTrigger
from assetflow.errors import InvalidWatcher
from assetflow.watching.file_source import FileSource, wait_for
from assetflow.watching.folders import Folders
from assetflow.watching.kinds.files import local_folder, open_files
from assetflow.watching.kinds.rabbitmq import open_rabbitmq
from assetflow.watching.kinds.redis import open_redis
from assetflow.watching.message_source import message_source
from assetflow.watching.ports import Cursors, OpenQueue, Plan, Source

ReadBlock = Callable[[str], Awaitable[str]]

_QUEUES: Mapping[str, OpenQueue] = {**dict.fromkeys(AMQP, open_rabbitmq), **dict.fromkeys(REDIS, open_redis)}


class Sources:
    """Opens sources.

    Parameters:
        folders: listens to folders of this machine.
        read_block: returns the URL that a block of Prefect holds.
        now: returns the current time.
    """

    def __init__(self, folders: Folders, read_block: ReadBlock, now: Callable[[], datetime]) -> None:
        self._folders = folders
        self._read_block = read_block
        self._now = now

    @asynccontextmanager
    async def open(self, plan: Plan, cursors: Cursors) -> AsyncGenerator[Source]:
        """Open the source of a plan.

        Raises:
            WatchingFailed: it cannot be opened now.
            InvalidWatcher: its address cannot be used.
        """
        trigger = plan.watched[0].trigger
        if isinstance(trigger, MessageQueueTrigger):
            url = await self._url(trigger.url)
            opens = _QUEUES[check_scheme(url, _QUEUES, known=QUEUES)]
            async with opens(trigger, url) as queue, message_source(queue, plan.watched, cursors, self._now) as source:
                yield source
        elif isinstance(trigger, FileTrigger):
            path = with_variables(trigger.path, os.environ)
            known = await cursors.items(plan.watched[0].name)
            with self._folders.listening(local_folder(path)) as changed:
                wait = partial(wait_for, changed=changed)
                yield FileSource(open_files(trigger, path), plan.watched[0], known, self._now, wait)
        else:
            raise InvalidWatcher(f"a trigger of the kind {trigger.kind!r} cannot be watched", fix="Update assetflow")

    async def _url(self, address: Address) -> str:
        if isinstance(address, Block):
            return await self._read_block(address.name)
        return with_variables(address, os.environ)
