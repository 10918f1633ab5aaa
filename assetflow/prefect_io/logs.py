"""Read the recordings that tasks wrote as artifacts: durable before the task ended, complete, in order of creation.

Prefect lists artifacts newest first only, and has no filter for those after a moment. If the first page does not reach
back to the moment, the reader searches for the moment's place in the list and reads from there towards the beginning.
New artifacts move the list; the pages overlap, so that none is missed.

The list is sorted by the last change, which for our artifacts is their creation: for that Prefect has an index. To sort
by creation it would read its whole table for each page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Literal, cast
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from assetflow.core.values.consumers import Decision
from assetflow.core.wire import events_to_text
from assetflow.errors import PrefectRefused
from assetflow.prefect_io.connection import id_of, objects_of, unconfirmed
from assetflow.prefect_io.names import RUN_NOTE_ARTIFACT, TRIGGERING_EVENTS_ARTIFACT, UPDATE_ARTIFACT, artifact_key
from assetflow.prefect_io.recordings import created
from assetflow.prefect_io.rest import Json, PrefectApi, patiently
from assetflow.prefect_io.run_notes import KEY_PREFIX, TITLE

ARTIFACTS_A_PAGE = 200
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
        newest = await self._ask(0, ARTIFACTS_A_PAGE)
        if len(newest) < ARTIFACTS_A_PAGE or _changed(newest[-1]) < moment:
            for artifact in _since(moment, newest):
                yield artifact
            return
        place = max(0, await self._place_of(moment) - ARTIFACTS_A_PAGE)
        reached, overlap = moment, OVERLAP
        known: set[str] = set()
        while True:
            page = await patiently(partial(self._ask, place, ARTIFACTS_A_PAGE))
            if len(page) == ARTIFACTS_A_PAGE and _changed(page[-1]) > reached:
                # So many were created since the last page that this page does not overlap with it.
                overlap = min(2 * overlap, ARTIFACTS_A_PAGE // 2)
                place += overlap
                continue
            for artifact in _since(moment, page):
                if artifact["id"] not in known:
                    reached = max(reached, _changed(artifact))
                    yield artifact
            if place == 0:
                return
            known = {str(artifact["id"]) for artifact in page}
            place = max(0, place - ARTIFACTS_A_PAGE + overlap)

    async def _place_of(self, moment: datetime) -> int:
        """Return a place in the list after which every recording is older than `moment`, at most one page too late."""
        newer, older = 0, ARTIFACTS_A_PAGE
        while not await self._is_before(moment, older):
            newer, older = older, older * 2
        while older - newer > ARTIFACTS_A_PAGE:
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


def _since(moment: datetime, newest_first: Sequence[Json]) -> Sequence[Json]:
    return [artifact for artifact in reversed(newest_first) if _changed(artifact) >= moment]


def _changed(artifact: Json) -> datetime:
    return datetime.fromisoformat(artifact["updated"])


EVENTS_A_PAGE = 50
PAGES_IN_A_ROW = 20
PAGE_SIZES = (EVENTS_A_PAGE, 49, 47, 43, 41)
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
        """Return which of these events are stored.

        Parameters:
            since, until: the first and the last of their `occurred`.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        occurred = {"since": since.isoformat(), "until": (until + timedelta(seconds=1)).isoformat()}
        found: set[UUID] = set()
        for first in range(0, len(ids), EVENTS_A_PAGE):
            given = {"id": {"id": [str(each) for each in ids[first : first + EVENTS_A_PAGE]]}, "occurred": occurred}
            page = cast(Json, await self._api.post("/events/filter", {"filter": given, "limit": EVENTS_A_PAGE}))
            found |= {UUID(event["id"]) for event in page["events"]}
        return found

    async def _first_page(
        self, since: datetime, until: datetime, names: Sequence[str], size: int = EVENTS_A_PAGE
    ) -> Json:
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


Kind = Literal["recordings", "events of runs", "notes of runs"]

PAGE = 100

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
        await patiently(partial(self._api.delete, f"/artifacts/{artifact['id']}"))
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
