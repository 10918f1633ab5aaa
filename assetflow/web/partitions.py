"""The partitions on an asset's page: a map if the keys are times, else a list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from assetflow.api.requests import NamedAsset, Now, TheAsset, TheReader
from assetflow.core.partitions.ranges import KeySeries, series_of_keys
from assetflow.errors import InvalidPartition, MappingError
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import AssetRecord
from assetflow.operations.lookup import find_asset
from assetflow.web.pages import ThePages, url

CellState = Literal["done", "stale", "running", "failed", "missing", "absent", "due", "soon"]
KeyState = Literal["stale", "running", "failed", "missing"]
SliceState = Literal["all", "some", "none"]

# The length of the section for each kind of key: about what fits on a screen.
_SECTIONS = {
    "hour": timedelta(days=14),
    "day": timedelta(days=183),
    "week": timedelta(days=366 * 3),
    "month": timedelta(days=366 * 6),
    "quarter": timedelta(days=366 * 12),
    "year": timedelta(days=366 * 40),
}
SLICES = 48
_TITLES = {"hour": "%Y-%m-%d", "day": "%B %Y", "week": "%G", "month": "%Y", "quarter": "%Y", "year": ""}
# How the form of a backfill is told a period: of one key, and of a block.
_DAY, _MONTH = "%Y-%m-%d", "%Y-%m"
_PERIODS = {"hour": "%Y-%m-%dT%H", "day": _DAY, "week": _DAY, "month": _MONTH, "quarter": _MONTH, "year": "%Y"}
_BLOCKS = {"hour": _DAY, "day": _MONTH, "week": "%Y", "month": "%Y", "quarter": "%Y", "year": ""}
_LABELS = {"hour": "%H", "day": "%-d", "week": "%V", "month": "%b", "quarter": "", "year": "%Y"}


@dataclass(frozen=True)
class Cell:
    """One key.

    Attributes:
        period: its period, as the form of a backfill reads it.
        state: `missing` if something expects it; else `absent`, `due` while its period has not ended, and `soon`
            if it has not begun.
    """

    key: str
    label: str
    period: str
    state: CellState

    @property
    def is_open(self) -> bool:
        """True if there is something to see about it."""
        return self.state in ("done", "stale", "running", "failed", "missing")


@dataclass(frozen=True)
class CalendarBlock:
    """A day of hourly keys, a month of daily keys, or a year: the calendar's cells, after `blank` empty ones.

    Attributes:
        period: the day, month or year, as the form of a backfill reads it; "" for a block of years.
    """

    title: str
    period: str
    blank: int
    cells: list[Cell]


@dataclass(frozen=True)
class Slice:
    """A part of the bar.

    Attributes:
        at: a time in the middle of the slice; the map moves there when a user clicks the slice.
        first, last: the first and the last key of the slice.
        shown: True if the map shows a part of the slice now.
    """

    at: datetime
    first: str
    last: str
    updated: int
    keys: int
    shown: bool

    @property
    def state(self) -> SliceState:
        return "all" if self.updated >= self.keys else "some" if self.updated else "none"


@dataclass(frozen=True)
class Calendar:
    """A map of the keys around a time.

    Attributes:
        kind: hour, day, week, month, quarter or year.
        at: the time. The map fills about one screen, and does not go beyond the first and the last key.
        first, last: the days of the first and the last of all keys.
        updated: how many keys of the map were updated.
        earlier, later: the times of the previous and the next map, or `None` if there are no keys.
        bar: the whole range, if the map does not show all of it.
    """

    kind: str
    words: str
    blocks: list[CalendarBlock]
    updated: int
    at: datetime
    first: datetime
    last: datetime
    earlier: datetime | None
    later: datetime | None
    bar: list[Slice]

    @property
    def counts(self) -> Counter[CellState]:
        """How many keys of the map are in which state."""
        return Counter(cell.state for block in self.blocks for cell in block.cells)

    def keys_in(self, state: CellState) -> list[str]:
        """Return the keys of the map that are in a state."""
        return [cell.key for block in self.blocks for cell in block.cells if cell.state == state]

    @property
    def entry(self) -> str:
        """The newest key of the map that was updated or is expected: where the keyboard enters it."""
        return next((cell.key for block in reversed(self.blocks) for cell in reversed(block.cells) if cell.is_open), "")

    def has(self, key: str) -> bool:
        """Return True if the keyboard can enter the map at this key."""
        return any(cell.key == key and cell.is_open for block in self.blocks for cell in block.cells)


@dataclass(frozen=True)
class KnownKeys:
    """The keys that were updated.

    Attributes:
        ask: returns the keys between two keys (`since`, `until`).
        states: returns the states of those keys that are not just updated: stale, made now, failed, or missing.
        count: takes a list of keys, and returns how many keys lie from each one to the next, and after the last one.
    """

    first: str
    last: str
    ask: Callable[..., Collection[str]]
    states: Callable[[Collection[str], Collection[str]], Mapping[str, KeyState]]
    count: Callable[[Sequence[str]], Sequence[int]]

    def updated_among(self, wanted: Collection[str]) -> set[str]:
        """Return those of the wanted keys that were updated. The keys of a series sort as text."""
        return set(self.ask(since=min(wanted), until=max(wanted))) if wanted else set()


def calendar_of(series: KeySeries, known: KnownKeys, now: datetime, at: datetime | None) -> Calendar:
    """Return the map around a time.

    Parameters:
        at: a wall time in the time zone of the series; `None` for the newest key.
    """
    kind, start_of = series.writer.kind, series.writer.start_of
    known = _widened(series, known, now)
    first, last = _read(series, known.first), _read(series, known.last)
    at = last if at is None else min(max(at, first), last)
    start, end = _section(_SECTIONS[kind], start_of(first), last + timedelta(microseconds=1), at)
    wanted = series.between(start_of(start), end)
    there = known.updated_among(wanted)
    current = start_of(now.astimezone(ZoneInfo(series.writer.timezone)).replace(tzinfo=None))
    states = known.states(wanted.keys(), wanted.keys() - there)
    cells = {
        begin: Cell(
            key,
            _label(kind, begin),
            begin.strftime(_PERIODS[kind]),
            states.get(key) or _state(key in there, begin, current),
        )
        for key, begin in wanted.items()
    }

    earlier = at - _SECTIONS[kind] if start > start_of(first) else None
    later = at + _SECTIONS[kind] if end <= last else None
    return Calendar(
        kind=kind,
        words=series.describe(),
        blocks=_blocks(kind, cells),
        updated=len(there),
        at=at,
        first=first,
        last=last,
        earlier=None if earlier is None else max(earlier, first),
        later=None if later is None else min(later, last),
        bar=_bar(series, known, start, end) if earlier or later else [],
    )


def _read(series: KeySeries, key: str) -> datetime:
    return datetime.strptime(key, series.writer.output_format)  # noqa: DTZ007 (a wall time)


def _widened(series: KeySeries, known: KnownKeys, now: datetime) -> KnownKeys:
    """Return the same keys with a range that reaches to what is expected around them, but no further than a section."""
    size, start_of = _SECTIONS[series.writer.kind], series.writer.start_of
    first, last = start_of(_read(series, known.first)), start_of(_read(series, known.last))
    with suppress(OverflowError, MappingError, InvalidPartition):
        today = now.astimezone(ZoneInfo(series.writer.timezone)).replace(tzinfo=None)
        before = series.between(first - size, first)
        behind = series.between(last + timedelta(microseconds=1), min(last + size, max(today, last)))
        expected = known.states([], [*before, *behind])
        here = [known.first, known.last, *(key for key in (*before, *behind) if key in expected)]
        return replace(known, first=min(here), last=max(here))
    return known


def _section(size: timedelta, first: datetime, end: datetime, at: datetime) -> tuple[datetime, datetime]:
    """Return the start and the end of a section around `at`, kept within the range."""
    start = max(min(at - size / 2, end - size), first) if end - first > size else first
    return start, min(start + size, end)


def _bar(series: KeySeries, known: KnownKeys, start: datetime, end: datetime) -> list[Slice]:
    """Split the whole range into slices of the same length; `start` and `end` are those of the map."""
    write, start_of = series.writer.write_part, series.writer.start_of
    first, last = start_of(_read(series, known.first)), start_of(_read(series, known.last))
    begins = sorted({start_of(first + (last - first) * number / SLICES) for number in range(SLICES)})
    ends = [*begins[1:], last + timedelta(microseconds=1)]
    slices: list[Slice] = []
    for begin, following, updated in zip(begins, ends, known.count([write(each) for each in begins]), strict=True):
        final = start_of(following - timedelta(microseconds=1))
        keys = _periods(series.writer.kind, begin, final) + 1
        shown = begin < end and following > start
        slices.append(Slice(begin + (final - begin) / 2, write(begin), write(final), updated, keys, shown))
    return slices


def _periods(kind: str, start: datetime, end: datetime) -> int:
    """Return the number of periods between the starts of two periods."""
    months = (end.year - start.year) * 12 + end.month - start.month
    by_months = {"month": 1, "quarter": 3, "year": 12}
    by_time = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
    return months // by_months[kind] if kind in by_months else round((end - start) / by_time[kind])


def _state(there: bool, start: datetime, current: datetime) -> CellState:
    if there:
        return "done"
    return "absent" if start < current else "due" if start == current else "soon"


def _blocks(kind: str, cells: Mapping[datetime, Cell]) -> list[CalendarBlock]:
    blocks: dict[str, CalendarBlock] = {}
    for start, cell in cells.items():
        title = start.strftime(_TITLES[kind])
        period = start.strftime(_BLOCKS[kind])
        blocks.setdefault(title, CalendarBlock(title, period, _blank(kind, start), [])).cells.append(cell)
    return list(blocks.values())


def _blank(kind: str, start: datetime) -> int:
    """Return the number of empty places before the first cell of a block."""
    month = start.month - 1
    return {"hour": start.hour, "day": start.weekday(), "month": month, "quarter": month // 3}.get(kind, 0)


def _label(kind: str, start: datetime) -> str:
    if kind == "quarter":
        return f"Q{(start.month - 1) // 3 + 1}"
    return start.strftime(_LABELS[kind])


router = APIRouter()

KEYS = 200
_TOLD: tuple[KeyState, ...] = ("running", "failed", "stale")
SAMPLE = 300


@router.get("/asset/run")
def show_run_of_key(
    reader: TheReader, asset: NamedAsset, key: Annotated[str, Query(min_length=1, max_length=250)]
) -> Response:
    """Redirect to the newest run that was to make a key of an asset; without one, to the key."""
    makers = find_asset(reader, asset).users.producers.values()
    numbers = [number for each in makers if (number := reader.consumers.number_of(str(each))) is not None]
    made = [run for each in numbers for run in reader.decisions.find(consumer=each, target_key=key, limit=1)]
    if not made:
        return RedirectResponse(url("/asset", asset=asset, key=key), 303)
    return RedirectResponse(url("/decisions", max(made, key=lambda each: each.number).id), 303)


@router.get("/asset/partitions")
def show_partitions(
    request: Request,
    pages: ThePages,
    reader: TheReader,
    now: Now,
    found: TheAsset,
    key: Annotated[str, Query(max_length=250)] = "",
    at: datetime | None = None,
    after: Annotated[str, Query(max_length=250)] = "",
) -> Response:
    """Show the partitions as a part of the asset's page; the part is empty if the asset has none.

    Parameters:
        key: the key whose events the page shows; the map marks it, and is around it.
        at: the time that the map is around; by default the time of `key`, or of the newest key.
        after: list the keys after this one, if the keys are not times.
    """
    uri, producers = found.uri, found.users.producers
    keys_of = partial(reader.partitions.keys, uri)
    # Guess the format from the first and the last keys only: there may be very many.
    first, last = keys_of(limit=SAMPLE), keys_of(newest_first=True, limit=SAMPLE)
    series = series_of_keys([*first, *last])
    listed = keys_of(after=after, limit=KEYS + 1) if series is None else []
    states = _states_of(reader, found.listed.record, set(producers.values()))
    listed_states: Mapping[str, KeyState] = states(listed[:KEYS], ()) if series is None else {}
    calendar = None
    if series is not None:
        known = KnownKeys(first[0], last[0], keys_of, states, partial(reader.partitions.counts_from, uri))
        calendar = calendar_of(series, known, now, series.time_of(key) if at is None else at.replace(tzinfo=None))
    page = pages.show(
        request,
        "partitions.html",
        fragment="partitions",
        uri=uri,
        total=reader.partitions.count(uri),
        calendar=calendar,
        key=key,
        has_maker=bool(producers),
        name=found.listed.name,
        keys=listed[:KEYS],
        states=listed_states,
        states_in_words=[
            (state.capitalize(), told)
            for state in _TOLD
            if (told := [key for key, each in listed_states.items() if each == state])
        ],
        here=url("/asset/partitions", asset=uri, key=key, at=at.isoformat() if at else None, after=after),
        more=url("/asset/partitions", asset=uri, after=listed[KEYS - 1]) if len(listed) > KEYS else "",
        first=url("/asset/partitions", asset=uri) if after else "",
    )
    if at is not None:
        page.headers["hx-replace-url"] = _kept(request, uri, at)
    return page


def _states_of(
    reader: Reader, asset: AssetRecord, deployments: set[UUID]
) -> Callable[[Collection[str], Collection[str]], Mapping[str, KeyState]]:
    """Return the function that returns the states of the keys of an asset.

    Parameters:
        deployments: the flows that make it.
    """
    compares = reader.freshness.compares()
    needed = reader.freshness.keys_needed(asset.uri) if compares else set[str]()

    def states(keys: Collection[str], absent: Collection[str]) -> Mapping[str, KeyState]:
        expected = needed.intersection(absent) | reader.partitions.awaited(asset, absent)
        runs = reader.partitions.runs(asset.uri, deployments, keys) if keys else {}
        updated = set(keys) - set(absent)
        stale = reader.freshness.stale_keys(asset.uri, updated) if updated and compares else set[str]()
        found: dict[str, KeyState] = dict.fromkeys(expected, "missing")
        found |= dict.fromkeys(stale, "stale")
        return found | runs

    return states


def _kept(request: Request, uri: str, at: datetime) -> str:
    """Return the address of the asset's page with the position of its map."""
    shown = dict(parse_qsl(urlsplit(request.headers.get("hx-current-url", "")).query))
    return url("/asset", asset=uri, key=shown.get("key"), before=shown.get("before"), at=at.isoformat())
