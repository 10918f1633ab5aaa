"""Which columns of a table fit on a terminal, and how wide each is.

What users copy, such as an id, is never broken: first the other columns wrap, then columns are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

# What stands between two columns.
GAP = 2
# A column that wraps is not made narrower than its longest word, up to this width.
_WORD = 22


@dataclass(frozen=True)
class Column:
    """The widths that a column needs.

    Attributes:
        least: the width below which it is left out, if it may be.
        full: the width at which nothing wraps.
    """

    least: int
    full: int


def measure(texts: Collection[str], *, whole: bool) -> Column:
    """Return what a column with these texts, its title among them, needs; if `whole`, it does not wrap."""
    full = max(map(cell_len, texts))
    longest_word = max((cell_len(word) for each in texts for word in each.split()), default=0)
    return Column(full if whole else min(longest_word, _WORD), full)


def fitting(columns: Mapping[int, Column], room: int, *, spare: Sequence[int]) -> dict[int, int]:
    """Return the columns that fit into the room, each with its width.

    Parameters:
        columns: what each needs, by its place.
        room: the width of the terminal.
        spare: the columns that may be left out, the first one first.
    """
    kept = dict(columns)
    for place in spare:
        if _together(each.least for each in kept.values()) <= room:
            break
        kept.pop(place, None)
    free = room - _together(each.least for each in kept.values())
    widths = {place: each.least for place, each in kept.items()}
    # The columns that need little more get it first.
    waiting = sorted(kept, key=lambda place: kept[place].full - kept[place].least)
    for turn, place in enumerate(waiting):
        more = max(0, min(kept[place].full - kept[place].least, free // (len(waiting) - turn)))
        widths[place] += more
        free -= more
    return widths


def _together(widths: Iterable[int]) -> int:
    each = list(widths)
    return sum(each) + GAP * (len(each) - 1)
