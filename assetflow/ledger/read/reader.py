"""The reads of a ledger, topic by topic; watchers are one of them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import cached_property
from importlib import import_module
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from sqlalchemy import Connection, Engine, Select, exists, func, literal_column, select

from assetflow.core.values.assets import Asset
from assetflow.core.values.watchers import WebhookTrigger, stored_trigger
from assetflow.core.watchers.intake import Note
from assetflow.core.wire.declarations import node_from_json
from assetflow.core.wire.deployments import CURSOR as REFUSED_DEPLOYMENTS
from assetflow.core.wire.deployments import NOTES, RefusedDeployment
from assetflow.errors import LedgerMissing
from assetflow.ledger import lease, schema
from assetflow.ledger.lease import Evaluators, Lease, Role, clock, is_held, read_lease
from assetflow.ledger.read import Topic
from assetflow.ledger.records import NO_WATCHERS, LedgerCounts, WatcherRecord, WatchingStatus
from assetflow.ledger.sql.bulk import text_at
from assetflow.ledger.sql.engine import default_place, ledger_url, open_engine, place_of
from assetflow.ledger.sql.failures import explained
from assetflow.ledger.sql.tables import (
    ASSET,
    CONSUMER,
    CURSOR,
    DECISION,
    ENDED_SESSION,
    LEDGER,
    NOTED_MESSAGE,
    REFUSED,
    WATCHED_ASSET,
    WATCHER,
    WATCHER_ITEM,
)

if TYPE_CHECKING:
    from assetflow.ledger.read.assets import AssetReader
    from assetflow.ledger.read.backfills import BackfillReader
    from assetflow.ledger.read.comparing import CompareReader
    from assetflow.ledger.read.consumers import ConsumerReader, DeadlineReader
    from assetflow.ledger.read.decisions import DecisionReader
    from assetflow.ledger.read.events import CheckReader, EventReader, FeedReader, ReceiptReader
    from assetflow.ledger.read.explanations import WhatIfReader
    from assetflow.ledger.read.freshness import FreshnessReader, PolicyReader
    from assetflow.ledger.read.graph import GraphReader, LineageReader
    from assetflow.ledger.read.partitions import PartitionReader, States
    from assetflow.ledger.read.pruning import EndedRunReader, PruningReader
    from assetflow.ledger.read.queues import PastReader, QueueReader
    from assetflow.ledger.read.tracing import TraceReader


_ASSETS = select(WATCHED_ASSET.c.watcher, WATCHED_ASSET.c.uri, WATCHED_ASSET.c.asset).order_by(
    WATCHED_ASSET.c.watcher, WATCHED_ASSET.c.uri, WATCHED_ASSET.c.deployment_id
)
# Webhooks are received by the server.
_IS_LOOKED_AFTER = (WATCHER.c.paused.is_(False), text_at(WATCHER.c.trigger, "kind") != WebhookTrigger.kind)
_IS_FAILING = WATCHER.c.state == "failing"
_LOOKED_AFTER = select(func.count(), func.count().filter(_IS_FAILING)).where(*_IS_LOOKED_AFTER)
_FAILING = select(WATCHER.c.name, WATCHER.c.error).where(*_IS_LOOKED_AFTER, _IS_FAILING).order_by(WATCHER.c.name)


class WatcherReader(Topic):
    """Reads watchers."""

    def all(self) -> list[WatcherRecord]:
        """Return all watchers that deployments declare, by name."""
        return self._read(select(WATCHER), _ASSETS)

    def any(self) -> bool:
        """Return True if a deployment declares a watcher."""
        return bool(self._scalar(select(exists(select(WATCHER.c.name)))))

    def failing(self) -> list[WatcherRecord]:
        """Return the watchers whose last look failed and that are not paused, by name."""
        fails = (WATCHER.c.error != "", WATCHER.c.paused.is_(False))
        names = select(WATCHER.c.name).where(*fails)
        return self._read(select(WATCHER).where(*fails), _ASSETS.where(WATCHED_ASSET.c.watcher.in_(names)))

    def of_asset(self, uri: str) -> list[WatcherRecord]:
        """Return the watchers of an asset, by name, each with this asset alone."""
        names = select(WATCHED_ASSET.c.watcher).where(WATCHED_ASSET.c.uri == uri)
        return self._read(select(WATCHER).where(WATCHER.c.name.in_(names)), _ASSETS.where(WATCHED_ASSET.c.uri == uri))

    def status(self) -> WatchingStatus:
        """Return how many watchers a process has to run, which of them fail, and whether it runs."""
        with self._connect() as connection:
            watchers, failing = connection.execute(_LOOKED_AFTER).one()
            if not watchers:
                return NO_WATCHERS
            reasons = dict(connection.execute(_FAILING).tuples().all()) if failing else {}
            lease = read_lease(connection, Role.WATCHERS)
            alive = lease is not None and is_held(connection, lease, clock(connection), gethostname())
        return WatchingStatus(watchers, reasons, alive, None if lease is None else lease.renewed)

    def latest_change(self) -> tuple[int, object]:
        """Return a value that changes when a watcher is declared, dropped, paused or resumed."""
        count, changed = self._rows(select(func.count(), func.max(WATCHER.c.changed)))[0]
        return count, changed

    def begun(self, watcher: str) -> bool:
        """Return True if a watcher has looked, so that what comes from now on is new. Contract 10.4."""
        return bool(self._scalar(select(WATCHER.c.begun).where(WATCHER.c.name == watcher)))

    def items(self, watcher: str) -> dict[str, object]:
        """Return the items of a watcher's cursor, by name. Contract 10.4."""
        query = select(WATCHER_ITEM.c.item, WATCHER_ITEM.c.value).where(WATCHER_ITEM.c.watcher == watcher)
        return dict(self._rows(query))

    def notes(self, source: str) -> list[Note]:
        """Return the messages of a source that are noted. Contract 10.3."""
        query = select(NOTED_MESSAGE.c.token, NOTED_MESSAGE.c.digest).where(NOTED_MESSAGE.c.source == source)
        return [Note(token, digest) for token, digest in self._rows(query)]

    def _read(self, watchers: Select[Any], watched: Select[Any]) -> list[WatcherRecord]:
        """Return these watchers, by name, each with those of the watched assets that are its own."""
        with self._connect() as connection:
            rows = connection.execute(watchers.order_by(WATCHER.c.name)).mappings().all()
            declared = connection.execute(watched).all()
        assets: dict[str, dict[str, Asset]] = {}
        for watcher, uri, written in declared:
            asset = node_from_json(written)
            if isinstance(asset, Asset):
                assets.setdefault(watcher, {}).setdefault(uri, asset)
        return [
            WatcherRecord(
                name=row["name"],
                trigger=stored_trigger(row["trigger"]),
                assets=tuple(assets.get(row["name"], {}).values()),
                begun=row["begun"],
                paused=row["paused"],
                state="paused" if row["paused"] else row["state"],
                error=row["error"],
                since=row["since"],
                last_update=row["last_update"],
                updates=row["updates"],
                filtered=row["filtered"],
                refused=row["refused"],
                lag=row["lag"],
            )
            for row in rows
        ]


# The module and the class of each topic. A command imports those of the topics that it reads.
_TOPICS = {
    "events": ("events", "EventReader"),
    "receipts": ("events", "ReceiptReader"),
    "assets": ("assets", "AssetReader"),
    "partitions": ("partitions", "PartitionReader"),
    "consumers": ("consumers", "ConsumerReader"),
    "queues": ("queues", "QueueReader"),
    "decisions": ("decisions", "DecisionReader"),
    "ended_runs": ("pruning", "EndedRunReader"),
    "checks": ("events", "CheckReader"),
    "deadlines": ("consumers", "DeadlineReader"),
    "policies": ("freshness", "PolicyReader"),
    "backfills": ("backfills", "BackfillReader"),
    "lineage": ("graph", "LineageReader"),
    "graph": ("graph", "GraphReader"),
    "freshness": ("freshness", "FreshnessReader"),
    "feed": ("events", "FeedReader"),
    "watchers": ("reader", "WatcherReader"),
    "pruning": ("pruning", "PruningReader"),
    "what_if": ("explanations", "WhatIfReader"),
    "past": ("queues", "PastReader"),
    "comparing": ("comparing", "CompareReader"),
    "tracing": ("tracing", "TraceReader"),
}

# The topics that open states.
_WITH_STATES = frozenset({"backfills", "comparing", "freshness", "what_if"})


class Reader(Topic, AbstractContextManager["Reader"]):
    """The reads of a ledger; thread safe. Each read sees what is committed when it begins.

    All reads raise `LedgerError` if the ledger cannot be read.

    Attributes:
        place: the file or the address of the ledger, for people to read.
        events, receipts, assets, partitions, consumers, queues, decisions, ended_runs, checks, deadlines, policies,
            freshness, backfills, lineage, graph, watchers: the reads about each of these.
        feed: new assets, events, decisions and missed deadlines from a position on.
        pruning: what is old and no longer needed.
        past: what was queued at a moment of the past.
        comparing: what a deploy would change.
        tracing: what updates and runs have led to.
        what_if: what would happen, if an update came or a consumer were resumed.
    """

    events: EventReader
    receipts: ReceiptReader
    assets: AssetReader
    partitions: PartitionReader
    consumers: ConsumerReader
    queues: QueueReader
    decisions: DecisionReader
    ended_runs: EndedRunReader
    checks: CheckReader
    deadlines: DeadlineReader
    policies: PolicyReader
    backfills: BackfillReader
    lineage: LineageReader
    graph: GraphReader
    freshness: FreshnessReader
    feed: FeedReader
    watchers: WatcherReader
    pruning: PruningReader
    what_if: WhatIfReader
    past: PastReader
    comparing: CompareReader
    tracing: TraceReader

    def __init__(self, engine: Engine, place: str) -> None:
        super().__init__(self._open_connection)
        self.place = place
        self._engine = engine

    def __getattr__(self, name: str) -> object:
        if name not in _TOPICS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        module, topic = _TOPICS[name]
        given = self._states if name in _WITH_STATES else self._connect
        found: object = getattr(import_module(f"assetflow.ledger.read.{module}"), topic)(given)
        setattr(self, name, found)
        return found

    @classmethod
    def open(cls, url_or_path: str | Path | None = None) -> Reader:
        """Open an existing ledger for reading only.

        Parameters:
            url_or_path: a file or an SQLAlchemy URL; by default the ledger of the settings.

        Raises:
            LedgerError: the ledger does not exist, is damaged, or has another version than this program needs.
        """
        url = ledger_url(url_or_path if url_or_path is not None else default_place())
        place = place_of(url)
        if url.get_backend_name() == "sqlite" and not Path(place).exists():
            raise LedgerMissing(
                "there is no ledger", where=place, fix="`assetflow dev` or `assetflow evaluator start` makes one"
            )
        engine = open_engine(url, read_only=True)
        try:
            with explained(place), engine.connect() as connection:
                schema.check(connection, place=place)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, place)

    def close(self) -> None:
        """Close all connections to the database."""
        self._engine.dispose()

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _states(self) -> States:
        from assetflow.ledger.read.partitions import States

        return States(self._connect)

    @contextmanager
    def _open_connection(self) -> Generator[Connection]:
        with explained(self.place), self._engine.connect() as connection:
            yield connection

    @cached_property
    def id(self) -> UUID:
        """The ledger's own id."""
        return self._scalar(select(LEDGER.c.id))

    @cached_property
    def created(self) -> datetime:
        """When the ledger was made."""
        return self._scalar(select(LEDGER.c.created))

    def prefect_api_url(self) -> str | None:
        """Return the address of the Prefect API that the ledger belongs to; `None` until an evaluator has set it."""
        return self._scalar(select(LEDGER.c.prefect_api_url))

    def status(self) -> LedgerCounts:
        """Return the ledger in numbers."""
        consumers = select(func.count()).select_from(CONSUMER).where(CONSUMER.c.removed_at.is_(None), CONSUMER.c.listed)
        undeliverable = select(func.count()).where(DECISION.c.status == literal_column("'undeliverable'"))
        in_progress = select(DECISION.c.status, func.count(), func.min(DECISION.c.made)).where(
            DECISION.c.ended.is_(None)
        )
        with self._connect() as connection:
            last_event, last_decision = connection.execute(select(LEDGER.c.last_event, LEDGER.c.last_decision)).one()
            rows = connection.execute(in_progress.group_by(DECISION.c.status))
            found = {status: (number, made) for status, number, made in rows}
            waiting, oldest = found.get("waiting", (0, None))
            return LedgerCounts(
                assets=connection.execute(select(func.count()).select_from(ASSET)).scalar_one(),
                consumers=connection.execute(consumers).scalar_one(),
                last_event=last_event,
                last_decision=last_decision,
                waiting=waiting,
                running=found.get("launched", (0, None))[0],
                undeliverable=connection.execute(undeliverable).scalar_one(),
                refused=connection.execute(select(func.count()).select_from(REFUSED)).scalar_one(),
                oldest_waiting=oldest,
            )

    def cursor(self, name: str) -> object:
        """Return what `Writer.set_cursor` stored under this name, or `None`."""
        return self._scalar(select(CURSOR.c.value).where(CURSOR.c.name == name))

    def moment(self, name: str) -> datetime | None:
        """Return the time that is stored under this name as a text, or `None`."""
        kept = self.cursor(name)
        return None if kept is None else datetime.fromisoformat(str(kept))

    def refused_deployments(self) -> list[RefusedDeployment]:
        """Return the deployments that the evaluator refused when it last looked, by name (contract 8.1)."""
        kept = cast("list[dict[str, Any]]", self.cursor(REFUSED_DEPLOYMENTS) or [])
        return [RefusedDeployment.from_row(each) for each in kept]

    def refused_deployment(self, deployment_id: UUID) -> RefusedDeployment | None:
        """Return a deployment if the evaluator refused it when it last looked."""
        return next((each for each in self.refused_deployments() if each.deployment_id == deployment_id), None)

    def notes(self) -> dict[str, str]:
        """Return what the evaluator noted of deployments when it last looked, by name."""
        return cast("dict[str, str]", self.cursor(NOTES) or {})

    def is_session_ended(self, session: str) -> bool:
        """Return True if this session of the pages was ended by logging out."""
        return self._scalar(select(ENDED_SESSION.c.session).where(ENDED_SESSION.c.session == session)) is not None

    def lease(self) -> Lease | None:
        """Return the lease of the evaluator that is running, or ran last; `None` after an orderly stop."""
        with self._connect() as connection:
            return read_lease(connection)

    def evaluators(self) -> Evaluators:
        """Return which evaluator has the lease, whether it is alive, and which ones stand by."""
        with self._connect() as connection:
            return lease.evaluators(connection)
