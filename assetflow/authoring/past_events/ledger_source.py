"""Read past events from a ledger, followed by those that are committed but not yet recorded. Contract 7.2."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol
from urllib.parse import urlsplit
from uuid import UUID

from assetflow.authoring.past_events.prefect_source import Dated, PrefectLog
from assetflow.authoring.past_events.reading import PastEventQuery
from assetflow.core.values.addresses import without_passwords
from assetflow.core.values.events import AssetEvent, Pin
from assetflow.errors import LedgerForeign
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import EventFilter


class RecordedEvents(Protocol):
    """The recorded events of a ledger, on this machine or behind assetflow's API."""

    def created(self) -> datetime: ...
    def count(self, query: PastEventQuery) -> int: ...
    def events(self, query: PastEventQuery, skip: int, take: int, *, newest_first: bool) -> Sequence[AssetEvent]: ...
    def known(self, ids: Sequence[UUID]) -> Collection[UUID]:
        """Return those of these ids that are recorded or refused."""
        ...

    def newest_events(self, uris: Iterable[str]) -> Mapping[str, Pin]: ...
    def owner_of(self, name: str) -> str | None: ...


class RecordedSource:
    """An `EventSource` on a ledger."""

    def __init__(self, recorded: RecordedEvents) -> None:
        self._recorded = recorded
        self._pending: dict[PastEventQuery, list[AssetEvent]] = {}

    def count(self, query: PastEventQuery) -> int:
        while True:
            pending = self._not_yet_recorded(query)
            count = self._recorded.count(query)
            if not pending or self._not_yet_recorded(query) == pending:
                return count + len(pending)

    def newest(self, query: PastEventQuery, skip: int, take: int) -> Sequence[AssetEvent]:
        pending = self._not_yet_recorded(query)
        found = pending[skip : skip + take]
        if len(found) < take:
            past = max(0, skip - len(pending))
            recorded = self._recorded.events(query, past, take - len(found) + len(pending), newest_first=True)
            found = [*found, *_besides(pending, recorded)][:take]
        return found

    def oldest(self, query: PastEventQuery, skip: int, take: int) -> Sequence[AssetEvent]:
        found = self._recorded.events(query, skip, take, newest_first=False)
        if len(found) == take:
            return found
        pending = self._pending_after(query, skip, len(found))
        # What was recorded since the first look is not pending any more.
        since = self._recorded.events(query, skip + len(found), take - len(found), newest_first=False)
        found = [*found, *since]
        return [*found, *_besides(found, pending)][:take]

    def newest_events(self, uris: Iterable[str]) -> Mapping[str, Pin]:
        """Return the newest event of each URI that the ledger knows."""
        return self._recorded.newest_events(uris)

    def owner_of(self, name: str) -> str | None:
        """Return the URI that a name belongs to, or `None`."""
        return self._recorded.owner_of(name)

    def _pending_after(self, query: PastEventQuery, skip: int, found: int) -> list[AssetEvent]:
        pending = self._not_yet_recorded(query)[::-1]
        return pending[max(0, skip - self._recorded.count(query)) if found == 0 and skip else 0 :]

    def _not_yet_recorded(self, query: PastEventQuery) -> list[AssetEvent]:
        """Return the events that are committed and that the evaluator has not recorded yet, newest first."""
        pending = self._pending.get(query)
        if pending is None:
            dated = sorted(self._unknown(query), key=lambda each: each[0], reverse=True)
            once = {event.id: event for _, event in dated}
            pending = [event for event in once.values() if query.wants(event)]
        elif pending:
            known = self._recorded.known([event.id for event in pending])
            pending = [event for event in pending if event.id not in known]
        self._pending[query] = pending
        return pending

    def _unknown(self, query: PastEventQuery) -> Iterator[Dated]:
        log = PrefectLog(since=self._recorded.created())
        for pages in (log.artifact_pages(), log.event_pages(query.token)):
            for page in pages:
                known = self._recorded.known([event.id for _, event in page])
                unknown = [dated for dated in page if dated[1].id not in known]
                yield from unknown
                # The evaluator records in order: if it knows this page, it knows all older ones.
                if page and not unknown:
                    break


def _besides(known: Iterable[AssetEvent], events: Iterable[AssetEvent]) -> Iterator[AssetEvent]:
    ids = {event.id for event in known}
    return (event for event in events if event.id not in ids)


_LOCAL = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})


class LocalLedger:
    """The ledger that the settings name. Each read opens a connection and closes it.

    Raises:
        LedgerError: on construction: the ledger cannot be read.
        LedgerMissing: it does not exist.
        LedgerForeign: it belongs to another Prefect.
    """

    def __init__(self, api_url: str) -> None:
        with Reader.open() as reader:
            known = reader.prefect_api_url()
            if known is None or _place(known) != _place(api_url):
                raise LedgerForeign(
                    f"the ledger belongs to Prefect at {known}, not {without_passwords(api_url)}", where=reader.place
                )
            self._created = reader.created

    def created(self) -> datetime:
        return self._created

    def count(self, query: PastEventQuery) -> int:
        with _opened(query) as (reader, wanted):
            return 0 if wanted is None else reader.events.count(wanted)

    def events(self, query: PastEventQuery, skip: int, take: int, *, newest_first: bool) -> Sequence[AssetEvent]:
        with _opened(query) as (reader, wanted):
            if wanted is None:
                return []
            return reader.events.find(wanted, newest_first=newest_first, limit=take, offset=skip)

    def known(self, ids: Sequence[UUID]) -> Collection[UUID]:
        with Reader.open() as reader:
            return reader.events.known(ids)

    def newest_events(self, uris: Iterable[str]) -> Mapping[str, Pin]:
        with Reader.open() as reader:
            return reader.events.newest(uris)

    def owner_of(self, name: str) -> str | None:
        with Reader.open() as reader:
            return reader.assets.owner_of(name)


@contextmanager
def _opened(query: PastEventQuery) -> Generator[tuple[Reader, EventFilter | None]]:
    """Open the ledger and translate the query; the query is `None` for a name that belongs to no asset."""
    kind, value = query.token
    with Reader.open() as reader:
        uri = reader.assets.owner_of(value) if kind == "name" else value
        if kind == "alias":
            yield reader, EventFilter(alias=value, after=query.after, before=query.before)
        else:
            yield reader, None if uri is None else EventFilter(uri=uri, after=query.after, before=query.before)


def _place(url: str) -> tuple[str, int | None, str]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return ("localhost" if host in _LOCAL else host), parts.port, parts.path.rstrip("/")
