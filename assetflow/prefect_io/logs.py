"""Read the recordings that tasks wrote as artifacts: durable before the task ended, complete, in order of creation.

Prefect lists artifacts newest first only, and has no filter for those after a moment. If the first page does not reach
back to the moment, the reader searches for the moment's place in the list and reads from there towards the beginning.
New artifacts move the list; the pages overlap, so that none is missed.

The list is sorted by the last change, which for our artifacts is their creation: for that Prefect has an index. To sort
by creation it would read its whole table for each page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from functools import partial
from typing import cast
from uuid import UUID

from assetflow.core.values.consumers import Decision
from assetflow.core.wire import events_to_text
from assetflow.errors import PrefectRefused
from assetflow.prefect_io.answers import id_of, objects_of, unconfirmed
from assetflow.prefect_io.names import TRIGGERING_EVENTS_ARTIFACT, UPDATE_ARTIFACT, artifact_key
from assetflow.prefect_io.rest import Json, PrefectApi, patiently

PAGE = 200
OVERLAP = 20
_DECISION = "decision"


class ArtifactLog:
    """assetflow's artifacts on a Prefect server."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api

    async def updates_since(self, moment: datetime) -> AsyncIterator[Json]:
        """Yield the recordings created (or changed) at or after `moment` by the server's clock, oldest first.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        updates = _Updates(self._api)
        newest = await updates.first_page()
        if len(newest) < PAGE or _changed(newest[-1]) < moment:
            for artifact in _since(moment, newest):
                yield artifact
            return
        place = max(0, await updates.place_of(moment) - PAGE)
        reached, overlap = moment, OVERLAP
        known: set[str] = set()
        while True:
            page = await updates.page(place)
            if len(page) == PAGE and _changed(page[-1]) > reached:
                # So many were created since the last page that this page does not overlap with it.
                overlap = min(2 * overlap, PAGE // 2)
                place += overlap
                continue
            for artifact in _since(moment, page):
                if artifact["id"] not in known:
                    reached = max(reached, _changed(artifact))
                    yield artifact
            if place == 0:
                return
            known = {str(artifact["id"]) for artifact in page}
            place = max(0, place - PAGE + overlap)

    async def keep_events(self, decision: Decision, consumer: str) -> str:
        """Write the events of a decision to an artifact, once, and return the artifact's id.

        All such artifacts of a consumer have one key, so that Prefect's list shows one entry for each consumer. The
        decisions of a consumer are launched one after the other. So if a process has died after it had written the
        artifact of this decision, it is the latest with the key.

        Raises:
            PrefectUnreachable: the artifact may have been written; a retry is safe.
            PrefectRefused: Prefect itself takes no such artifact.
        """
        key = events_key(consumer)
        latest = await self._latest(key)
        if latest and decision_of(latest[0]) == decision.id:
            return str(id_of(latest[0]))
        try:
            return str(id_of(await self._api.post("/artifacts/", _artifact_of(decision, key))))
        except PrefectRefused as refusal:
            await self._latest(key)
            if not await self._api.is_prefect():
                raise unconfirmed(refusal) from refusal
            raise

    async def _latest(self, key: str) -> Sequence[Json]:
        """Return the latest artifact with the key.

        Raises:
            PrefectUnreachable: no answer, or one that is not Prefect's. Prefect refuses no such question.
        """
        # `/artifacts/{key}/latest` answers with the id of the entry in Prefect's list, which no artifact has.
        wanted = {"key": {"any_": [key]}}
        body = {"artifacts": wanted, "sort": "CREATED_DESC", "limit": 1}
        try:
            answer = await self._api.post("/artifacts/filter", body)
        except PrefectRefused as refusal:
            raise unconfirmed(refusal) from refusal
        return objects_of(answer)


def events_key(consumer: str) -> str:
    """Return the key of the artifacts with the events of a consumer's runs."""
    return f"events-{artifact_key(consumer, consumer)}"


def decision_of(artifact: Json) -> UUID | None:
    """Return the decision whose events the artifact holds, or `None`."""
    metadata = cast("Json", artifact.get("metadata_") or {})
    try:
        return UUID(str(metadata.get(_DECISION)))
    except ValueError:
        return None


def _artifact_of(decision: Decision, key: str) -> Json:
    return {
        "key": key,
        "type": TRIGGERING_EVENTS_ARTIFACT,
        "description": f"{len(decision.events)} asset events that started a run",
        "metadata_": {_DECISION: str(decision.id)},
        "data": events_to_text(decision.events),
    }


class _Updates:
    """Prefect's list of recordings, newest first."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api

    async def first_page(self) -> Sequence[Json]:
        """Return the newest recordings."""
        return await self._ask(0, PAGE)

    async def page(self, place: int) -> Sequence[Json]:
        return await patiently(partial(self._ask, place, PAGE))

    async def place_of(self, moment: datetime) -> int:
        """Return a place in the list after which every artifact is older than `moment`, at most one page too late."""
        newer, older = 0, PAGE
        while not await self._is_before(moment, older):
            newer, older = older, older * 2
        while older - newer > PAGE:
            middle = (newer + older) // 2
            if await self._is_before(moment, middle):
                older = middle
            else:
                newer = middle
        return older

    async def _is_before(self, moment: datetime, place: int) -> bool:
        found = await patiently(partial(self._ask, place, 1))
        return not found or _changed(found[0]) < moment

    async def _ask(self, place: int, limit: int) -> Sequence[Json]:
        body = {
            "artifacts": {"type": {"any_": [UPDATE_ARTIFACT]}},
            "sort": "UPDATED_DESC",
            "limit": limit,
            "offset": place,
        }
        return cast("list[Json]", await self._api.post("/artifacts/filter", body))


def _since(moment: datetime, newest_first: Sequence[Json]) -> Sequence[Json]:
    return [artifact for artifact in reversed(newest_first) if _changed(artifact) >= moment]


def _changed(artifact: Json) -> datetime:
    return datetime.fromisoformat(artifact["updated"])
