"""Read Prefect's event log, by the time at which events occurred, and write to it.

Prefect has no filter by time of arrival, and an event may appear up to five seconds late, with any `occurred`. So the
spans that readers ask for must overlap.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import cast
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from assetflow.prefect_io.rest import Json, PrefectApi, patiently

PAGE = 50
PAGES_IN_A_ROW = 20


class EventLog:
    """The stored events of a Prefect server."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api

    async def between(self, since: datetime, until: datetime, names: Sequence[str]) -> AsyncIterator[Json]:
        """Yield the stored events with one of these names, oldest first by `occurred`.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        page = await self._first_page(since, until, names)
        pages, begun, newest = 1, since, since
        known: frozenset[str] = frozenset()
        at_newest = set[str]()
        while True:
            for event in page["events"]:
                occurred = datetime.fromisoformat(event["occurred"])
                if occurred > newest:
                    newest, at_newest = occurred, set[str]()
                at_newest.add(event["id"])
                if event["id"] not in known:
                    yield event
            following = cast("str | None", page.get("next_page"))
            if not following:
                return
            if pages >= PAGES_IN_A_ROW and newest > begun:
                # Prefect counts from the first page to reach a later one: read a long list in parts.
                page = await patiently(partial(self._first_page, newest, until, names))
                pages, begun, known = 1, newest, frozenset(at_newest)
            else:
                page = await patiently(partial(self._following_page, following))
                pages += 1

    async def number(self, since: datetime, until: datetime, names: Sequence[str]) -> int:
        """Return the number of stored events with one of these names.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        body = {"filter": _filter(since, until, names), "limit": 1}
        return int((await self._api.post("/events/filter", body))["total"])

    async def counted(
        self, since: datetime, until: datetime, names: Sequence[str], minutes: int
    ) -> Mapping[datetime, int]:
        """Return the number of stored events with one of these names for each span of `minutes` minutes.

        Prefect reads each event for this; `number` is far cheaper.

        Parameters:
            since, until: both in the past, and both the start of a span, counted from midnight.

        Returns:
            The start of each span with the number of its events.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        # Prefect includes the last moment, and fails if another span begins there.
        last = until - timedelta(microseconds=1)
        body = {"filter": _filter(since, last, names), "time_unit": "minute", "time_interval": minutes}
        stretches = cast("list[Json]", await self._api.post("/events/count-by/time", body))
        return {datetime.fromisoformat(each["start_time"]): int(each["count"]) for each in stretches}

    async def publish(self, events: Sequence[Json]) -> None:
        """Publish events: all of them or, if one is invalid, none. Prefect stores them some time after it answers.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        await self._api.post("/events", list(events))

    async def stored(self, ids: Sequence[UUID], since: datetime, until: datetime) -> set[UUID]:
        """Return which of these events, at most a page of them, are stored.

        Parameters:
            since, until: the first and the last of their `occurred`.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        occurred = {"since": since.isoformat(), "until": (until + timedelta(seconds=1)).isoformat()}
        given = {"id": {"id": [str(each) for each in ids]}, "occurred": occurred}
        page = cast(Json, await self._api.post("/events/filter", {"filter": given, "limit": PAGE}))
        return {UUID(event["id"]) for event in page["events"]}

    async def _first_page(self, since: datetime, until: datetime, names: Sequence[str]) -> Json:
        body = {"filter": _filter(since, until, names) | {"order": "ASC"}, "limit": PAGE}
        return cast(Json, await self._api.post("/events/filter", body))

    async def _following_page(self, link: str) -> Json:
        # Use only the token of the link: its host may be a name that is only known on the server.
        token = parse_qs(urlsplit(link).query)["page-token"][0]
        return cast(Json, await self._api.get("/events/filter/next", {"page-token": token}))


def _filter(since: datetime, until: datetime, names: Sequence[str]) -> dict[str, object]:
    return {
        "occurred": {"since": since.isoformat(), "until": until.isoformat()},
        "event": {"name": list(names)},
    }
