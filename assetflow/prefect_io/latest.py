"""What changed among many things of a Prefect server since the last look, without reading them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar, cast
from uuid import UUID

from assetflow.prefect_io.rest import Json, PrefectApi

FIRST_PAGE = 20
PAGE = 200
LOOKS_UNTIL_ALL = 120


class Changing(Protocol):
    """Something with an id that Prefect stamps whenever it changes."""

    @property
    def id(self) -> UUID: ...
    @property
    def updated(self) -> datetime | None: ...


T = TypeVar("T", bound=Changing)


@dataclass(frozen=True)
class Changes(Generic[T]):
    """What a look brought: things that are new or changed, the oldest change first, and ids that are gone."""

    changed: Sequence[T] = ()
    gone: Sequence[UUID] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.gone)


class Latest(Generic[T]):
    """Looks at the things below one path of the API, the latest changes first.

    A look at which nothing changed costs two small requests: the first page, and how many there are. Now and then it
    reads everything, should two changes have become visible in the wrong order.

    Parameters:
        path: `/deployments`; `/filter` and `/count` are below it.
        read: makes a thing from its JSON.
        chosen: the filter that chooses the things, in the words of the API.
    """

    def __init__(self, api: PrefectApi, path: str, read: Callable[[Json], T], chosen: Json | None = None) -> None:
        self._api = api
        self._path = path
        self._to_thing = read
        self._chosen = dict(chosen or {})
        self._stamps: dict[UUID, datetime | None] = {}
        self._looks = 0

    async def changes(self) -> Changes[T]:
        """What changed since the last call; everything at the first.

        A thing is gone only when Prefect says so for its own id: a list that lacks it may have been cut short.

        Raises:
            PrefectUnreachable, PrefectRefused: nothing is lost, the next call tells it.
        """
        everything = not self._stamps or self._looks >= LOOKS_UNTIL_ALL
        found, complete = await self._read(everything)
        if not complete and await self._count() != len(self._stamps.keys() | found.keys()):
            found, complete = await self._read(everything=True)
        gone: list[UUID] = []
        if complete:
            for each in sorted(self._stamps.keys() - found.keys()):
                thing = await self.find(each)
                if thing is None:
                    gone.append(each)
                else:
                    found[each] = thing
        return self._take(found, gone, complete)

    async def changed_since(self, moment: datetime) -> list[T]:
        """Those that changed after a time, the latest change first; `changes` tells them too.

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
        """The thing with this id; none if Prefect has no such thing."""
        row = await self._api.get(f"{self._path}/{number}")
        return None if row is None else self._to_thing(row)

    def _take(self, found: dict[UUID, T], gone: list[UUID], complete: bool) -> Changes[T]:
        changed = [thing for thing in found.values() if self._is_news(thing)]
        self._stamps.update({thing.id: thing.updated for thing in changed})
        for each in gone:
            self._stamps.pop(each, None)
        self._looks = 0 if complete else self._looks + 1
        # The latest change was read first.
        return Changes(changed[::-1], gone)

    def _is_news(self, thing: T) -> bool:
        return thing.id not in self._stamps or self._stamps[thing.id] != thing.updated

    async def _read(self, everything: bool) -> tuple[dict[UUID, T], bool]:
        """The latest things by id, back to where nothing is news; whether that is all there are."""
        found: dict[UUID, T] = {}
        while True:
            limit = PAGE if everything or found else FIRST_PAGE
            page = await self._page(limit, len(found))
            found.update({thing.id: thing for thing in page if thing.id not in found})
            if len(page) < limit:
                return found, True
            if not everything and not any(map(self._is_news, page)):
                return found, False

    async def _page(self, limit: int, offset: int) -> list[T]:
        body = {"sort": "UPDATED_DESC", "limit": limit, "offset": offset, **self._chosen}
        rows = cast("list[Json]", await self._api.post(f"{self._path}/filter", body) or [])
        return [self._to_thing(row) for row in rows]

    async def _count(self) -> int:
        return cast(int, await self._api.post(f"{self._path}/count", self._chosen))
