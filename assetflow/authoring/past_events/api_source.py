"""Read past events from a ledger on another machine, through assetflow's API."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast
from urllib.parse import quote
from uuid import UUID

from assetflow.authoring.past_events.reading import PastEventQuery
from assetflow.authoring.remote import RemoteApi
from assetflow.core.values.events import AssetEvent, Pin
from assetflow.core.wire.events import recorded_event_from_json
from assetflow.core.wire.fields import Json
from assetflow.errors import ApiRefused

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
