"""Print the results of commands: tables on a terminal, plain columns in a pipe, tabs, or one JSON document.

Text from users goes through `shown`: a name, key or extra must not move the cursor, change colours or hide characters.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from io import StringIO
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from cyclopts import Parameter
from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from assetflow.core.shapes import as_json
from assetflow.core.values.words import ID_IN_TEXT, Sign, ago, at, iso, short, shown, sign_of, some
from assetflow.errors import InvalidCall

if TYPE_CHECKING:
    from assetflow.ledger.read.reader import Reader

# Set by `--plain`: rows are lines whose cells are separated by tabs.
TABS: ContextVar[bool] = ContextVar("TABS", default=False)
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


# The width of a line in a pipe, where nothing has to fit on a screen.
_ENDLESS = 100_000
NOTHING_KEPT = "No flow keeps assets up to date: none has the schedule Eager, OnMissing or Lazy."
Row = Sequence[Text | str]


# The mark and the colour of each sign.
_MARKS: Mapping[Sign, tuple[str, str]] = {
    "good": ("✔", "green"),
    "busy": ("●", "cyan"),
    "bad": ("✗", "red"),
    "wait": ("○", "yellow"),
    "pause": ("■", "yellow"),
    "stale": ("▲", "yellow"),
    "outdated": ("◐", "green"),
    "missing": ("◌", "red"),
    "off": ("–", "dim"),
    "": ("·", "dim"),
}


def mark(state: str) -> tuple[str, str]:
    """Return the mark of a state, with a space behind it, and its colour."""
    sign, colour = _MARKS[sign_of(state)]
    return f"{sign} ", colour


def state_text(words: str, state: str | None = None) -> Text:
    """Return a state ready to print, in its colour.

    Parameters:
        state: the state that gives the colour, if the words say more than it.
    """
    sign = sign_of(words if state is None else state)
    return text(words, _MARKS[sign][1] if sign else "")


def text(value: object, style: str = "") -> Text:
    """Return a user's text ready to print, without markup or invisible characters."""
    return Text(shown(value), style)


def sentence(words: str, style: str = "") -> Text:
    """Return a sentence ready to print; on a terminal with the first characters of each id in it."""
    return text(ID_IN_TEXT.sub(r"\1 \2", words) if sys.stdout.isatty() else words, style)


def lines(values: Iterable[str]) -> Text:
    """Join users' texts: one below the other on a terminal, in one line in a pipe."""
    return Text(("\n" if on_screen() else ", ").join(map(shown, values)))


def print_json(document: object) -> None:
    """Print one JSON document on standard output, as ASCII: invisible characters are escaped.

    Facts in it are written as their shapes say.
    """
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False, default=as_json) + "\n")


def show(*parts: RenderableType, wide: bool | None = False) -> None:
    """Print on standard output: in colour and fitted to the width of a terminal, or plain and uncut elsewhere.

    Parameters:
        wide: also on a terminal, let lines be as long as they are.
    """
    if on_screen():
        width = _ENDLESS if wide else None
        Console(highlight=False, markup=False, emoji=False, width=width).print(*parts, sep="\n")
    else:
        sys.stdout.write("".join(f"{part}\n" for part in parts) if TABS.get() else plain(*parts))


def plain(*parts: RenderableType) -> str:
    """Render for a pipe: without colours, cut columns or blanks at the ends of lines."""
    out = StringIO()
    console = Console(file=out, width=_ENDLESS, color_system=None, highlight=False, markup=False, emoji=False)
    console.print(Group(*parts))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


@dataclass(frozen=True)
class Hanging:
    """A paragraph whose lines after the first are indented further, so that one sees where the next one begins.

    Attributes:
        indent: of the first line; `more` is what the others have in addition.
    """

    text: Text
    indent: int = 0
    more: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, line in enumerate(self.text.wrap(console, options.max_width - self.indent - self.more)):
            yield Padding.indent(line, self.indent + (self.more if number else 0))


def table(*columns: str, right: Sequence[str] = (), whole: Sequence[str] = ()) -> Table:
    """Return an empty table whose cells wrap instead of being cut.

    Parameters:
        columns: the titles of the columns.
        right: the columns to align to the right, such as numbers. They do not wrap.
        whole: further columns not to wrap, such as ids, which users copy.
    """
    on_terminal = sys.stdout.isatty()
    made = Table(
        box=box.SIMPLE_HEAD if on_terminal else None,
        # The line below the titles puts one blank between two columns.
        padding=(0, GAP - 1, 0, 0) if on_terminal else (0, 1),
        show_edge=False,
        pad_edge=False,
        header_style="bold",
    )
    for column in columns:
        justify = "right" if column in right else "left"
        made.add_column(column, justify=justify, overflow="fold", no_wrap=column in (*right, *whole))
    return made


def rows(
    titles: Sequence[str],
    cells: Iterable[Row],
    *,
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
    empty: str,
    spare: Sequence[str] = (),
    wide: bool | None = None,
) -> RenderableType:
    """Return a table of the rows, or the `empty` sentence if there are none.

    On a terminal, drop the columns without content, and fit the others into its width.

    Parameters:
        titles: the titles of the columns.
        cells: a cell for each column, for each row.
        right: the columns to align to the right, such as numbers. They do not wrap.
        whole: further columns not to wrap, such as ids, which users copy.
        empty: what to say without rows.
        spare: the columns to leave out where the terminal is too narrow, the first one first.
        wide: the command's `--wide`, as for `show`: nothing has to fit. `None` if the command has no such option.
    """
    found = list(cells)
    if TABS.get():
        lines = ("\t".join(" ".join(str(cell).split()) for cell in row) for row in (titles, *found))
        return Text("\n".join(lines))
    if not found:
        return Text(empty, "dim")
    widths: dict[int, int | None] = dict.fromkeys(range(len(titles)))
    left_out: list[str] = []
    if not wide and sys.stdout.isatty():
        columns = _columns(titles, found, (*right, *whole))
        optional = [place for title in spare for place, each in enumerate(titles) if each == title]
        widths = {**fitting(columns, Console().width, spare=optional)}
        left_out = [titles[place] for place in columns if place not in widths]
    made = table(*(titles[place] for place in widths), right=right, whole=whole)
    for column, width in zip(made.columns, widths.values(), strict=True):
        column.width = width
    for row in found:
        made.add_row(*(row[place] for place in widths))
    if not left_out:
        return made
    more = "--json prints everything" if wide is None else "--wide shows everything"
    return Group(made, Text(f"Not shown for lack of room: {some(left_out)}; {more}", "dim"))


def _columns(titles: Sequence[str], found: Sequence[Row], whole: Sequence[str]) -> dict[int, Column]:
    """Return what each column with content needs, by its place."""
    columns: dict[int, Column] = {}
    for place, title in enumerate(titles):
        texts = [str(row[place]) for row in found]
        if any(texts):
            lines = [line for each in (title, *texts) for line in each.splitlines()]
            columns[place] = measure(lines, whole=title in whole)
    return columns


def answer(
    document: object,
    titles: Sequence[str],
    cells: Iterable[Row],
    *,
    json: bool,
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
    empty: str,
    spare: Sequence[str] = (),
    wide: bool | None = None,
) -> None:
    """Print what a command has found: the document with `--json`, else the rows, laid out as `rows` does."""
    parts = [] if json else [rows(titles, cells, right=right, whole=whole, empty=empty, spare=spare, wide=wide)]
    tell(document, *parts, json=json, wide=wide)


def facts_table(facts: Iterable[tuple[str, Text]]) -> Table:
    """Return a table of names and what is known of each, without a header."""
    made = table("", "")
    made.show_header = False
    for name, value in facts:
        made.add_row(Text(name), value)
    return made


def tell(document: object, *parts: RenderableType, json: bool, wide: bool | None = None) -> None:
    """Print what a command has found: the document with `--json`, else the parts."""
    if json:
        print_json(document)
    else:
        show(*parts, wide=wide)


def on_screen() -> bool:
    """Return True if people read what is printed: on a terminal, without `--plain`."""
    return sys.stdout.isatty() and not TABS.get()


def id_cell(number: UUID | None, *, wide: bool = False) -> Text:
    """Return the cell for an id: its first characters on a terminal, which commands accept, and all elsewhere.

    Parameters:
        wide: whether the whole id is shown on a terminal too.
    """
    if number is None:
        return Text()
    return Text(str(number) if wide or not on_screen() else short(number), "dim")


def time_cell(value: datetime | None) -> Text:
    """Return the cell for a time: how long ago on a terminal, ISO 8601 in a pipe."""
    if value is None:
        return Text("–" if on_screen() else "", "dim")
    if not on_screen():
        return Text(iso(value) or "")
    return Text(ago(value, datetime.now(UTC)))


def empty_message(reader: Reader, message: str) -> str:
    """Return the message for an empty list, with a warning added if no evaluator is alive."""
    # Import what knows the ledger only here: `assetflow version` does not need it.
    from assetflow.ledger.lease import downtime

    down = downtime(reader.evaluators())
    return message if down is None else f"{message} {down}."


P = ParamSpec("P")
T = TypeVar("T")


def reads(command: Callable[Concatenate[Reader, P], T]) -> Callable[P, T]:
    """Give a command the ledger's reader as its first argument; it is open until the command has printed."""

    @wraps(command)
    def run(*given: P.args, **options: P.kwargs) -> T:
        # Import what knows the ledger only here: `assetflow version` does not need it.
        from assetflow.ledger.read.reader import Reader

        with Reader.open() as reader:
            return command(reader, *given, **options)

    signature = inspect.signature(command)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])  # pyright: ignore[reportAttributeAccessIssue]
    return run


EVERY = 2.0
# To the upper left corner, and nothing below it.
_CLEAR = "\x1b[H\x1b[J"
Watch = Annotated[bool, Parameter(help="Show it anew every two seconds, until Ctrl+C.")]

Command = Callable[..., int | None]


def watchable(command: Command) -> Command:
    """Give a command that only shows something the option `--watch`."""

    @wraps(command)
    def run(*given: Any, watch: bool = False, **options: Any) -> int | None:
        if not watch:
            return command(*given, **options)
        if not sys.stdout.isatty() or options.get("json") or options.get("plain"):
            raise InvalidCall("--watch needs a terminal", fix="Leave it out, or leave out --json and the pipe")
        return _again_and_again(lambda: command(*given, **options))

    return _with_option(run, command, "watch", Watch)


Plain = Annotated[bool, Parameter(help="Print lines whose columns are separated by tabs, uncut.")]


def lists(command: Command) -> Command:
    """Give a command that lists something the options `--watch` and `--plain`."""

    @wraps(command)
    def run(*given: Any, plain: bool = False, **options: Any) -> int | None:
        before = TABS.set(plain)
        try:
            return command(*given, **options)
        finally:
            TABS.reset(before)

    return watchable(_with_option(run, command, "plain", Plain))


def _with_option(run: Command, command: Command, name: str, kind: object) -> Command:
    """Return the function with the signature of the command and one more option; Cyclopts reads them from these."""
    signature = inspect.signature(command)
    option = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])  # pyright: ignore[reportFunctionMemberAccess]
    run.__annotations__ = command.__annotations__ | {name: kind}
    return run


def _again_and_again(print_all: Callable[[], int | None]) -> int | None:
    """Show something every two seconds until Ctrl+C, and return its last exit status."""
    status = None
    try:
        while True:
            sys.stdout.write(f"{_CLEAR}{at(datetime.now(UTC))}, every {EVERY:g} s; Ctrl+C ends it\n\n")
            status = print_all()
            sys.stdout.flush()
            sleep(EVERY)
    except KeyboardInterrupt:
        return status
