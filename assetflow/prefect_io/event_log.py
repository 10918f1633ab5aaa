"""Prefect's event log: what it stored, read by the time at which it occurred; and writing to it.

There is no filter by arrival: an event may appear up to five seconds late, with any `occurred`. Readers overlap.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from functools import partial
from typing import cast
from urllib.parse import parse_qs, urlsplit

from assetflow.prefect_io.rest import Json, PrefectApi, patiently

PAGE = 50


class EventLog:
    """The stored events of a Prefect server."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api

    async def between(self, since: datetime, until: datetime, names: Sequence[str]) -> AsyncIterator[Json]:
        """The stored events with one of these names, oldest first by `occurred`.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        body = {
            "filter": {
                "occurred": {"since": since.isoformat(), "until": until.isoformat()},
                "event": {"name": list(names)},
                "order": "ASC",
            },
            "limit": PAGE,
        }
        page = await self._api.post("/events/filter", body)
        while True:
            for event in page["events"]:
                yield event
            following = cast("str | None", page.get("next_page"))
            if not following:
                return
            # Only the token is taken over: the host in the link is the server's own idea of its name.
            token = parse_qs(urlsplit(following).query)["page-token"][0]
            page = await patiently(partial(self._api.get, "/events/filter/next", {"page-token": token}))

    async def publish(self, events: Sequence[Json]) -> None:
        """Publish events, all of them or, if one is invalid, none; answered is not yet stored.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        await self._api.post("/events", list(events))
