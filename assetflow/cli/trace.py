"""`assetflow trace`: show what an update or a run led to."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.text import Text

from assetflow.cli.output import print_json, show, text
from assetflow.cli.values import AsJson, Wide
from assetflow.cli.watch import watchable
from assetflow.core.explain.trace import TraceLine, drawn, line_words
from assetflow.core.values.words import at, count
from assetflow.ledger.read.reader import Reader
from assetflow.operations.graph import trace_of


@watchable
def trace(what: str, /, *, wide: Wide = False, json: AsJson = False) -> None:
    """Show what triggered what: the runs that an update led to, what these updated, and so on.

    Parameters
    ----------
    what
        An asset by its URI or name, for its newest update; an event by its id or number; or a run by its id or that of
        its decision.
    """
    with Reader.open() as reader:
        found = trace_of(reader, what, datetime.now(UTC))
    if json:
        print_json(found)
        return
    lines = [_drawn(branches, line) for branches, line in drawn(found)]
    notes = [text(f"{count(found.left_out, 'more line')}")] if found.left_out else []
    notes += [text("It goes on further than it was followed.")] if found.is_cut else []
    show(text(f"{at(found.at)}  {found.words}"), *lines, *notes, wide=wide)


def _drawn(branches: str, line: TraceLine) -> Text:
    words = text(line_words(line), "red" if line.has_failed else "bold" if line.kind == "update" else "")
    return Text.assemble((branches, "dim"), words)
