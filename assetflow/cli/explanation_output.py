"""Lay out explanations for a terminal: sentences, and the condition as a tree."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from assetflow.cli.output import id_cell, mark, print_json, rows, sentence, show, table, text
from assetflow.core.explain import (
    ConditionRow,
    ConsumerExplanation,
    DecisionExplanation,
    EventExplanation,
    EventSummary,
    PartitionExplanation,
    ReceiptExplanation,
    summary_of,
)
from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.explain.status import RunRead
from assetflow.core.rules.ended_runs import Failing
from assetflow.core.values.addresses import redacted
from assetflow.core.values.words import at, count, shown

# The columns that a line of a tree needs for its text. A tree that leaves less is printed as lines with their depth.
_LEAST = 50
# The largest number of consumed events to list; the others are only counted.
_MOST = 100
# The largest number of keys of a consumer to list; `assetflow plan` and `assetflow runs ls --failed` list them.
_TARGETS = 5


Explanation = ConsumerExplanation | PartitionExplanation | DecisionExplanation | EventExplanation


def show_explanation(explanation: Explanation, *, json: bool) -> None:
    """Print an explanation: laid out for the terminal, or as one JSON document."""
    if json:
        print_json(explanation)
        return
    match explanation:
        case ConsumerExplanation():
            show(*consumer_parts(explanation))
        case PartitionExplanation():
            show(*partition_parts(explanation))
        case DecisionExplanation():
            show(*decision_parts(explanation))
        case EventExplanation():
            show(*event_parts(explanation))


def consumer_parts(explanation: ConsumerExplanation) -> list[RenderableType]:
    """Lay out a consumer: its state, its condition with the facts, its partitions and decisions."""
    parts: list[RenderableType] = [
        _title(explanation.name, explanation.headline, mark(explanation.headline)[1]),
        *failing_lines(explanation.failing),
        sentence(explanation.words),
    ]
    parts += _notes(explanation.notes)
    if explanation.plan is not None:
        parts += [Text(), *_plan(explanation.plan)]
    if explanation.condition and not explanation.partitions:
        parts += [Text(), _tree(explanation.condition, facts=not explanation.partitioned)]
    for partition in explanation.partitions:
        parts += [Text(), *partition_parts(partition, events=False)]
    more = (explanation.pending_partitions or 0) - len(explanation.partitions)
    if more > 0:
        parts.append(Text(f"{count(more, 'more pending partition')}; name one with --key", "dim"))
    if explanation.next_time is not None:
        parts += [Text(), Text(f"Next time-based run: {at(explanation.next_time)}")]
    if explanation.last is not None:
        parts += [
            Text(),
            Text("Last decision", "bold"),
            sentence(explanation.last.words),
            sentence(explanation.last.run.words),
        ]
    if explanation.at is not None:
        parts += [Text(), Text("Afterwards", "bold"), sentence(explanation.next_words)]
    return parts


def failing_lines(failing: Sequence[Failing]) -> list[RenderableType]:
    """Lay out what failed and was not made good, a line each."""
    told = ((each.describe(), str(each.last.flow_run_id)[:8]) for each in failing[:_TARGETS])
    lines = [text(f"{words}. `assetflow runs show {run}` shows its run", "red") for words, run in told]
    return [*lines, *_more(len(failing) - _TARGETS, "failed key")]


def _notes(words: Iterable[str]) -> list[Text]:
    """Lay out sentences that need attention, a line each."""
    return [Text.assemble(("! ", "yellow"), shown(note)) for note in words]


def _plan(plan: PlannedConsumer) -> Iterator[RenderableType]:
    """Lay out what an Eager or Lazy consumer would run now, and what holds it back."""
    yield text(plan.words, "bold")
    for each in plan.targets[:_TARGETS]:
        key = "" if each.partition_key is None else f"{each.partition_key}: {each.words}. "
        tried = f" Its last run tried {each.tried}." if each.tried else ""
        yield text(f"{key}Looked at next: {each.looked_at}.{tried}")
    yield from _more(len(plan.targets) - _TARGETS, "key")


def partition_parts(explanation: PartitionExplanation, *, events: bool = True) -> list[RenderableType]:
    """Lay out a pending partition: its condition with received and missing keys, and its queued events."""
    parts: list[RenderableType] = [sentence(explanation.words, "bold")]
    parts += [*failing_lines(explanation.failing), *_notes(explanation.notes)]
    parts += [_tree(explanation.condition)] if explanation.condition else []
    if events and explanation.events:
        parts += [Text(), _events(explanation.events, None)]
    return parts


def decision_parts(explanation: DecisionExplanation) -> list[RenderableType]:
    """Lay out a decision: why it was made, its run, and the events that it consumed."""
    completed = None if explanation.completed_by is None else explanation.completed_by.id
    events = explanation.oldest_events(_MOST)
    parts: list[RenderableType] = [
        _title(explanation.consumer, f"decision {explanation.id}", "dim"),
        sentence(explanation.words),
        sentence(explanation.run.words),
        Text(),
        *([] if explanation.reads else [Text("Consumed", "bold"), _events(map(summary_of, events), completed)]),
        *([Text("Read", "bold"), _reads(explanation.reads)] if explanation.reads else []),
    ]
    return [*parts, *_more(explanation.consumed - len(events), "event")]


def event_parts(explanation: EventExplanation) -> list[RenderableType]:
    """Lay out an event: its origin, its extra, and each receipt."""
    event = redacted(explanation.event)
    parts: list[RenderableType] = [_title(event.asset.name, f"event {event.id}", "dim"), sentence(explanation.words)]
    facts = {"extra": event.extra, "metrics": event.metrics, "inputs": event.inputs}
    parts += [text(f"{name}: {_pairs(values)}") for name, values in facts.items() if values]
    parts += [text(f"{'passed' if each.passed else 'failed'} {each.describe()}") for each in event.checks]
    if event.aliases:
        parts.append(text(f"through the alias {', '.join(event.aliases)}"))
    parts += [Text(), Text("What consumers did with it", "bold")]
    return [
        *parts,
        *map(_receipt, explanation.receipts),
        *_more(explanation.total_receipts - len(explanation.receipts), "receipt"),
    ]


def _more(number: int, what: str) -> list[RenderableType]:
    return [Text(f"and {count(number, f'more {what}')}", "dim")] if number > 0 else []


def _title(name: str, state: str, style: str) -> Text:
    return Text.assemble((shown(name), "bold"), "  ", (state, style))


def _pairs(values: object) -> str:
    return json.dumps(values, ensure_ascii=False)


def _receipt(explanation: ReceiptExplanation) -> RenderableType:
    return Text.assemble(mark(explanation.status.replace("_", " ")), sentence(explanation.words))


def _tree(rows: Sequence[ConditionRow], *, facts: bool = True) -> RenderableType:
    """Draw the condition as a tree, with the facts beside each part unless `facts` is False."""
    if sys.stdout.isatty() and 4 * max(row.depth for row in rows) > shutil.get_terminal_size().columns - _LEAST:
        return Group(*(Text.assemble((f"{row.depth:>4} ", "dim"), _node(row, facts)) for row in rows))
    root = Tree(_node(rows[0], facts), guide_style="dim")
    path = [root]
    for row in rows[1:]:
        del path[row.depth :]
        path.append(path[-1].add(_node(row, facts)))
    return root


def _node(row: ConditionRow, facts: bool) -> Text:
    label = Text(shown(row.label), "bold" if row.is_gate else "")
    if not facts:
        return label
    explanation = sentence(f"  {row.words}", "red" if row.state == "never" else "dim")
    return Text.assemble(mark(row.state), label, explanation)


def _reads(reads: Sequence[RunRead]) -> RenderableType:
    cells = ([text(each.name), text(each.key or ""), text(each.words)] for each in reads)
    return rows(table("asset", "key", "version"), cells, empty="")


def _events(events: Iterable[EventSummary], completed: UUID | None) -> RenderableType:
    made = table("#", "asset", "key", "recorded", "by", "id", "", right=("#",), whole=("id", ""))
    cells = (_event_cells(event, event.id == completed) for event in events)
    return rows(made, cells, empty="No events.", spare=("by", "id", "recorded"))


def _event_cells(event: EventSummary, is_last: bool) -> list[Text]:
    return [
        Text("" if event.sequence is None else str(event.sequence)),
        text(event.name),
        text(event.partition_key or ""),
        Text("" if event.recorded is None else at(event.recorded)),
        text(event.source),
        id_cell(event.id),
        Text("last one needed" if is_last else ""),
    ]
