"""Find what changed among many objects of a Prefect server since the last call, without reading them all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Generic, Protocol, TypeVar, cast
from uuid import UUID

from assetflow.core.wire.deployments import DeployedChanges
from assetflow.prefect_io.rest import Json, PrefectApi

FIRST_PAGE = 20
PAGE = 200
LOOKS_UNTIL_ALL = 120


class Changeable(Protocol):
    """An object with an id, and the time of its last change in Prefect."""

    @property
    def id(self) -> UUID: ...
    @property
    def updated(self) -> datetime | None: ...


T = TypeVar("T", bound=Changeable)


class ChangeFeed(Generic[T]):
    """Reads the objects below one path of the API, latest changes first.

    If nothing has changed, a call costs two small requests: the first page, and the number of objects. Now and then a
    call reads everything, in case two changes became visible in the wrong order.

    Parameters:
        api: Prefect's API.
        path: the path above `/filter` and `/count`, such as `/deployments`.
        read: makes an object from its JSON.
        chosen: the API's filter for the objects.
    """

    def __init__(self, api: PrefectApi, path: str, read: Callable[[Json], T], chosen: Json | None = None) -> None:
        self._api = api
        self._path = path
        self._parse = read
        self._chosen = dict(chosen or {})
        self._stamps: dict[UUID, datetime | None] = {}
        self._looks = 0

    async def changes(self) -> DeployedChanges[T]:
        """Return the changes since the last call; the first call returns everything.

        An object counts as deleted only when Prefect says so for its id: a list without it may have been cut short.

        Raises:
            PrefectUnreachable, PrefectRefused: no change is lost, the next call returns it.
        """
        everything = not self._stamps or self._looks >= LOOKS_UNTIL_ALL
        found, complete = await self._read(everything)
        if not complete and await self._count() != len(self._stamps.keys() | found.keys()):
            found, complete = await self._read(everything=True)
        gone: list[UUID] = []
        if complete:
            for each in sorted(self._stamps.keys() - found.keys()):
                entry = await self.find(each)
                if entry is None:
                    gone.append(each)
                else:
                    found[each] = entry
        return self._take(found, gone, complete)

    async def changed_since(self, moment: datetime) -> list[T]:
        """Return the objects that changed after `moment`, latest change first. `changes` returns them too.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        found: list[T] = []
        while True:
            limit = PAGE if found else FIRST_PAGE
            page = await self._page(limit, len(found))
            found += page
            if len(page) < limit or any(each.updated is not None and each.updated < moment for each in page):
                return [each for each in found if each.updated is None or each.updated >= moment]

    async def find(self, number: UUID) -> T | None:
        """Return the object with this id, or `None` if Prefect does not know it."""
        row = await self._api.get(f"{self._path}/{number}")
        return None if row is None else self._parse(row)

    def _take(self, found: dict[UUID, T], gone: list[UUID], complete: bool) -> DeployedChanges[T]:
        changed = [entry for entry in found.values() if self._is_changed(entry)]
        self._stamps.update({entry.id: entry.updated for entry in changed})
        for each in gone:
            self._stamps.pop(each, None)
        self._looks = 0 if complete else self._looks + 1
        # The changes were read latest first.
        return DeployedChanges(changed[::-1], gone)

    def _is_changed(self, entry: T) -> bool:
        return entry.id not in self._stamps or self._stamps[entry.id] != entry.updated

    async def _read(self, everything: bool) -> tuple[dict[UUID, T], bool]:
        """Return the latest objects by id, back to the last known change, and True if these are all objects."""
        found: dict[UUID, T] = {}
        while True:
            limit = PAGE if everything or found else FIRST_PAGE
            page = await self._page(limit, len(found))
            found.update({entry.id: entry for entry in page if entry.id not in found})
            if len(page) < limit:
                return found, True
            if not everything and not any(map(self._is_changed, page)):
                return found, False

    async def _page(self, limit: int, offset: int) -> list[T]:
        body = {"sort": "UPDATED_DESC", "limit": limit, "offset": offset, **self._chosen}
        rows = cast("list[Json]", await self._api.post(f"{self._path}/filter", body) or [])
        return [self._parse(row) for row in rows]

    async def _count(self) -> int:
        return cast(int, await self._api.post(f"{self._path}/count", self._chosen))
