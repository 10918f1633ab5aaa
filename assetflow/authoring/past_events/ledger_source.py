"""Read past events from a ledger, followed by those that are committed but not yet recorded. Contract 7.2."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlsplit
from uuid import UUID

from assetflow.authoring.past_events.reading import PastEventQuery
from assetflow.authoring.remote import RemoteApi
from assetflow.core.values.addresses import without_passwords
from assetflow.core.values.conditions import Token
from assetflow.core.values.events import AssetEvent, Pin
from assetflow.core.wire.events import recorded_event_from_json
from assetflow.core.wire.fields import Json
from assetflow.errors import ApiRefused, AssetflowError, LedgerForeign
from assetflow.ledger.records import EventFilter
from assetflow.prefect_io.names import ASSET_UPDATED, MATERIALIZATION_SUCCEEDED, UPDATE_ARTIFACT
from assetflow.prefect_io.recordings import recording_from_artifact, recording_from_prefect_event
from assetflow.prefect_io.rest import TaskApi

if TYPE_CHECKING:
    from assetflow.ledger.read.reader import Reader

ARTIFACT_PAGE = 200
EVENT_PAGE = 50

Dated = tuple[datetime, AssetEvent]


def pages_in_prefect(token: Token, since: datetime | None = None) -> Sequence[Iterator[list[Dated]]]:
    """Return the updates that Prefect holds, in pages, newest first: those in artifacts, and those in its event log.

    The pages hold the updates of all assets, except where Prefect itself can filter by URI.

    Parameters:
        since: the time before which updates are left out, or `None` for all.
    """
    return _artifact_pages(since), _event_pages(token, since)


def _artifact_pages(since: datetime | None) -> Iterator[list[Dated]]:
    """Yield the updates that tasks recorded, with the times at which Prefect stored them."""
    for offset in itertools.count(0, ARTIFACT_PAGE):
        body = {
            "artifacts": {"type": {"any_": [UPDATE_ARTIFACT]}},
            "sort": "CREATED_DESC",
            "limit": ARTIFACT_PAGE,
            "offset": offset,
        }
        page = cast("list[Json]", _post("/artifacts/filter", body))
        stored = [(datetime.fromisoformat(str(artifact["created"])), artifact) for artifact in page]
        wanted = [each for each in stored if since is None or each[0] >= since]
        yield [(moment, event) for moment, artifact in wanted for event in reversed(_events_of(artifact))]
        if len(wanted) < ARTIFACT_PAGE:
            return


def _event_pages(token: Token, since: datetime | None) -> Iterator[list[Dated]]:
    """Yield the updates in the event log, with the times at which they occurred."""
    wanted: dict[str, object] = {"event": {"name": [ASSET_UPDATED, MATERIALIZATION_SUCCEEDED]}, "order": "DESC"}
    if token.kind == "uri":
        wanted["resource"] = {"id": [token.value]}
    if since is not None:
        wanted["occurred"] = {"since": since.isoformat()}
    page = cast(Json, _post("/events/filter", {"filter": wanted, "limit": EVENT_PAGE}))
    while True:
        posted = cast("list[Json]", page["events"])
        yield [(datetime.fromisoformat(str(each["occurred"])), event) for each in posted for event in _event_of(each)]
        following = page.get("next_page")
        if not following:
            return
        with TaskApi.connect() as api:
            page = cast(Json, api.get(f"/events/filter/next?{urlsplit(str(following)).query}"))


class PrefectSource:
    """An `EventSource` on a Prefect server. It reads each page once and keeps it."""

    def __init__(self) -> None:
        self._cached: dict[Token, Iterator[AssetEvent]] = {}

    def count(self, query: PastEventQuery) -> int:
        return sum(1 for _ in self._matching(query))

    def newest(self, query: PastEventQuery, skip: int, take: int) -> Sequence[AssetEvent]:
        return list(itertools.islice(self._matching(query), skip, skip + take))

    def oldest(self, query: PastEventQuery, skip: int, take: int) -> Sequence[AssetEvent]:
        return list(self._matching(query))[::-1][skip : skip + take]

    def _matching(self, query: PastEventQuery) -> Iterator[AssetEvent]:
        if query.token not in self._cached:
            self._cached[query.token] = _newest_first(query.token)
        # One of the two is kept as it is, to begin with the newest event again.
        self._cached[query.token], events = itertools.tee(self._cached[query.token])
        return filter(query.wants, events)


def _newest_first(token: Token) -> Iterator[AssetEvent]:
    """Yield all events that a token finds, each once, newest first."""
    everything = PastEventQuery(token)
    streams = (itertools.chain.from_iterable(pages) for pages in pages_in_prefect(token))
    seen: set[UUID] = set()
    for _, event in heapq.merge(*streams, key=lambda dated: dated[0], reverse=True):
        if event.id not in seen and everything.wants(event):
            seen.add(event.id)
            yield event


def _post(path: str, body: object) -> object:
    # One connection for each page, so a caller that stops reading leaves none open.
    with TaskApi.connect() as api:
        return api.post(path, body)


def _events_of(artifact: Json) -> Sequence[AssetEvent]:
    try:
        return recording_from_artifact(artifact).events
    except AssetflowError:
        # The evaluator keeps refused updates and shows them (contract 2.6); they are not past events.
        return ()


def _event_of(posted: Json) -> Sequence[AssetEvent]:
    try:
        recording = recording_from_prefect_event(posted)
    except AssetflowError:
        return ()
    return () if recording is None else recording.events


PAGE = 500
IDS_A_POST = 1000


class RemoteLedger:
    """A ledger behind assetflow's API. Events are fetched page by page, only as far as they are needed.

    The API redacts values whose keys look like secrets.

    Parameters:
        connect: opens a connection to the API; by default to the one that the settings name.

    Raises (all methods):
        ApiUnreachable, ApiRefused: the API does not answer as expected.
    """

    def __init__(self, connect: Callable[[], RemoteApi] = RemoteApi.of_settings) -> None:
        self._connect = connect

    def created(self) -> datetime:
        return datetime.fromisoformat(str(self._get("/api/v1/ledger", {})["created"]))

    def count(self, query: PastEventQuery) -> int:
        return cast(int, self._get("/api/v1/events/count", _parameters(query))["count"])

    def events(self, query: PastEventQuery, skip: int, take: int, *, newest_first: bool) -> Sequence[AssetEvent]:
        found: list[AssetEvent] = []
        params = _parameters(query) | {"order": "desc" if newest_first else "asc", "offset": skip}
        while len(found) < take:
            page = self._get("/api/v1/events", params | {"limit": min(PAGE, take - len(found))})
            items = cast("Sequence[Json]", page["items"])
            found += [recorded_event_from_json(item, where="assetflow's API") for item in items]
            if page["next"] is None:
                break
            params |= {"page": cast(str, page["next"])}
        return found

    def known(self, ids: Sequence[UUID]) -> Collection[UUID]:
        found: set[UUID] = set()
        with self._connect() as api:
            for start in range(0, len(ids), IDS_A_POST):
                body = {"ids": [str(each) for each in ids[start : start + IDS_A_POST]]}
                found |= {UUID(each) for each in cast("Sequence[str]", api.post("/api/v1/events/known", body)["ids"])}
        return found

    def newest_events(self, uris: Iterable[str]) -> Mapping[str, Pin]:
        found: dict[str, Pin] = {}
        for uri in dict.fromkeys(uris):
            page = self._get("/api/v1/events", {"uri": uri, "limit": 1})
            for item in cast("Sequence[Mapping[str, Any]]", page["items"]):
                found[uri] = Pin(item["sequence"], UUID(item["id"]), datetime.fromisoformat(item["recorded"]))
        return found

    def owner_of(self, name: str) -> str | None:
        with self._connect() as api:
            answer = api.get(f"/api/v1/names/{quote(name, safe='')}")
        return None if answer is None else str(answer["uri"])

    def _get(self, path: str, params: Mapping[str, str | int]) -> Json:
        with self._connect() as api:
            answer = api.get(path, params)
            if answer is None:
                raise ApiRefused(
                    f"there is no {path}", where=api.url, fix="Run the same version of assetflow here and there"
                )
            return answer


def _parameters(query: PastEventQuery) -> dict[str, str | int]:
    kind, value = query.token
    times = {"after": query.after, "before": query.before}
    return {kind: value, **{name: moment.isoformat() for name, moment in times.items() if moment is not None}}


class RecordedSource:
    """An `EventSource` on a ledger."""

    def __init__(self, recorded: LocalLedger | RemoteLedger) -> None:
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
        for pages in pages_in_prefect(query.token, self._recorded.created()):
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
        with _reader() as reader:
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
        with _reader() as reader:
            return reader.events.known(ids)

    def newest_events(self, uris: Iterable[str]) -> Mapping[str, Pin]:
        with _reader() as reader:
            return reader.events.newest(uris)

    def owner_of(self, name: str) -> str | None:
        with _reader() as reader:
            return reader.assets.owner_of(name)


def _reader() -> Reader:
    # Importing SQLAlchemy takes half a second, and most tasks run without a ledger on their machine.
    from assetflow.ledger.read.reader import Reader

    return Reader.open()


@contextmanager
def _opened(query: PastEventQuery) -> Generator[tuple[Reader, EventFilter | None]]:
    """Open the ledger and translate the query; the query is `None` for a name that belongs to no asset."""
    kind, value = query.token
    with _reader() as reader:
        uri = reader.assets.owner_of(value) if kind == "name" else value
        if kind == "alias":
            yield reader, EventFilter(alias=value, after=query.after, before=query.before)
        else:
            yield reader, None if uri is None else EventFilter(uri=uri, after=query.after, before=query.before)


def _place(url: str) -> tuple[str, int | None, str]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return ("localhost" if host in _LOCAL else host), parts.port, parts.path.rstrip("/")
