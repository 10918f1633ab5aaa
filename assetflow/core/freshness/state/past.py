"""The updates of items as they were at an earlier instant: what was recorded later is left out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from assetflow.core.freshness.records import Item, ItemUpdate, Row
from assetflow.core.freshness.state.updates import Updates, greatest_keys


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

    def row(self, update: ItemUpdate) -> Row:
        """Return the row of updates with the same version that followed an update."""
        last, ended = self._updates.row(update)
        if ended is not None and ended.recorded > self._at:
            ended = None
        if last.recorded > self._at:
            last = self.newest(update.item) or update
        return Row(last, ended)

    def seen(self, update: ItemUpdate) -> datetime | None:
        """Return when an observation saw an update last; `None` if none had."""
        seen = self._updates.seen(update)
        return None if seen is None else min(seen, self._at)

    def greatest_keys(self, uri: str, most: int) -> Sequence[str]:
        """Return the greatest keys of an asset that were there, sorted."""
        return greatest_keys(self._updates, uri, most, lambda item: self.newest(item) is not None)
