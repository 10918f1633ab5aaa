"""What reads the ledger, beside a writer at work and without ever changing anything."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from uuid import UUID

from sqlalchemy import Connection, Engine, select

from assetflow.core.book import Pending
from assetflow.core.events import AssetEvent, Recording
from assetflow.core.lineage import Edge as LineageEdge
from assetflow.core.lineage import Node
from assetflow.errors import LedgerError
from assetflow.ledger import backfills, lineage, news, notes, prune, queries, queued, schema, standby, timers
from assetflow.ledger.catalog import Catalog
from assetflow.ledger.catalog_events import EventCatalog
from assetflow.ledger.engine import default_place, ledger_url, open_engine, place_of
from assetflow.ledger.failures import explained
from assetflow.ledger.lease import Lease, read_lease
from assetflow.ledger.news import News, Seen
from assetflow.ledger.oldest import Oldest, oldest
from assetflow.ledger.overview import ConsumerOverview, overviews
from assetflow.ledger.queued import QueuedEvent
from assetflow.ledger.records import (
    Activity,
    AssetRecord,
    ConsumerRecord,
    DecisionRecord,
    DecisionStatus,
    Edge,
    EventQuery,
    KeyDecisions,
    ReceiptRecord,
    RefusedRecord,
    Status,
    TimerRecord,
)
from assetflow.ledger.standby import Evaluators
from assetflow.ledger.tables import CURSOR, LEDGER, RECEIPT


class Reader:
    """The reads of a ledger; thread safe. Each one sees what was committed when it was asked.

    All raise `LedgerError` when the ledger cannot be read.

    Attributes:
        place: the file or the address, as a person reads it.
    """

    def __init__(self, engine: Engine, place: str) -> None:
        self.place = place
        self._engine = engine

    @classmethod
    def open(cls, url_or_path: str | Path | None = None) -> Reader:
        """Open a ledger that is there, for reading only.

        Parameters:
            url_or_path: a file, or an SQLAlchemy URL; none for what the settings say.

        Raises:
            LedgerError: there is none, it is damaged, or of another version than this assetflow.
        """
        url = ledger_url(url_or_path if url_or_path is not None else default_place())
        place = place_of(url)
        if url.get_backend_name() == "sqlite" and not Path(place).exists():
            raise LedgerError("there is no ledger", where=place, fix="Start the evaluator once, it makes one")
        engine = open_engine(url, read_only=True)
        try:
            with explained(place), engine.connect() as connection:
                schema.check(connection, place=place)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, place)

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _reads(self) -> Generator[Connection]:
        with explained(self.place), self._engine.connect() as connection:
            yield connection

    # The ledger

    @cached_property
    def catalog(self) -> Catalog:
        """Pages of assets, aliases, queues and partitions."""
        return Catalog(self._reads)

    @cached_property
    def event_catalog(self) -> EventCatalog:
        """Pages of events by where they came from."""
        return EventCatalog(self._reads)

    @cached_property
    def id(self) -> UUID:
        """The ledger's own id."""
        with self._reads() as connection:
            return connection.execute(select(LEDGER.c.id)).scalar_one()

    @cached_property
    def created(self) -> datetime:
        """When the ledger was made."""
        with self._reads() as connection:
            return connection.execute(select(LEDGER.c.created)).scalar_one()

    def prefect_api_url(self) -> str | None:
        """The Prefect API that the ledger belongs to, once an evaluator has said so."""
        with self._reads() as connection:
            return connection.scalar(select(LEDGER.c.prefect_api_url))

    def cursor(self, name: str) -> object:
        """How far something outside has been read; none if that was never kept."""
        with self._reads() as connection:
            return connection.scalar(select(CURSOR.c.value).where(CURSOR.c.name == name))

    def lease(self) -> Lease | None:
        """Who evaluates, or did last."""
        with self._reads() as connection:
            return read_lease(connection)

    def evaluators(self) -> Evaluators:
        """Who evaluates, whether it lives, and who stands by to take over."""
        with self._reads() as connection:
            return standby.evaluators(connection)

    def status(self) -> Status:
        """The ledger in numbers."""
        with self._reads() as connection:
            return queries.status(connection)

    def prunable(self, before: datetime) -> prune.Pruned:
        """How much is older than a time and not needed any more."""
        with self._reads() as connection:
            return prune.prunable(connection, before)

    def needed_recordings(self, recordings: Iterable[UUID], before: datetime) -> set[UUID]:
        """Those of these recordings that the ledger has and that are not old, or still needed."""
        with self._reads() as connection:
            return prune.needed_recordings(connection, recordings, before)

    def open_decisions(self, decisions: Iterable[UUID], before: datetime) -> set[UUID]:
        """Those of these decisions that are not old, or whose run has not ended."""
        with self._reads() as connection:
            return prune.open_decisions(connection, decisions, before)

    def runs_that_are_over(self, flow_runs: Iterable[UUID], before: datetime) -> set[UUID]:
        """Those of these flow runs that are of an old decision and have ended."""
        with self._reads() as connection:
            return prune.runs_that_are_over(connection, flow_runs, before)

    # Assets and events

    def assets(self) -> list[AssetRecord]:
        """All assets, by URI."""
        with self._reads() as connection:
            return queries.assets(connection)

    def owner_of(self, name: str) -> str | None:
        """The URI that a name belongs to (1.2)."""
        with self._reads() as connection:
            return queries.owner_of(connection, name)

    def events(
        self,
        where: EventQuery | None = None,
        *,
        newest_first: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[AssetEvent]:
        """Events by sequence. `newest_first=True, limit=1` reads one row.

        To page on, give the next sequence as `from_sequence` or `to_sequence` of the query.
        """
        with self._reads() as connection:
            return queries.events(connection, where or EventQuery(), newest_first, limit, offset)

    def recordings(self) -> list[Recording]:
        """All recordings in ledger order, with their events: what the fold starts from."""
        with self._reads() as connection:
            return queries.recordings(connection)

    def count_events(self, where: EventQuery | None = None) -> int:
        """How many events there are."""
        with self._reads() as connection:
            return queries.count_events(connection, where or EventQuery())

    def activity(self) -> Mapping[str, Activity]:
        """How often and when last each asset that has events was updated, by URI."""
        with self._reads() as connection:
            return queries.activity(connection)

    def newest(self) -> Seen:
        """What somebody has seen who has seen all that is there."""
        with self._reads() as connection:
            return news.newest(connection)

    def news(self, seen: Seen, *, limit: int = 100) -> News:
        """What came after that: assets, events and decisions, each in the order in which they came."""
        with self._reads() as connection:
            return news.news(connection, seen, limit)

    def event(self, event_id: UUID) -> AssetEvent | None:
        """The event with this id."""
        with self._reads() as connection:
            return queries.event(connection, event_id)

    def known_events(self, ids: Iterable[UUID]) -> set[UUID]:
        """Those of these ids that are recorded or refused."""
        with self._reads() as connection:
            return queries.known_events(connection, ids)

    def newest_sequences(self, uris: Iterable[str]) -> Mapping[str, int]:
        """The sequence of the newest event of each of these assets that has one (8)."""
        with self._reads() as connection:
            return queries.newest_sequences(connection, uris)

    def receipts(self, event_id: UUID, *, limit: int | None = None, offset: int = 0) -> list[ReceiptRecord]:
        """What became of an event, for each consumer."""
        with self._reads() as connection:
            return queries.receipts(connection, event_id, limit, offset)

    def refused(self, *, limit: int = 100) -> list[RefusedRecord]:
        """What was refused as an event, newest first."""
        with self._reads() as connection:
            return queries.refused(connection, limit)

    # Consumers

    def consumers(self, *, removed: bool = False) -> list[ConsumerRecord]:
        """The consumers by id, or those that were removed."""
        with self._reads() as connection:
            return queries.consumers(connection, removed)

    def consumer(self, name: str) -> ConsumerRecord | None:
        """The consumer with this name, `flow/deployment`."""
        with self._reads() as connection:
            return queries.consumer(connection, name)

    def consumers_page(
        self, *, after: int = 0, limit: int = 100, search: str = "", paused: bool | None = None
    ) -> list[ConsumerRecord]:
        """Consumers by id, from the first one behind `after` on; `search` is a part of the name."""
        with self._reads() as connection:
            return queries.consumers_page(connection, after, limit, search, paused)

    def consumer_numbered(self, number: int) -> ConsumerRecord | None:
        """The consumer with this id."""
        with self._reads() as connection:
            return queries.consumer_numbered(connection, number)

    def overviews(self, records: Sequence[ConsumerRecord]) -> list[ConsumerOverview]:
        """What a list says about consumers."""
        return overviews(self._reads, records)

    def queue(self, consumer: int, target_key: str | None = None, *, limit: int | None = None) -> list[AssetEvent]:
        """What is queued for a consumer and key, oldest first."""
        with self._reads() as connection:
            return queued.queue(connection, consumer, target_key, limit)

    def oldest_queued(self, consumer: int, target_key: str | None, *, most: int) -> Oldest:
        """What is queued for a consumer and key; of more than `most` events those that an explanation needs."""
        with self._reads() as connection:
            counted = queued.counts(connection, consumer, target_key)
            return oldest(connection, queued.in_queue(consumer, target_key), most, counted)

    def queued(
        self, consumer: int | None = None, *, uri: str | None = None, event_id: UUID | None = None
    ) -> list[QueuedEvent]:
        """What is queued for a consumer, of an asset, or as one event; by consumer, key and age."""
        with self._reads() as connection:
            return queued.queued(connection, consumer, uri, event_id)

    def pending(self, consumer: int) -> Mapping[str | None, Pending]:
        """The queues of a consumer in short: target key (none for the plain queue) to URI to the events' keys."""
        with self._reads() as connection:
            return queued.pending(connection, consumer)

    def pending_keys(self, consumer: int, *, after: str = "", limit: int = 100) -> list[str]:
        """The target keys for which something is queued, as texts are ordered, from the first one behind `after` on."""
        with self._reads() as connection:
            return queued.pending_keys(connection, consumer, after, limit)

    def queue_size(self, consumer: int) -> tuple[int, int]:
        """How many target keys of a consumer have something queued, and how many events these are."""
        with self._reads() as connection:
            return queued.queue_size(connection, consumer)

    def queue_sizes(self) -> Mapping[int, int]:
        """How many events are queued, for each consumer that has any."""
        with self._reads() as connection:
            return queued.queue_sizes(connection)

    def edges_of(self, nodes: Collection[Node]) -> list[LineageEdge]:
        """The edges of the lineage graph that touch one of these nodes."""
        with self._reads() as connection:
            return lineage.edges_of(connection, nodes)

    def edges(self) -> list[Edge]:
        """What deployments produce and read."""
        with self._reads() as connection:
            return queries.edges(connection)

    def consumers_with_times(self) -> list[ConsumerRecord]:
        """The consumers that the clock starts, by id (6.1)."""
        with self._reads() as connection:
            return timers.with_times(connection)

    def timers(self) -> list[TimerRecord]:
        """How far the times of consumers have come; timers of consumers that were removed since are among them."""
        with self._reads() as connection:
            return timers.kept(connection)

    # Decisions

    def decisions(
        self,
        *,
        consumer: int | None = None,
        status: DecisionStatus | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[DecisionRecord]:
        """Decisions, newest first; to page on, give the last one's number as `before`."""
        with self._reads() as connection:
            return queries.decisions(connection, consumer, status, before, limit)

    def decision(self, decision_id: UUID) -> DecisionRecord | None:
        """The decision with this id."""
        with self._reads() as connection:
            return queries.decision(connection, decision_id)

    def decisions_with(self, ids: Iterable[UUID]) -> list[DecisionRecord]:
        """The decisions with these ids."""
        with self._reads() as connection:
            return queries.decisions_with(connection, ids)

    def decision_of_run(self, flow_run_id: UUID) -> DecisionRecord | None:
        """The decision that led to a flow run."""
        with self._reads() as connection:
            return queries.decision_of_run(connection, flow_run_id)

    def undeliverable(
        self, consumer: int | None = None, *, uri: str | None = None, event_id: UUID | None = None
    ) -> list[UUID]:
        """The undeliverable decisions of a consumer, or those that consumed events of an asset or one event."""
        with self._reads() as connection:
            return queued.undeliverable(connection, consumer, uri, event_id)

    def decisions_by_key(self, consumer: int) -> Mapping[str, KeyDecisions]:
        """The target keys of a consumer for which decisions were made, in the order of the latest ones."""
        with self._reads() as connection:
            return backfills.decisions_by_key(connection, consumer)

    def keys_of(self, uri: str) -> set[str]:
        """The partition keys with which an asset was updated."""
        with self._reads() as connection:
            return backfills.keys_of(connection, uri)

    def undelivered(
        self, *, limit: int = 100, besides: Collection[int] = ()
    ) -> list[tuple[DecisionRecord, tuple[AssetEvent, ...]]]:
        """The decisions that wait for their run, oldest first, with the events that they consumed.

        Parameters:
            besides: consumers, by their ids, whose decisions are left out.
        """
        with self._reads() as connection:
            found = queries.in_progress(connection, "waiting", limit, besides)
            events = queries.events_of(connection, [each.number for each in found])
            return [(each, events[each.number]) for each in found]

    def running(self, *, limit: int | None = None) -> list[DecisionRecord]:
        """The decisions whose run has started and not ended, oldest first."""
        with self._reads() as connection:
            return queries.in_progress(connection, "launched", limit)

    def without_note(self, *, limit: int = 100) -> list[DecisionRecord]:
        """The decisions whose run has no note yet that says why it ran, oldest first."""
        with self._reads() as connection:
            return notes.without_note(connection, limit)

    def oldest_consumed(self, decision: DecisionRecord, *, most: int) -> Oldest:
        """The events that a decision consumed; of more than `most` those that an explanation needs."""
        with self._reads() as connection:
            return oldest(connection, RECEIPT.c.decision == decision.number, most)

    def events_of(self, decisions: Sequence[DecisionRecord]) -> dict[UUID, tuple[AssetEvent, ...]]:
        """The events that decisions consumed, oldest first, by the decisions' ids."""
        with self._reads() as connection:
            events = queries.events_of(connection, [each.number for each in decisions])
            return {each.id: events[each.number] for each in decisions}
