"""Explanations as a person reads them in a terminal: sentences, and the condition as a tree."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from assetflow.cli.output import table, text
from assetflow.core.explanation import (
    ConditionRow,
    ConsumerExplanation,
    DecisionExplanation,
    EventExplanation,
    EventSummary,
    PartitionExplanation,
    ReceiptExplanation,
    summary_of,
)
from assetflow.core.explanation.words import at, count
from assetflow.core.redaction import redacted
from assetflow.core.visible import shown

# Columns that a line of a tree needs for its text; a deeper tree is told in lines that begin with their depth.
_LEAST = 50
# Of more events of a run the rest is only counted.
_MOST = 100

_MARKS = {"satisfied": ("✔", "green"), "waiting": ("○", "yellow"), "never": ("✗", "red")}
_STATES = {
    "ready": "green",
    "running": "cyan",
    "waiting": "yellow",
    "paused": "magenta",
    "held": "magenta",
    "never": "red",
    "removed": "red",
    "time only": "cyan",
}
_RECEIPTS = {"consumed": ("✔", "green"), "queued": ("○", "yellow"), "not_mapped": ("✗", "red")}


def consumer_parts(told: ConsumerExplanation) -> list[RenderableType]:
    """A consumer: its state, its condition with the facts, its partitions and its latest decision."""
    parts: list[RenderableType] = [_title(told.name, told.state, _STATES[told.state]), text(told.words)]
    parts += [Text.assemble(("! ", "yellow"), shown(note)) for note in told.notes]
    partitioned = told.facts.consumer.schedule.is_partitioned
    if told.condition and not told.partitions:
        parts += [Text(), _tree(told.condition, facts=not partitioned)]
    for partition in told.partitions:
        parts += [Text(), *partition_parts(partition, events=False)]
    more = told.facts.partition_count - len(told.partitions)
    if partitioned and more > 0:
        parts.append(Text(f"{count(more, 'more partition')} begun; name one with --partition", "dim"))
    if told.next_time is not None:
        parts += [Text(), Text(f"Next time-based run: {at(told.next_time)}")]
    if told.last is not None:
        parts += [Text(), Text("Last decision", "bold"), text(told.last.words), text(told.last.run_words)]
    return parts


def partition_parts(told: PartitionExplanation, *, events: bool = True) -> list[RenderableType]:
    """A pending partition: its condition with received and missing keys, and what is queued."""
    parts: list[RenderableType] = [text(told.words, "bold")]
    parts.append(_tree(told.condition))
    if events and told.events:
        parts += [Text(), _events(told.events, None)]
    return parts


def decision_parts(told: DecisionExplanation) -> list[RenderableType]:
    """A decision: its story, its run, and what it consumed."""
    completed = None if told.completed_by is None else str(told.completed_by.id)
    events = told.oldest_events(_MOST)
    parts: list[RenderableType] = [
        _title(told.facts.consumer, f"decision {told.decision.id}", "dim"),
        text(told.words),
        text(told.run_words),
        Text(),
        Text("Consumed", "bold"),
        _events(map(summary_of, events), completed),
    ]
    return [*parts, *_more(told.consumed - len(events), "event")]


def event_parts(told: EventExplanation) -> list[RenderableType]:
    """An event: its origin, its extra, and each receipt."""
    event = redacted(told.event)
    parts: list[RenderableType] = [_title(event.asset.name, f"event {event.id}", "dim"), text(told.words)]
    facts = {"extra": event.extra, "metrics": event.metrics, "inputs": event.inputs}
    parts += [text(f"{name}: {_pairs(values)}") for name, values in facts.items() if values]
    if event.aliases:
        parts.append(text(f"through the alias {', '.join(event.aliases)}"))
    parts += [Text(), Text("What became of it", "bold")]
    return [*parts, *map(_receipt, told.receipts), *_more(told.total - len(told.receipts), "receipt")]


def _more(number: int, what: str) -> list[RenderableType]:
    return [Text(f"and {count(number, f'more {what}')}", "dim")] if number > 0 else []


def _title(name: str, state: str, style: str) -> Text:
    return Text.assemble((shown(name), "bold"), "  ", (state, style))


def _pairs(values: object) -> str:
    return json.dumps(values, ensure_ascii=False)


def _receipt(told: ReceiptExplanation) -> RenderableType:
    mark, style = _RECEIPTS.get(told.receipt.status, ("–", "dim"))
    return Text.assemble((f"{mark} ", style), shown(told.words))


def _tree(rows: Sequence[ConditionRow], *, facts: bool = True) -> RenderableType:
    """The condition with its facts beside it; without facts as it stands in the schedule."""
    if sys.stdout.isatty() and 4 * max(row.depth for row in rows) > shutil.get_terminal_size().columns - _LEAST:
        return Group(*(Text.assemble((f"{row.depth:>4} ", "dim"), _node(row, facts)) for row in rows))
    root = Tree(_node(rows[0], facts), guide_style="dim")
    path = [root]
    for row in rows[1:]:
        del path[row.depth :]
        path.append(path[-1].add(_node(row, facts)))
    return root


def _node(row: ConditionRow, facts: bool) -> Text:
    mark, style = _MARKS[row.state]
    label = Text(shown(row.label), "bold" if row.is_gate else "")
    if not facts:
        return label
    told = (f"  {shown(row.words)}", "red" if row.state == "never" else "dim")
    return Text.assemble((f"{mark} ", style), label, told)


def _events(events: Iterable[EventSummary], completed: str | None) -> RenderableType:
    made = table("#", "asset", "key", "recorded", "by", "id", "", right=("#",), whole=("id",))
    for event in events:
        recorded = "" if event.recorded is None else at(event.recorded)
        note = Text("completed it", "green") if event.id == completed else Text()
        made.add_row(
            Text("" if event.sequence is None else str(event.sequence)),
            text(event.name),
            text(event.partition_key or ""),
            Text(recorded),
            text(event.source),
            Text(event.id, "dim"),
            note,
        )
    return made
