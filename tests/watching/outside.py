"""What watchers watch, for tests: queues of the brokers of this machine, and a process that watches them here."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar, cast
from uuid import uuid4

from assetflow import Asset, AssetWatcher
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.triggers import Trigger
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.errors import LedgerLocked
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger import Ledger
from assetflow.ledger.records import EventFilter, WatcherRecord
from assetflow.watching.sources import Sources
from assetflow.watching.watching import Watching

P = ParamSpec("P")
T = TypeVar("T")

ORDERS = "s3://shop/orders"
RABBIT, REDIS = "amqp://127.0.0.1:5672/", "redis://127.0.0.1:6379/15"
# aiormq gives a message without an id one of its own; a blank id is none.
NO_ID = " "


def now() -> datetime:
    return datetime.now(UTC)


def deploy(ledger: Ledger, *watchers: AssetWatcher, uri: str = ORDERS, name: str = "report/test") -> Any:
    """Deploy a flow that is scheduled on a watched asset, and return the deployment's id."""
    declaration = FlowDeclaration(ConsumerOptions(to_schedule(Asset(uri, watchers=watchers))))
    deployment = uuid4()
    ledger.writer.consumers.deploy(name, deployment, None, declaration_to_text(declaration), False, False, now())
    return deployment


def watch(ledger: Ledger, trigger: Trigger, name: str = "w", uri: str = ORDERS) -> Any:
    return deploy(ledger, AssetWatcher(name, trigger), uri=uri, name=f"{name}/test")


def updates(ledger: Ledger) -> list[AssetEvent]:
    """Return all updates in the ledger, oldest first."""
    return sorted(ledger.reader.events.find(EventFilter(), limit=10_000), key=lambda each: each.sequence or 0)


class Direct(LedgerThread):
    """A ledger as the process that watches calls it, without a thread.

    Attributes:
        fails: the steps that fail once, as if the process ended there: "record", "recorded", "acknowledged".
        away: how many times the database is away when something is to be recorded.
        looks: how often the process has looked for changes of the watchers.
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(now=now)
        self.ledger = ledger
        self.fails: set[str] = set()
        self.away = 0
        self.looks = 0

    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        name = cast(Any, function).__name__
        self.looks += name == "latest_change"
        self._check(name)
        if name == "record" and self.away:
            self.away -= 1
            raise LedgerLocked("the database is away")
        done = function(*args, **kwargs)
        self._check(f"{name}ed")
        return done

    @property
    def watcher(self) -> WatcherRecord:
        """The first watcher, as the ledger shows it."""
        return self.ledger.reader.watchers.all()[0]

    def _check(self, step: str) -> None:
        if step in self.fails:
            self.fails.discard(step)
            raise OSError(f"the process ends here: {step}")


async def no_block(name: str) -> str:
    raise AssertionError(name)


@asynccontextmanager
async def watching(ledger: Direct) -> AsyncIterator[None]:
    """Run the watchers of a ledger in this process."""
    watching = asyncio.create_task(Watching(ledger, Sources(no_block, now).open).run())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
