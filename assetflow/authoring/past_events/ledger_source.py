"""Read past events from the ledger on this machine."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID

from assetflow.authoring.past_events.reading import PastEventQuery
from assetflow.core.values.events import AssetEvent, Pin
from assetflow.core.values.redaction import without_passwords
from assetflow.errors import LedgerForeign
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import EventFilter

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
