"""How commands print: tables for people, plain columns for pipes, one JSON document for programs.

Everything that comes from users goes through `shown`: names, keys and extras must not move the cursor, change colours
or look like another text than they are.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from io import StringIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from assetflow.core.explanation.words import ago, iso
from assetflow.core.visible import shown

# As wide as a line may get where nothing needs to fit on a screen.
_ENDLESS = 100_000
# Columns of a terminal in which a row with an id fits.
_ROOM = 90


def text(value: object, style: str = "") -> Text:
    """Text from a user as something to print: no markup, nothing invisible."""
    return Text(shown(value), style)


def lines(values: Iterable[str]) -> Text:
    """Texts from users below each other on a terminal, in one line in a pipe."""
    return Text(("\n" if sys.stdout.isatty() else ", ").join(map(shown, values)))


def print_json(document: object) -> None:
    """Print one JSON document on standard output. It is ASCII: what is invisible is escaped."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def show(*parts: RenderableType) -> None:
    """Print on standard output: in colour and fitted to a terminal, plain and uncut into anything else."""
    if sys.stdout.isatty():
        Console(highlight=False, markup=False, emoji=False).print(*parts, sep="\n")
    else:
        sys.stdout.write(plain(*parts))


def plain(*parts: RenderableType) -> str:
    """What is printed into a pipe: no colours, no cut columns, no blanks at the ends of lines."""
    out = StringIO()
    console = Console(file=out, width=_ENDLESS, color_system=None, highlight=False, markup=False, emoji=False)
    console.print(Group(*parts))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def table(*columns: str, right: Sequence[str] = (), whole: Sequence[str] = ()) -> Table:
    """A table whose cells wrap instead of being cut.

    Parameters:
        right: the columns that are aligned to the right: numbers.
        whole: the columns that do not wrap where there is room: ids, which people copy.
    """
    has_room = shutil.get_terminal_size().columns >= _ROOM
    unbroken = (*right, *whole) if has_room else right
    made = Table(box=box.SIMPLE_HEAD if sys.stdout.isatty() else None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(
            column,
            justify="right" if column in right else "left",
            overflow="fold",
            no_wrap=column in unbroken,
            # Where columns have to shrink below their titles, Rich would cut what it cannot fit in.
            min_width=len(column) if has_room else None,
        )
    return made


def rows(into: Table, cells: Iterable[Sequence[Text | str]], *, empty: str) -> RenderableType:
    """The table with these rows; a sentence instead if there are none. A terminal is spared columns without content."""
    lines = list(cells)
    if not lines:
        return Text(empty, "dim")
    if sys.stdout.isatty():
        kept = [place for place in range(len(into.columns)) if any(str(line[place]) for line in lines)]
        into.columns = [replace(into.columns[place], _index=new) for new, place in enumerate(kept)]
        lines = [[line[place] for place in kept] for line in lines]
    for line in lines:
        into.add_row(*line)
    return into


def moment(value: datetime | None, now: datetime) -> Text:
    """A time: how long ago on a terminal, ISO in a pipe."""
    if value is None:
        return Text("–" if sys.stdout.isatty() else "", "dim")
    if not sys.stdout.isatty():
        return Text(iso(value) or "")
    return Text(ago(value, now))
