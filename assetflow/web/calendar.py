"""The partitions of an asset as a map: a mark for each key of a range, with the gaps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from assetflow.core.partitions.ranges import KeySeries

CellState = Literal["done", "gap", "due", "soon"]

# How far back the map goes at first, and how far one step goes: about what fits on a screen.
_WINDOWS = {
    "hour": timedelta(days=14),
    "day": timedelta(days=183),
    "week": timedelta(days=366 * 3),
    "month": timedelta(days=366 * 6),
    "quarter": timedelta(days=366 * 12),
    "year": timedelta(days=366 * 40),
}
# Before the first key nobody misses any, so a map of a few keys is as short as they are.
_TITLES = {"hour": "%Y-%m-%d", "day": "%B %Y", "week": "%G", "month": "%Y", "quarter": "%Y", "year": ""}
_LABELS = {"hour": "%H", "day": "%-d", "week": "%V", "month": "%b", "quarter": "", "year": "%Y"}


@dataclass(frozen=True)
class Cell:
    """One key: `due` is that of the period which has not ended, `soon` one that has not begun."""

    key: str
    label: str
    state: CellState


@dataclass(frozen=True)
class Block:
    """A day of hours, a month of days, or a year: cells in order, behind so many empty places."""

    title: str
    blank: int
    cells: list[Cell]


@dataclass(frozen=True)
class Calendar:
    """A map.

    Attributes:
        kind: hour, day, week, month, quarter or year.
        missing: the keys of the range without an update, the period of now left out.
        earlier, later: the ends of the ranges before and behind, if there is something.
    """

    kind: str
    words: str
    blocks: list[Block]
    updated: int
    missing: list[str]
    earlier: datetime | None
    later: datetime | None


@dataclass(frozen=True)
class Known:
    """The keys that were updated: the first, the last, and a way to ask for those between two (`since`, `until`)."""

    first: str
    last: str
    ask: Callable[..., Collection[str]]

    def among(self, wanted: Collection[str]) -> set[str]:
        """Those of some keys of a series that were updated. The keys of a series have the order of their texts."""
        return set(self.ask(since=min(wanted), until=max(wanted))) if wanted else set()


def calendar_of(series: KeySeries, known: Known, now: datetime, until: datetime | None) -> Calendar:
    """The map that ends at `until`, or with the newest key or now.

    Parameters:
        until: a wall time of the series' zone.
    """
    kind = series.writer.kind
    today = now.astimezone(ZoneInfo(series.writer.timezone)).replace(tzinfo=None)
    format_of = series.writer.output_format
    first = datetime.strptime(known.first, format_of)  # noqa: DTZ007 (a wall time)
    last = datetime.strptime(known.last, format_of)  # noqa: DTZ007
    newest = max(last, today) + timedelta(microseconds=1)
    end = min(until or newest, newest)
    start = max(series.writer.start_of(end - _WINDOWS[kind]), series.writer.start_of(first))
    wanted = series.between(start, end)
    there = known.among(wanted)
    current = series.writer.start_of(today)
    cells = {
        start: Cell(key, _label(kind, start), _state(key in there, start, current)) for key, start in wanted.items()
    }
    return Calendar(
        kind=kind,
        words=series.describe(),
        blocks=_blocks(kind, cells),
        updated=sum(cell.state == "done" for cell in cells.values()),
        missing=[cell.key for cell in cells.values() if cell.state == "gap"],
        earlier=start if start > first else None,
        later=min(end + _WINDOWS[kind], newest) if end < newest else None,
    )


def _state(there: bool, start: datetime, current: datetime) -> CellState:
    if there:
        return "done"
    return "gap" if start < current else "due" if start == current else "soon"


def _blocks(kind: str, cells: Mapping[datetime, Cell]) -> list[Block]:
    blocks: dict[str, Block] = {}
    for start, cell in cells.items():
        title = start.strftime(_TITLES[kind])
        blocks.setdefault(title, Block(title, _blank(kind, start), [])).cells.append(cell)
    return list(blocks.values())


def _blank(kind: str, start: datetime) -> int:
    """How many places of a block lie before its first cell."""
    match kind:
        case "hour":
            return start.hour
        case "day":
            return start.weekday()
        case "month":
            return start.month - 1
        case "quarter":
            return (start.month - 1) // 3
        case _:
            return 0


def _label(kind: str, start: datetime) -> str:
    if kind == "quarter":
        return f"Q{(start.month - 1) // 3 + 1}"
    return start.strftime(_LABELS[kind])
