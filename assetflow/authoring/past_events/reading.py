"""`inlet_events`: the past events of a task's inlets, loaded on first use. Contract 7.2."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, cast, overload

from prefect.context import TaskRunContext

from assetflow.authoring.metadata import to_outlet
from assetflow.authoring.triggering import matches, partition_key, triggering_asset_events
from assetflow.core.partitions import PartitionMapper
from assetflow.core.partitions.base import targets_or_none
from assetflow.core.values.assets import Asset, AssetRef, Outlet
from assetflow.core.values.conditions import AssetLike, Token
from assetflow.core.values.events import AssetEvent, Pin
from assetflow.core.values.schedules import Schedule
from assetflow.errors import InvalidEvent, InvalidFlow
from assetflow.prefect_io.internals import flow_run_contexts

PAGE = 20

_inlets: ContextVar[tuple[Outlet, ...] | None] = ContextVar("assetflow_inlets", default=None)


@dataclass(frozen=True)
class PastEventQuery:
    """A query for the past events of an asset, a name or an alias, in a span of time.

    Both ends are exclusive and are compared with `event.timestamp`, the producer's clock.
    """

    token: Token
    after: datetime | None = None
    before: datetime | None = None

    def wants(self, event: AssetEvent) -> bool:
        """Return True if the query finds the event."""
        late = self.after is None or event.occurred > self.after
        return late and (self.before is None or event.occurred < self.before) and matches(event, self.token)


class EventSource(Protocol):
    """A place to read past events from.

    Events are in the order of their sequences. Those that are committed but not yet recorded come last.
    """

    def count(self, query: PastEventQuery) -> int: ...

    def oldest(self, query: PastEventQuery, skip: int, take: int) -> Sequence[AssetEvent]:
        """Return at most `take` events, oldest first, after leaving out the oldest `skip`."""
        ...

    def newest(self, query: PastEventQuery, skip: int, take: int) -> Sequence[AssetEvent]:
        """Return at most `take` events, newest first, after leaving out the newest `skip`."""
        ...


class EventSequence(Sequence[AssetEvent]):
    """A list of past events, oldest first, that loads only the events you ask for.

    >>> from datetime import UTC, datetime, timedelta
    >>> from assetflow import Asset, inlet_events, task
    >>> orders = Asset("s3://shop/orders")
    >>> @task(inlets=[orders])
    ... def rows_of_today() -> int:
    ...     since = datetime.now(UTC) - timedelta(days=1)
    ...     return sum(event.metrics["rows"] for event in inlet_events[orders].after(since))

    `events[-1]`, `events[-2:]`, `len(events)` and loops work as with a list, and a slice is a list. `after`, `before`,
    `limit` and `ascending` return a narrower sequence, or one in another order. Contract 7.2.
    """

    def __init__(
        self,
        source: EventSource,
        query: PastEventQuery,
        *,
        pin: Callable[[], Pin | None] = lambda: None,
        ascending: bool = True,
        limit: int | None = None,
    ) -> None:
        self._source = source
        self._query = query
        self._pin = pin
        self._ascending = ascending
        self._limit = limit
        self._count: int | None = None

    @property
    def version(self) -> str | None:
        """The data version of the asset that this run has read: that of its newest update when the attempt started.

        It stays the same while the task runs, so that you can read exactly this version of your data and name it in
        your own tables. A task without outlets, or one that no ledger answered, gets the version of now. `None` if the
        asset was never updated. Contract 8.2.
        """
        pin, newest = self._pin(), self._newest_of_all()
        read = next(newest, None) if pin is None else next((each for each in newest if each.id == pin.event), None)
        return None if read is None else read.data_version or str(read.id)

    def _newest_of_all(self) -> Iterator[AssetEvent]:
        """Yield the events without the limits of this sequence, newest first: the first one, then page by page."""
        whole, skip, take = PastEventQuery(self._query.token), 0, 1
        while page := self._source.newest(whole, skip, take):
            yield from page
            skip, take = skip + len(page), PAGE

    def after(self, moment: datetime | str) -> EventSequence:
        """Return only the events that occurred after a time.

        Parameters:
            moment: a `datetime` with a time zone, or ISO 8601 text such as "2026-01-01T00:00:00Z".

        Raises:
            InvalidEvent: it is not a time, or has no time zone.
        """
        return self._narrowed(replace(self._query, after=_instant(moment)))

    def before(self, moment: datetime | str) -> EventSequence:
        """Return only the events that occurred before a time.

        Parameters:
            moment: a `datetime` with a time zone, or ISO 8601 text such as "2026-01-01T00:00:00Z".

        Raises:
            InvalidEvent: it is not a time, or has no time zone.
        """
        return self._narrowed(replace(self._query, before=_instant(moment)))

    def ascending(self, ascending: bool = True) -> EventSequence:
        """Return the events oldest first; with `False`, newest first."""
        return self._copy(self._query, ascending=ascending, limit=self._limit)

    def limit(self, count: int) -> EventSequence:
        """Return at most `count` events from the beginning: the oldest, or the newest after `ascending(False)`.

        Raises:
            InvalidEvent: `count` is below 0.
        """
        if count < 0:
            raise InvalidEvent(f"the limit {count} is below 0", rule="7.2", fix="Give 0 or more")
        return self._copy(self._query, ascending=self._ascending, limit=count)

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
        """Return at most `take` events from the end backwards, after leaving out the last `skip`."""
        if self._limit is not None:
            # The position of the end depends on the number of events.
            size = len(self)
            first = max(0, size - skip - take)
            return self._from_start(first, size - skip - first)[::-1]
        read = self._source.newest if self._ascending else self._source.oldest
        return list(read(self._query, skip, take))

    def _narrowed(self, query: PastEventQuery) -> EventSequence:
        return self._copy(query, ascending=self._ascending, limit=self._limit)

    def _copy(self, query: PastEventQuery, *, ascending: bool, limit: int | None) -> EventSequence:
        return EventSequence(self._source, query, pin=self._pin, ascending=ascending, limit=limit)


class InletEvents(Mapping[Outlet, EventSequence]):
    """The mapping from a task's inlets to their past events; the type of `inlet_events`.

    >>> from assetflow import Asset, InletEvents, inlet_events, task
    >>> orders = Asset("s3://shop/orders")
    >>> @task(inlets=[orders])
    ... def newest_extra(inlet_events: InletEvents = inlet_events):
    ...     return inlet_events[orders][-1].extra

    `inlet_events[asset]`, `inlet_events[alias]` and `inlet_events[Asset.ref(name="orders")]` are lists of events,
    oldest first (`EventSequence`). Iterating gives the inlets. Contract 7.2.

    Parameters:
        inlets: the inlets that may be read.
        open_source: opens the place where past events are read.
        pin_of: returns the newest update of an inlet when the attempt started, as far as it is known.
    """

    def __init__(
        self,
        inlets: Iterable[Outlet],
        open_source: Callable[[], EventSource],
        pin_of: Callable[[Outlet], Pin | None] = lambda _: None,
    ) -> None:
        self._declared = tuple(inlets)
        self._open_source = open_source
        self._pin_of = pin_of

    @property
    def _inlets(self) -> tuple[Outlet, ...]:
        return self._declared

    def __getitem__(self, key: Outlet | AssetLike) -> EventSequence:
        """Return the past events of an inlet, oldest first.

        Raises:
            KeyError: it is not a declared inlet.
        """
        target, inlets = to_outlet(key), self._inlets
        if not any(_is_same(target, inlet) for inlet in inlets):
            declared = ", ".join(map(repr, inlets)) or "none"
            raise KeyError(f"{target!r} is not a declared inlet (declared: {declared}); add it to inlets=")
        return EventSequence(self._open_source(), PastEventQuery(target.token), pin=lambda: self._pin_of(target))

    def __iter__(self) -> Iterator[Outlet]:
        return iter(self._inlets)

    def __len__(self) -> int:
        return len(self._inlets)


@contextmanager
def reading(inlets: tuple[Outlet, ...]) -> Generator[None]:
    """Declare the inlets of the task whose function runs in the block, in a task run or as a plain function."""
    token = _inlets.set(inlets)
    try:
        yield
    finally:
        _inlets.reset(token)


def declared_here() -> tuple[Outlet, ...]:
    """Return the inlets of the running task; in a flow, the assets that it reads and is scheduled on.

    Raises:
        InvalidFlow: neither a task nor a flow runs here.
    """
    context = TaskRunContext.get()
    if context is not None:
        return getattr(context.task, "inlets", ())
    called = _inlets.get()
    if called is not None:
        return called
    flows = [getattr(each.flow, "inlets", None) for each in flow_run_contexts()]
    if not flows:
        raise InvalidFlow(
            "inlet_events was used where neither a task nor a flow runs",
            rule="7.2",
            fix="Use it inside a task that has inlets, as in @task(inlets=[orders]), or inside a flow",
        )
    return next((declared for declared in flows if declared is not None), ())


def _is_same(asked: Outlet, inlet: Outlet) -> bool:
    if asked.token == inlet.token:
        return True
    assets = {type(asked), type(inlet)} == {Asset, AssetRef}
    return assets and getattr(asked, "name", None) == getattr(inlet, "name", None)


def _instant(value: datetime | str) -> datetime:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as error:
        raise InvalidEvent(f"{value!r} is not a time", rule="7.2", fix="Write 2026-01-01T00:00:00Z") from error
    if moment.tzinfo is None:
        raise InvalidEvent(f"{value!r} has no time zone", rule="7.2", fix="Write 2026-01-01T00:00:00Z")
    return moment


def keys_of_run(asset: Asset, known: Callable[[], Iterable[str]]) -> list[str] | None:
    """Return the keys of an asset that belong to the current flow run, or `None` if the run is not limited to keys.

    If updates started the run, these are the keys of the updates. If a person or a backfill started it for a key, these
    are all known keys that the flow's schedule maps to that key. A run without a key is not limited, nor is a run for
    an asset that the flow is not scheduled on.

    Parameters:
        known: returns the keys for which the asset has data; called only if they are needed.
    """
    target = partition_key()
    if target is None:
        return None
    events = triggering_asset_events()[asset]
    triggered = dict.fromkeys(event.partition_key for event in events if event.partition_key is not None)
    if triggered:
        return list(triggered)
    mapper = _mapper_of(asset)
    return None if mapper is None else [key for key in known() if target in targets_or_none(mapper, key)]


def _mapper_of(asset: Asset) -> PartitionMapper | None:
    """Return the mapper of an asset in the schedule of the current flow run, or `None`."""
    tokens = frozenset((asset.token, Token("name", asset.name)))
    for context in flow_run_contexts():
        schedule = cast("Schedule | None", getattr(context.flow, "schedule", None))
        if isinstance(schedule, Schedule) and schedule.partitioning is not None:
            return schedule.partitioning.mapper_for(tokens) if tokens & schedule.tokens else None
    return None
