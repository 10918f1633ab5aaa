"""A ledger on another machine, behind assetflow's API, as a source of past events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import cast
from urllib.parse import quote
from uuid import UUID

from assetflow.authoring.reading import EventQuery
from assetflow.authoring.remote import RemoteApi
from assetflow.core.codec.events import Json, event_from_json
from assetflow.core.events import AssetEvent
from assetflow.errors import ApiRefused

PAGE = 500
IDS_A_POST = 1000


class RemoteLedger:
    """Reads a ledger through its API, page by page and no more than is asked for.

    Values under keys that look like secrets are not sent: they are redacted in everything that the API answers.

    Parameters:
        connect: opens the API; the one that the settings name if nothing else is given.

    Raises (all methods):
        ApiUnreachable, ApiRefused: the API does not answer as expected.
    """

    def __init__(self, connect: Callable[[], RemoteApi] = RemoteApi.of_settings) -> None:
        self._connect = connect

    def created(self) -> datetime:
        return datetime.fromisoformat(str(self._get("/api/v1/ledger", {})["created"]))

    def count(self, query: EventQuery) -> int:
        return cast(int, self._get("/api/v1/events/count", _asked(query))["count"])

    def events(self, query: EventQuery, skip: int, take: int, *, newest_first: bool) -> Sequence[AssetEvent]:
        found: list[AssetEvent] = []
        asked = _asked(query) | {"order": "desc" if newest_first else "asc", "offset": skip}
        while len(found) < take:
            page = self._get("/api/v1/events", asked | {"limit": min(PAGE, take - len(found))})
            items = cast("Sequence[Json]", page["items"])
            found += [event_from_json(item, where="assetflow's API") for item in items]
            if page["next"] is None:
                break
            asked |= {"cursor": cast(int, page["next"]), "offset": 0}
        return found

    def known(self, ids: Sequence[UUID]) -> Collection[UUID]:
        found: set[UUID] = set()
        with self._connect() as api:
            for start in range(0, len(ids), IDS_A_POST):
                body = {"ids": [str(each) for each in ids[start : start + IDS_A_POST]]}
                found |= {UUID(each) for each in cast("Sequence[str]", api.post("/api/v1/events/known", body)["ids"])}
        return found

    def newest_sequences(self, uris: Iterable[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for uri in dict.fromkeys(uris):
            page = self._get("/api/v1/events", {"uri": uri, "limit": 1})
            for item in cast("Sequence[Mapping[str, int]]", page["items"]):
                found[uri] = item["sequence"]
        return found

    def owner_of(self, name: str) -> str | None:
        with self._connect() as api:
            answer = api.get(f"/api/v1/names/{quote(name, safe='')}")
        return None if answer is None else str(answer["uri"])

    def _get(self, path: str, params: Mapping[str, str | int]) -> Json:
        with self._connect() as api:
            answer = api.get(path, params)
            if answer is None:
                raise ApiRefused(f"there is no {path}", where=api.url, fix="Is it an assetflow of the same version?")
            return answer


def _asked(query: EventQuery) -> dict[str, str | int]:
    kind, value = query.token
    asked: dict[str, str | int] = {kind: value}
    for name, moment in (("after", query.after), ("before", query.before)):
        if moment is not None:
            asked[name] = moment.isoformat()
    return asked
