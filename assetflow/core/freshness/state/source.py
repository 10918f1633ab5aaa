"""The source: the port through which the book reads what it does not remember. The ledger answers from its tables."""

# The methods here answer for an empty source.
# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from assetflow.core.freshness.graph import DataGraph, Resolve, TokensOf
from assetflow.core.freshness.records import FlowRecord, Item, ItemUpdate, Moment, Row, Run, Target, TargetRecord

if TYPE_CHECKING:
    from assetflow.core.freshness.state.policies import PolicyRecord
    from assetflow.core.freshness.state.targets import Backfill, BackfillItem


class FreshnessSource:
    """The state that was committed before the unit of work began. This base class is an empty source.

    Each method is one query by index, whose cost does not grow with what it leaves out.
    """

    def graph(self, resolve: Resolve, tokens_of: TokensOf) -> DataGraph:
        """Return the graph of all flows if one of them keeps its outputs up to date, and else an empty one.

        It is asked for once, and may be changed.
        """
        return DataGraph((), resolve, tokens_of)

    def whole_graph(self, resolve: Resolve, tokens_of: TokensOf) -> DataGraph:
        """Return the graph of all flows, because the first one is deployed that keeps its outputs up to date."""
        return DataGraph((), resolve, tokens_of)

    def track(self, makers: Mapping[str, Mapping[UUID, int]]) -> None:
        """Remember the updates of assets that were recorded while nothing compared them.

        Parameters:
            makers: the assets, each with its makers: their numbers by deployment.
        """

    def flow_record(self, consumer: int) -> FlowRecord | None:
        """Return since when a flow is as it is."""
        return None

    def newest(self, items: Collection[Item]) -> Iterable[ItemUpdate]:
        """Return the newest update of each of these items."""
        return ()

    def newest_of(self, uri: str, until: datetime | None = None) -> ItemUpdate | None:
        """Return the newest update of an asset, whatever its key; with `until`, that of an earlier instant."""
        return None

    def first_of(self, uri: str, since: Moment) -> ItemUpdate | None:
        """Return the first update of an asset since a moment, whatever its key."""
        return None

    def first(self, item: Item) -> ItemUpdate | None:
        """Return the first update of an item."""
        return None

    def as_of(self, item: Item, sequence: int) -> ItemUpdate | None:
        """Return the newest update of an item up to a place in the ledger."""
        return None

    def row(self, update: ItemUpdate) -> Row:
        """Return the row of an update."""
        return Row(update, None)

    def history(self, item: Item) -> Iterator[ItemUpdate]:
        """Yield the updates of an item, the newest first, read in pages."""
        return iter(())

    def of_asset(self, uri: str) -> Iterator[ItemUpdate]:
        """Yield the updates of an asset, whatever their keys, the newest first, read in pages."""
        return iter(())

    def keys(self, uri: str, most: int | None = None) -> Collection[str]:
        """Return the keys of an asset, the greatest first; with `most`, only that many."""
        return ()

    def count_keys(self, uri: str) -> int:
        """Return how many keys an asset has."""
        return 0

    def has_items(self, uri: str) -> bool:
        """Return True if an asset was ever updated."""
        return False

    def changed(self, uri: str, after: int) -> Iterable[Item]:
        """Return the items of an asset whose newest update came after a place in the ledger."""
        return ()

    def readings(self, target: Target, uri: str) -> Collection[str]:
        """Return the keys of an input that map to a target."""
        return ()

    def readings_of(self, consumer: int, keys: Collection[str]) -> Iterable[tuple[str, str, str]]:
        """Return the keys of inputs that map to some targets of a consumer: target key, URI of the input, and key."""
        return ()

    def target_keys(self, consumer: int, most: int | None = None) -> Collection[str]:
        """Return the target keys of a partitioned consumer, the greatest first; with `most`, only that many."""
        return ()

    def has_target(self, target: Target) -> bool:
        """Return True if a key is one of the target keys of a partitioned consumer."""
        return False

    def count_targets(self, consumer: int) -> int:
        """Return how many targets a partitioned consumer has."""
        return 0

    def records(self, targets: Collection[Target]) -> Iterable[tuple[Target, TargetRecord]]:
        """Return what is remembered of these targets."""
        return ()

    def with_verdict(self, verdict: str, consumer: int, most: int | None = None) -> Iterable[Target]:
        """Return the targets of a consumer of which this was said last; with `most`, only the greatest keys."""
        return ()

    def verdicts(self, consumer: int) -> Mapping[str, int]:
        """Return what was said last of the known targets of a consumer, unless that is nothing, with their number."""
        return {}

    def consumers_with(self, verdict: str) -> Iterable[int]:
        """Return the consumers that have targets of which this was said last."""
        return ()

    def due_targets(self, until: datetime, most: int | None = None) -> Iterable[Target]:
        """Return the targets to look at by a moment: the earliest first, and of one moment the greatest keys."""
        return ()

    def next_due_target(self) -> datetime | None:
        """Return when the next target has to be looked at."""
        return None

    def waiting(self, consumers: Collection[int]) -> Iterable[Target]:
        """Return the targets of these consumers that wait for others."""
        return ()

    def runs(self, consumers: Collection[int]) -> Iterable[Run]:
        """Return the runs of these consumers that go on, those of each in the order in which they began."""
        return ()

    def durations(self, consumer: int) -> Iterable[timedelta]:
        """Return how long the last 20 completed runs of a consumer took, the oldest first."""
        return ()

    def policy(self, uri: str) -> PolicyRecord | None:
        """Return what is remembered of the policy of an asset."""
        return None

    def policies(self) -> Iterable[tuple[str, PolicyRecord]]:
        """Return what is remembered of all policies, by URI."""
        return ()

    def due(self, until: datetime) -> Iterable[str]:
        """Return the assets whose makers are due up to a moment."""
        return ()

    def next_look(self) -> datetime | None:
        """Return the next instant at which a maker is due, or the state of a policy has to be judged."""
        return None

    def changing(self, until: datetime) -> Iterable[str]:
        """Return the assets whose policies may change up to a moment although nothing happens."""
        return ()

    def touched(self, until: datetime) -> Iterable[tuple[str, datetime]]:
        """Return the assets to which something happened up to a moment, each with the instant."""
        return ()

    def backfills(self) -> Iterable[Backfill]:
        """Return the backfills that go on, also those that were stopped, in order."""
        return ()

    def backfills_of(self, target: Target) -> Iterable[Backfill]:
        """Return the backfills of which a target is part, also those that are over."""
        return ()

    def step(self, backfill: int, target: Target) -> BackfillItem | None:
        """Return a target in a backfill."""
        return None

    def ready_steps(self, backfill: int) -> Iterator[BackfillItem]:
        """Yield the targets of a backfill that wait for nothing above them, in order, read in pages."""
        return iter(())

    def steps_below(self, backfill: int, places: Collection[int]) -> Iterable[BackfillItem]:
        """Return the targets of a backfill that wait directly for one of these places."""
        return ()

    def steps_of(self, backfill: int, consumer: int) -> Iterable[BackfillItem]:
        """Return the targets of a consumer in a backfill that wait or run."""
        return ()

    def steps_taken_off(self, backfill: int) -> Iterable[BackfillItem]:
        """Return the targets of a backfill that failed or were taken off."""
        return ()

    def run_of(self, flow_run: UUID) -> Run | None:
        """Return what is remembered of a flow run, also after its end."""
        return None

    def seen(self, update: ItemUpdate) -> datetime | None:
        """Return when an observation saw an update last."""
        return None
