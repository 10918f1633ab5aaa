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
PAGE_SIZES = (PAGE, 49, 47, 43, 41)
# The times of Prefect's events differ by no less.
INSTANT = timedelta(microseconds=1)


class EventLog:
    """The stored events of a Prefect server."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api

    async def between(self, since: datetime, until: datetime, names: Sequence[str]) -> AsyncIterator[Json]:
        """Yield the stored events with one of these names, oldest first by `occurred`.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        page, pages = await self._first_page(since, until, names), 1
        newest, at_newest = since, set[str]()
        read_to: datetime | None = None
        while True:
            for event in page["events"]:
                if (occurred := _occurred(event)) > newest:
                    newest, at_newest = occurred, set[str]()
                if event["id"] not in at_newest:
                    at_newest.add(event["id"])
                    yield event
            following = cast("str | None", page.get("next_page"))
            if not following:
                return
            # Prefect counts from the first page to reach a later one: a long list is read in parts.
            if pages < PAGES_IN_A_ROW or newest == read_to:
                page, pages = await patiently(partial(self._following_page, following)), pages + 1
                if not page["events"] or _occurred(page["events"][0]) > newest or newest == read_to:
                    continue
            async for event in self._at(newest, names, at_newest):
                yield event
            if newest >= until:
                return
            read_to = newest
            page, pages = await patiently(partial(self._first_page, newest + INSTANT, until, names)), 1

    async def _at(self, moment: datetime, names: Sequence[str], known: set[str]) -> AsyncIterator[Json]:
        """Yield the events of one instant that are not known, and add them to those that are.

        Prefect sorts by time only. So events of one instant that end up on several pages may stand in another order on
        each, and some on no page. With pages of another size, those are others.
        """
        for size in PAGE_SIZES:
            page = await patiently(partial(self._first_page, moment, moment, names, size))
            total = int(page["total"])
            while True:
                for event in page["events"]:
                    if event["id"] not in known:
                        known.add(event["id"])
                        yield event
                following = cast("str | None", page.get("next_page"))
                if not following or len(known) >= total:
                    break
                page = await patiently(partial(self._following_page, following))
            if len(known) >= total:
                return

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

    async def _first_page(self, since: datetime, until: datetime, names: Sequence[str], size: int = PAGE) -> Json:
        body = {"filter": _filter(since, until, names) | {"order": "ASC"}, "limit": size}
        return cast(Json, await self._api.post("/events/filter", body))

    async def _following_page(self, link: str) -> Json:
        # Use only the token of the link: its host may be a name that is only known on the server.
        token = parse_qs(urlsplit(link).query)["page-token"][0]
        return cast(Json, await self._api.get("/events/filter/next", {"page-token": token}))


def _occurred(event: Json) -> datetime:
    return datetime.fromisoformat(event["occurred"])


def _filter(since: datetime, until: datetime, names: Sequence[str]) -> dict[str, object]:
    return {
        "occurred": {"since": since.isoformat(), "until": until.isoformat()},
        "event": {"name": list(names)},
    }
