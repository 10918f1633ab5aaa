"""`assetflow plan`: say what Eager and Lazy consumers would run now, and what holds them back until when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.text import Text

from assetflow.cli.output import NOTHING_KEPT, empty_message, print_json, rows, show, table, text
from assetflow.cli.values import Time
from assetflow.cli.watch import watchable
from assetflow.core.explain.plan import PlannedConsumer
from assetflow.ledger.read.reader import Reader
from assetflow.operations.planning import planned


@watchable
def plan(consumer: str | None = None, /, *, key: str | None = None, at: Time | None = None, json: bool = False) -> None:
    """Show what each Eager or Lazy consumer would run now, what holds it back, and when it is looked at next.

    Parameters
    ----------
    consumer
        Only this one: flow/deployment, its id, or a flow with one consumer.
    key
        Only this key.
    at
        As of this later time, if nothing happens until then.
    json
        Print one JSON document.
    """
    with Reader.open() as reader:
        found = planned(reader, datetime.now(UTC), consumer=consumer, key=key, at=at)
        empty = empty_message(reader, NOTHING_KEPT)
    if json:
        print_json([each.as_json() for each in found])
        return
    cells = (row for each in found for row in _rows(each))
    show(rows(table("consumer", "key", "verdict", "why", "looked at next"), cells, empty=empty))


def _rows(of: PlannedConsumer) -> Iterator[list[Text]]:
    name = text(of.consumer)
    if not of.targets:
        yield [name, Text(), Text("–", "dim"), text(of.words), Text()]
    for each in of.targets:
        style = "green" if each.verdict in ("run", "in_progress") else "yellow"
        verdict = Text(each.verdict.replace("_", " "), style)
        yield [name, text(each.partition_key or ""), verdict, text(each.words), text(each.looked_at)]
    more = sum(of.counts.values()) - len(of.targets)
    if more > 0:
        yield [name, Text(f"and {more:,} more", "dim"), Text(), text(of.words), Text()]
