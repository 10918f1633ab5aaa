"""`inlet_events`: the past events of a task's inlets, fetched when they are looked at (7.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, overload

from prefect.context import TaskRunContext

from assetflow.authoring.metadata import to_outlet
from assetflow.authoring.triggering import matches
from assetflow.core.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.conditions import Token
from assetflow.core.events import AssetEvent
from assetflow.errors import InvalidEvent
from assetflow.prefect_io.internals import flow_run_contexts


@dataclass(frozen=True)
class EventQuery:
    """Which events are asked for: of an asset, of what a name belongs to, or through an alias; in a span of time.

    Both ends are exclusive and mean the producer's clock, as `event.timestamp`.
    """

    token: Token
    after: datetime | None = None
    before: datetime | None = None

    def wants(self, event: AssetEvent) -> bool:
        """Whether the event is one of those asked for."""
        late = self.after is None or event.occurred > self.after
        return late and (self.before is None or event.occurred < self.before) and matches(event, self.token)


class EventSource(Protocol):
    """Where past events are read: by sequence, those that are committed but not yet recorded last."""

    def count(self, query: EventQuery) -> int: ...

    def oldest(self, query: EventQuery, skip: int, take: int) -> Sequence[AssetEvent]:
        """Events from the oldest on."""
        ...

    def newest(self, query: EventQuery, skip: int, take: int) -> Sequence[AssetEvent]:
        """Events from the newest back."""
        ...


class EventSequence(Sequence[AssetEvent]):
    """Past events, oldest first, as a list that reads no more than it is asked for.

    `events[-1]`, `events[-2:]`, `len(events)`, and loops work as with a list; a slice gives a list. `after`, `before`,
    `limit` and `ascending` give a narrowed or turned sequence.
    """

    def __init__(
        self, source: EventSource, query: EventQuery, *, ascending: bool = True, limit: int | None = None
    ) -> None:
        self._source = source
        self._query = query
        self._ascending = ascending
        self._limit = limit
        self._count: int | None = None

    def after(self, moment: datetime | str) -> EventSequence:
        """Only events that occurred after this time (a `datetime` with a time zone, or ISO 8601 text)."""
        return self._narrowed(replace(self._query, after=_moment(moment)))

    def before(self, moment: datetime | str) -> EventSequence:
        """Only events that occurred before this time."""
        return self._narrowed(replace(self._query, before=_moment(moment)))

    def ascending(self, ascending: bool = True) -> EventSequence:
        """Oldest first, or with `False` newest first."""
        return EventSequence(self._source, self._query, ascending=ascending, limit=self._limit)

    def limit(self, count: int) -> EventSequence:
        """At most so many events from the beginning: the oldest, or after `ascending(False)` the newest."""
        if count < 0:
            raise InvalidEvent(f"a limit of {count} events", rule="7.2", fix="Give 0 or more")
        return EventSequence(self._source, self._query, ascending=self._ascending, limit=count)

    @overload
    def __getitem__(self, index: int) -> AssetEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[AssetEvent]: ...
    def __getitem__(self, index: int | slice) -> AssetEvent | list[AssetEvent]:
        if isinstance(index, slice):
            return self._slice(index)
        found = self._from_end(-1 - index, 1) if index < 0 else self._from_start(index, 1)
        if not found:
            raise IndexError(f"no event {index}: there are {len(self)}")
        return found[0]

    def __len__(self) -> int:
        if self._count is None:
            self._count = self._source.count(self._query)
        return self._count if self._limit is None else min(self._count, self._limit)

    def __repr__(self) -> str:
        return f"<past events of {self._query.token.value}>"

    def _slice(self, index: slice) -> list[AssetEvent]:
        start, stop, step = index.start, index.stop, index.step
        if step in (None, 1) and start is not None and start < 0 and stop is None:
            return self._from_end(0, -start)[::-1]
        if step in (None, 1) and (start or 0) >= 0 and stop is not None and stop >= 0:
            return self._from_start(start or 0, max(0, stop - (start or 0)))
        return self._from_start(0, len(self))[index]

    def _from_start(self, skip: int, take: int) -> list[AssetEvent]:
        if self._limit is not None:
            take = min(take, self._limit - skip)
        read = self._source.oldest if self._ascending else self._source.newest
        return list(read(self._query, skip, take)) if take > 0 else []

    def _from_end(self, skip: int, take: int) -> list[AssetEvent]:
        """Events from the last one back."""
        if self._limit is not None:
            # Where the end is depends on how many there are.
            size = len(self)
            first = max(0, size - skip - take)
            return self._from_start(first, size - skip - first)[::-1]
        read = self._source.newest if self._ascending else self._source.oldest
        return list(read(self._query, skip, take))

    def _narrowed(self, query: EventQuery) -> EventSequence:
        return EventSequence(self._source, query, ascending=self._ascending, limit=self._limit)


class InletEvents:
    """`inlet_events[asset]`, `inlet_events[alias]`, `inlet_events[Asset.ref(...)]`: past events of declared inlets."""

    def __init__(self, inlets: Iterable[Outlet], open_source: Callable[[], EventSource]) -> None:
        self._inlets = tuple(inlets)
        self._open_source = open_source

    def __getitem__(self, key: Asset | AssetAlias | AssetRef) -> EventSequence:
        """The past events of an inlet.

        Raises:
            KeyError: it is no declared inlet.
        """
        target = to_outlet(key)
        if not any(_same(target, inlet) for inlet in self._inlets):
            declared = ", ".join(map(repr, self._inlets)) or "none"
            raise KeyError(f"{target!r} is no declared inlet (declared: {declared}); add it to inlets=")
        return EventSequence(self._open_source(), EventQuery(target.token))


def declared_here() -> tuple[Outlet, ...]:
    """The inlets of the task that runs here; in a flow, what it reads and is scheduled on."""
    context = TaskRunContext.get()
    if context is not None:
        return getattr(context.task, "inlets", ())
    for flow in flow_run_contexts():
        declared = getattr(flow.flow, "inlets", None)
        if declared is not None:
            return declared
    return ()


def _same(asked: Outlet, inlet: Outlet) -> bool:
    if asked.token == inlet.token:
        return True
    assets = {type(asked), type(inlet)} == {Asset, AssetRef}
    return assets and getattr(asked, "name", None) == getattr(inlet, "name", None)


def _moment(value: datetime | str) -> datetime:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as error:
        raise InvalidEvent(f"{value!r} is no time", rule="7.2", fix="Write 2026-01-01T00:00:00Z") from error
    if moment.tzinfo is None:
        raise InvalidEvent(f"{value!r} has no time zone", rule="7.2", fix="Write 2026-01-01T00:00:00Z")
    return moment
