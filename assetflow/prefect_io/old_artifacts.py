"""Find and delete assetflow's old artifacts on a Prefect server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Literal, cast

from assetflow.errors import PrefectUnreachable
from assetflow.prefect_io.names import RUN_NOTE_ARTIFACT, TRIGGERING_EVENTS_ARTIFACT, UPDATE_ARTIFACT
from assetflow.prefect_io.recordings import created
from assetflow.prefect_io.rest import Json, PrefectApi
from assetflow.prefect_io.run_notes import KEY_PREFIX, TITLE

Kind = Literal["recordings", "events of runs", "notes of runs"]

PAGE = 100
ATTEMPTS = 6
FIRST_PAUSE = 0.2

_FILTERS: dict[Kind, Json] = {
    "recordings": {"type": {"any_": [UPDATE_ARTIFACT]}},
    "events of runs": {"type": {"any_": [TRIGGERING_EVENTS_ARTIFACT]}},
    "notes of runs": {"type": {"any_": [RUN_NOTE_ARTIFACT]}, "key": {"like_": KEY_PREFIX}},
}


class OldArtifacts:
    """The artifacts of one kind that were created before a moment, by the server's clock."""

    def __init__(self, api: PrefectApi, kind: Kind, before: datetime) -> None:
        self._api = api
        self._filter = _FILTERS[kind]
        self._is_note = kind == "notes of runs"
        self._before = before
        self._place = 0

    async def pages(self) -> AsyncIterator[list[Json]]:
        """Yield the artifacts in pages. If the caller deletes those of a page, the next page still follows on.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        self._place = await self._first()
        page: list[Json] | None = None
        # New artifacts move the others down: some are seen twice, none is missed.
        while page is None or len(page) == PAGE:
            page = await self._page(self._place, PAGE)
            self._place += len(page)
            yield [each for each in page if created(each) < self._before and (not self._is_note or _is_note(each))]

    async def delete(self, artifact: Json) -> None:
        """Delete an artifact of the last page, unless it is already gone.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        for attempt in range(ATTEMPTS):
            try:
                await self._api.delete(f"/artifacts/{artifact['id']}")
                break
            except PrefectUnreachable:
                # A busy server on SQLite answers 503.
                if attempt == ATTEMPTS - 1:
                    raise
                await asyncio.sleep(FIRST_PAUSE * 2**attempt)
        self._place -= 1

    async def _first(self) -> int:
        """Return the number of newer artifacts, which come first in the list, and may be very many."""
        low, high = 0, cast(int, await self._api.post("/artifacts/count", {"artifacts": self._filter}))
        while low < high:
            middle = (low + high) // 2
            found = await self._page(middle, 1)
            if found and created(found[0]) >= self._before:
                low = middle + 1
            else:
                high = middle
        return low

    async def _page(self, offset: int, limit: int) -> list[Json]:
        body = {"artifacts": self._filter, "sort": "CREATED_DESC", "limit": limit, "offset": offset}
        return cast("list[Json]", await self._api.post("/artifacts/filter", body))


def _is_note(artifact: Json) -> bool:
    key, about = str(artifact.get("key")), artifact.get("description")
    return key.startswith(KEY_PREFIX) and about == TITLE
