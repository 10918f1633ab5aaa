"""The data time of updates and assets: up to when they hold all data (contract 8.12)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from uuid import UUID

from assetflow.core.freshness.graph import work_out
from assetflow.core.freshness.reads import items_then
from assetflow.core.freshness.records import Item, ItemUpdate, VersionRun
from assetflow.core.freshness.state.state import FreshnessState, Updates
from assetflow.core.partitions import LastMapper
from assetflow.core.values.freshness_policy import CURRENT, DataTime, least


class PastUpdates:
    """The updates up to an instant. Where nothing came later, each read is that of the updates themselves.

    Parameters:
        at: the last instant that counts.
    """

    def __init__(self, updates: Updates, at: datetime) -> None:
        self._updates = updates
        self._at = at

    def newest(self, item: Item) -> ItemUpdate | None:
        """Return the update of an item that was the newest one."""
        newest = self._updates.newest(item)
        if newest is None or newest.recorded <= self._at:
            return newest
        return next((each for each in self._updates.history(item) if each.recorded <= self._at), None)

    def newest_of(self, uri: str) -> ItemUpdate | None:
        """Return the update of an asset that was the newest one, whatever its key."""
        newest = self._updates.newest_of(uri)
        if newest is None or newest.recorded <= self._at:
            return newest
        return self._updates.newest_of_until(uri, self._at)

    def first(self, item: Item) -> ItemUpdate | None:
        """Return the first update of an item; `None` if there was none yet."""
        first = self._updates.first(item)
        return None if first is None or first.recorded > self._at else first

    def as_of(self, item: Item, sequence: int) -> ItemUpdate | None:
        """Return the newest update of an item up to a place in the ledger, which a run has read."""
        return self._updates.as_of(item, sequence)

    def version_run(self, update: ItemUpdate) -> VersionRun:
        """Return the updates with the same version that followed an update directly."""
        last, ended = self._updates.version_run(update)
        if ended is not None and ended.recorded > self._at:
            ended = None
        if last.recorded > self._at:
            last = self.newest(update.item) or update
        return VersionRun(last, ended)

    def seen(self, update: ItemUpdate) -> datetime | None:
        """Return when an observation saw an update last; `None` if none had."""
        seen = self._updates.seen(update)
        return None if seen is None else min(seen, self._at)

    def greatest_keys(self, uri: str, most: int) -> Sequence[str]:
        """Return the greatest keys of an asset that were there, sorted."""
        return self._updates.greatest_keys_that(uri, most, lambda item: self.newest(item) is not None)


class DataTimes:
    """The data times at one moment, each computed once.

    Parameters:
        at: the instant as of which they are; `None` for now.
    """

    def __init__(self, freshness: FreshnessState, at: datetime | None = None) -> None:
        self._freshness = freshness
        self._updates = freshness.updates if at is None else PastUpdates(freshness.updates, at)
        self._known: dict[UUID, DataTime] = {}
        self._assets: dict[tuple[str, frozenset[str] | None], DataTime | None] = {}

    def of_asset(self, uri: str, inputs: frozenset[str] | None = None) -> DataTime | None:
        """Return the data time of an asset; `None` if it was never made.

        Parameters:
            inputs: only these of its inputs count; `None` for all (8.11).
        """
        if (uri, inputs) not in self._assets:
            self._assets[uri, inputs] = self._of_asset(uri, inputs)
        return self._assets[uri, inputs]

    def way(self, uri: str, inputs: frozenset[str] | None = None) -> list[tuple[Item, DataTime]]:
        """Return the items that the data time of an asset follows from: its own newest one first, its source last.

        Each has the data time that it had when it was read. Empty if the asset was never made.

        Parameters:
            inputs: only these of its inputs count; `None` for all (8.11).
        """
        data_time, update = self.of_asset(uri, inputs), self._newest(uri)
        if data_time is None or update is None:
            return []
        found, seen = [(update.item, data_time)], {update.event}
        while self._freshness.graph.maker(update.item.uri) is not None:
            read = [(self._as_read(item, pin), item, pin) for item, pin in self._read(update, inputs)]
            dated = [(moment, item, pin) for moment, item, pin in read if isinstance(moment, datetime)]
            if not dated:
                break
            moment, item, pin = min(dated, key=lambda each: each[0])
            found.append((item, moment))
            as_read = self._updates.as_of(item, pin)
            if as_read is None or as_read.event in seen:
                break
            seen.add(as_read.event)
            update, inputs = self._updates.version_run(as_read).last, None
        return found

    def _newest(self, uri: str) -> ItemUpdate | None:
        """Return the update that an asset's data time follows from: of a partitioned flow, that of the greatest key."""
        updates, maker = self._updates, self._freshness.graph.maker(uri)
        if maker is None or not maker.is_partitioned:
            return updates.newest_of(uri)
        greatest = updates.greatest_keys(uri, 1)
        return updates.newest(Item(uri, greatest[0] if greatest else None))

    def _of_asset(self, uri: str, inputs: frozenset[str] | None) -> DataTime | None:
        newest = self._newest(uri)
        if newest is None:
            return None
        if self._freshness.graph.maker(uri) is None:
            return newest.recorded
        data_time = self._of_update(newest)
        return data_time if inputs is None else self._least_read(newest, inputs)

    def _of_update(self, update: ItemUpdate) -> DataTime:
        return work_out(update, _event, self._runs_read, lambda each: self._least_read(each, None), self._known)

    def _runs_read(self, update: ItemUpdate) -> Iterator[ItemUpdate]:
        """Yield the updates whose data times that of an update follows from."""
        for item, pin in self._read(update, None):
            read = self._updates.as_of(item, pin)
            if read is not None and self._freshness.graph.maker(item.uri) is not None:
                yield self._updates.version_run(read).last

    def _least_read(self, update: ItemUpdate, inputs: Collection[str] | None) -> DataTime:
        if update.pins is None:
            return update.recorded
        read = [self._as_read(item, pin) for item, pin in self._read(update, inputs)]
        return least(read) if read else update.started or update.recorded

    def _read(self, update: ItemUpdate, inputs: Collection[str] | None) -> Iterator[tuple[Item, int]]:
        """Yield the items that an update was made from, each with the place in the ledger up to which it was read."""
        graph = self._freshness.graph
        node = (None if update.consumer is None else graph.find(update.consumer)) or graph.maker(update.item.uri)
        if node is None or update.pins is None:
            return
        mappers = node.mappers if update.mappers is None else update.mappers
        for uri, pin in update.pins.items():
            if inputs is None or uri in inputs:
                mapper = mappers.get(uri)
                yield from (
                    (item, pin) for item in items_then(self._freshness, node, mapper, update.item.key, uri, pin)
                )
                if isinstance(mapper, LastMapper):
                    new = (Item(uri, key) for key in self._updates.greatest_keys(uri, mapper.n))
                    yield from ((item, pin) for item in new if self._updates.as_of(item, pin) is None)

    def _as_read(self, item: Item, pin: int) -> DataTime:
        """Return the data time of an item as it was read at a place in the ledger."""
        updates = self._updates
        read = updates.as_of(item, pin)
        if read is None:
            first = updates.first(item)
            return CURRENT if first is None else first.recorded
        last, ended = updates.version_run(read)
        if self._freshness.graph.maker(item.uri) is not None:
            return self._known.get(last.event, CURRENT)
        seen = updates.seen(last)
        if seen is not None:
            return seen
        return CURRENT if ended is None else ended.recorded


def _event(update: ItemUpdate) -> UUID:
    return update.event
