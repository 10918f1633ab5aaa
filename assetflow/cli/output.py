"""Print the results of commands: tables on a terminal, plain columns in a pipe, or one JSON document.

Text from users goes through `shown`: a name, key or extra must not move the cursor, change colours or hide characters.
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

from assetflow.core.visible import shown
from assetflow.core.words import ago, iso

# The width of a line in a pipe, where nothing has to fit on a screen.
_ENDLESS = 100_000
# The terminal width from which a row with an id fits.
_ROOM = 90


def text(value: object, style: str = "") -> Text:
    """Return a user's text ready to print, without markup or invisible characters."""
    return Text(shown(value), style)


def lines(values: Iterable[str]) -> Text:
    """Join users' texts: one below the other on a terminal, in one line in a pipe."""
    return Text(("\n" if sys.stdout.isatty() else ", ").join(map(shown, values)))


def print_json(document: object) -> None:
    """Print one JSON document on standard output, as ASCII: invisible characters are escaped."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def show(*parts: RenderableType) -> None:
    """Print on standard output: in colour and fitted to the width of a terminal, or plain and uncut elsewhere."""
    if sys.stdout.isatty():
        Console(highlight=False, markup=False, emoji=False).print(*parts, sep="\n")
    else:
        sys.stdout.write(plain(*parts))


def plain(*parts: RenderableType) -> str:
    """Render for a pipe: without colours, cut columns or blanks at the ends of lines."""
    out = StringIO()
    console = Console(file=out, width=_ENDLESS, color_system=None, highlight=False, markup=False, emoji=False)
    console.print(Group(*parts))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def table(*columns: str, right: Sequence[str] = (), whole: Sequence[str] = ()) -> Table:
    """Return an empty table whose cells wrap instead of being cut.

    Parameters:
        columns: the titles of the columns.
        right: the columns to align to the right, such as numbers.
        whole: the columns not to wrap on a wide terminal, such as ids, which users copy.
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
            # Rich would cut cells if columns had to shrink below their titles.
            min_width=len(column) if has_room else None,
        )
    return made


def rows(into: Table, cells: Iterable[Sequence[Text | str]], *, empty: str) -> RenderableType:
    """Add the rows to the table and return it, or return the `empty` sentence if there are none.

    On a terminal, drop the columns without content.
    """
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


def time_cell(value: datetime | None, now: datetime) -> Text:
    """Return the cell for a time: how long ago on a terminal, ISO 8601 in a pipe."""
    if value is None:
        return Text("–" if sys.stdout.isatty() else "", "dim")
    if not sys.stdout.isatty():
        return Text(iso(value) or "")
    return Text(ago(value, now))
