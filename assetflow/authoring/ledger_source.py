"""The ledger on this machine, as a source of past events."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID

from assetflow.authoring.reading import EventQuery
from assetflow.core.events import AssetEvent
from assetflow.errors import LedgerError
from assetflow.ledger.reader import EventQuery as LedgerQuery
from assetflow.ledger.reader import Reader

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})


class LocalLedger:
    """Reads the ledger that the settings name; a connection lasts for one read.

    Raises:
        LedgerError: on construction: there is no ledger, or it belongs to another Prefect.
    """

    def __init__(self, api_url: str) -> None:
        with Reader.open() as reader:
            known = reader.prefect_api_url()
            if known is None or _place(known) != _place(api_url):
                raise LedgerError(f"the ledger belongs to Prefect at {known}, not {api_url}", where=reader.place)
            self._created = reader.created

    def created(self) -> datetime:
        return self._created

    def count(self, query: EventQuery) -> int:
        with _opened(query) as (reader, wanted):
            return 0 if wanted is None else reader.count_events(wanted)

    def events(self, query: EventQuery, skip: int, take: int, *, newest_first: bool) -> Sequence[AssetEvent]:
        with _opened(query) as (reader, wanted):
            if wanted is None:
                return []
            return reader.events(wanted, newest_first=newest_first, limit=take, offset=skip)

    def known(self, ids: Sequence[UUID]) -> Collection[UUID]:
        with Reader.open() as reader:
            return reader.known_events(ids)

    def newest_sequences(self, uris: Iterable[str]) -> dict[str, int]:
        with Reader.open() as reader:
            return dict(reader.newest_sequences(uris))

    def owner_of(self, name: str) -> str | None:
        with Reader.open() as reader:
            return reader.owner_of(name)


@contextmanager
def _opened(query: EventQuery) -> Generator[tuple[Reader, LedgerQuery | None]]:
    """The ledger, and the query in its words; none for a name that belongs to nothing."""
    kind, value = query.token
    with Reader.open() as reader:
        uri = reader.owner_of(value) if kind == "name" else value
        if kind == "alias":
            yield reader, LedgerQuery(alias=value, after=query.after, before=query.before)
        else:
            yield reader, None if uri is None else LedgerQuery(uri=uri, after=query.after, before=query.before)


def _place(url: str) -> tuple[str, int | None, str]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return ("localhost" if host in _LOCAL else host), parts.port, parts.path.rstrip("/")
