"""Read past events from Prefect itself: from artifacts, which tasks leave, and from the event log.

Both are read newest first and a page at a time, so the last event costs one page of each. An event is there as soon as
its task has committed it, even if no evaluator is running.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast
from urllib.parse import quote, urlsplit
from uuid import UUID

from assetflow.authoring.past_events.reading import PastEventQuery
from assetflow.authoring.remote import RemoteApi
from assetflow.core.values.conditions import Token
from assetflow.core.values.events import AssetEvent, Pin
from assetflow.core.wire.events import recorded_event_from_json
from assetflow.core.wire.fields import Json
from assetflow.errors import ApiRefused, AssetflowError
from assetflow.prefect_io.names import ASSET_UPDATED, MATERIALIZATION_SUCCEEDED, UPDATE_ARTIFACT
from assetflow.prefect_io.recordings import recording_from_artifact, recording_from_prefect_event
from assetflow.prefect_io.rest import TaskApi

ARTIFACT_PAGE = 200
EVENT_PAGE = 50

Dated = tuple[datetime, AssetEvent]


class PrefectLog:
    """The updates that Prefect holds, in pages, newest first.

    The pages hold the updates of all assets, except where Prefect itself can filter by URI.

    Parameters:
        since: the time before which updates are left out, or `None` for all.
    """

    def __init__(self, since: datetime | None = None) -> None:
        self._since = since

    def artifact_pages(self) -> Iterator[list[Dated]]:
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
            wanted = [each for each in stored if self._since is None or each[0] >= self._since]
            yield [(moment, event) for moment, artifact in wanted for event in reversed(_events_of(artifact))]
            if len(wanted) < ARTIFACT_PAGE:
                return

    def event_pages(self, token: Token) -> Iterator[list[Dated]]:
        """Yield the updates in the event log, with the times at which they occurred."""
        wanted: dict[str, object] = {"event": {"name": [ASSET_UPDATED, MATERIALIZATION_SUCCEEDED]}, "order": "DESC"}
        if token.kind == "uri":
            wanted["resource"] = {"id": [token.value]}
        if self._since is not None:
            wanted["occurred"] = {"since": self._since.isoformat()}
        page = cast(Json, _post("/events/filter", {"filter": wanted, "limit": EVENT_PAGE}))
        while True:
            posted = cast("list[Json]", page["events"])
            yield [
                (datetime.fromisoformat(str(each["occurred"])), event) for each in posted for event in _event_of(each)
            ]
            following = page.get("next_page")
            if not following:
                return
            with TaskApi.connect() as api:
                page = cast(Json, api.get(f"/events/filter/next?{urlsplit(str(following)).query}"))


class PrefectSource:
    """An `EventSource` on a Prefect server. It reads each page once and keeps it."""

    def __init__(self) -> None:
        self._cached: dict[Token, _Replayable] = {}

    def count(self, query: PastEventQuery) -> int:
        return sum(1 for _ in self._matching(query))

    def newest(self, query: PastEventQuery, skip: int, take: int) -> Sequence[AssetEvent]:
        return list(itertools.islice(self._matching(query), skip, skip + take))

    def oldest(self, query: PastEventQuery, skip: int, take: int) -> Sequence[AssetEvent]:
        return list(self._matching(query))[::-1][skip : skip + take]

    def _matching(self, query: PastEventQuery) -> Iterator[AssetEvent]:
        if query.token not in self._cached:
            self._cached[query.token] = _Replayable(_newest_first(query.token))
        return (event for event in self._cached[query.token] if query.wants(event))


class _Replayable:
    """An iterator that can be read again from its beginning."""

    def __init__(self, items: Iterator[AssetEvent]) -> None:
        self._items = items
        self._read: list[AssetEvent] = []

    def __iter__(self) -> Iterator[AssetEvent]:
        position = 0
        while True:
            if position == len(self._read):
                following = next(self._items, None)
                if following is None:
                    return
                self._read.append(following)
            yield self._read[position]
            position += 1


def _newest_first(token: Token) -> Iterator[AssetEvent]:
    """Yield all events that a token finds, each once, newest first."""
    log = PrefectLog()
    everything = PastEventQuery(token)
    streams = (itertools.chain.from_iterable(pages) for pages in (log.artifact_pages(), log.event_pages(token)))
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
    params: dict[str, str | int] = {kind: value}
    for name, moment in (("after", query.after), ("before", query.before)):
        if moment is not None:
            params[name] = moment.isoformat()
    return params
