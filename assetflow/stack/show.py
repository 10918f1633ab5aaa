"""Show the demo's result on a terminal: a table of events, decisions and runs, and the tree of what triggered what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast
from uuid import UUID

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from assetflow.core.explain.trace import drawn, line_words
from assetflow.core.values.conditions import Token
from assetflow.core.values.events import AssetEvent
from assetflow.ledger.records import DecisionRecord
from assetflow.stack.calls import FlowRun, runs_of
from assetflow.stack.summary import Json, Story


def show(story: Story, summary: Json) -> RenderableType:
    """Return all tables and the tree, one below the other."""
    ends: list[RenderableType] = [_consumers(summary), _held_back(summary), _results(summary)]
    return Group(_table(story), Text(), _trees(story), *(each for end in ends for each in (Text(), end)))


def _table(story: Story) -> Table:
    """Return a table with a row for each event and each decision that it completed, with the run that followed.

    A run's events for many partitions share a row if they completed nothing.
    """
    table = Table(title="Asset events → decisions → flow runs", box=SIMPLE_HEAD, title_justify="left")
    for column in ("event", "recorded", "decision: run of", "with", "started"):
        table.add_column(column, no_wrap=column in ("recorded", "started"), overflow="fold")
    by_last = _completed_by(story)
    for group in _groups(story.events, by_last):
        event = group[-1]
        first = [f"{_numbers(group)} {event.asset.name}", _clock(event.recorded)]
        decisions = by_last.get(event.id, [])
        if not decisions:
            table.add_row(*map(escape, first))
        for consumer, events, run in decisions:
            table.add_row(*map(escape, [*first, consumer, _numbers(events), _clock(run.started) if run else "no run"]))
            first = [""] * len(first)
    return table


def _trees(story: Story) -> Group:
    """Return what triggered what: each tree that began with an update or a run which nothing led to."""
    lines = (each for told in reversed(story.traces) for each in drawn(told))
    trees = (Text(branches + line_words(line), "red" if line.has_failed else "") for branches, line in lines)
    return Group(Text("What triggered what", style="bold"), *trees)


def _consumers(summary: Json) -> Table:
    table = Table(title="Expected and actual runs", title_justify="left", box=SIMPLE_HEAD)
    for column in ("consumer", "runs when updated", "expected", "decisions", "runs", ""):
        justify = "right" if column in ("expected", "decisions", "runs") else "left"
        table.add_column(column, justify=justify, overflow="fold")
    for entry in _entries(summary["consumers"]):
        values = (str(entry[key]) for key in ("consumer", "condition", "expected", "decisions", "runs"))
        table.add_row(*map(escape, values), _mark(entry["ok"]))
    return table


def _held_back(summary: Json) -> Group:
    """Return what checks have held back."""
    lines = (Text(line, "yellow") for line in cast("list[str]", summary["held_back"]))
    return Group(Text("Held back by checks: nobody has seen this data", style="bold"), *lines)


def _results(summary: Json) -> Table:
    table = Table(
        title="Are the numbers right? (source files counted again without Spark)",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    for column in ("check", "expected", "found", ""):
        table.add_column(column, overflow="fold")
    results = cast(Json, summary["results"])
    for entry in _entries(results["checks"]):
        table.add_row(*(escape(_plain(entry[key])) for key in ("check", "expected", "found")), _mark(entry["ok"]))
    return table


def _plain(value: object) -> str:
    """Return a number or a row of them as people write them: `2013-01, 3, 2,772`."""
    if isinstance(value, list):
        return ", ".join(map(_plain, cast("list[object]", value)))
    if isinstance(value, float) and value.is_integer():
        return _plain(int(value))
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _completed_by(story: Story) -> dict[UUID, list[tuple[str, tuple[AssetEvent, ...], FlowRun | None]]]:
    """Return, for the last event that each decision consumed or follows, those decisions with their runs."""
    found: dict[UUID, list[tuple[str, tuple[AssetEvent, ...], FlowRun | None]]] = {}
    for record, events in story.decisions:
        events = events or _followed(story, record)
        if not events:
            continue
        runs = runs_of(story.runs, record.id)
        found.setdefault(events[-1].id, []).append((record.consumer_name, events, runs[0] if runs else None))
    return found


def _followed(story: Story, record: DecisionRecord) -> tuple[AssetEvent, ...]:
    """Return the newest update that an Eager or Lazy flow reads, before its decision; nothing if new code led to it."""
    consumer = story.consumers.get(record.consumer)
    if consumer is None or all(cause.kind == "code" for cause in record.because):
        return ()
    tokens = consumer.options.input_tokens
    before = (each for each in story.events if each.recorded is not None and each.recorded <= record.made)
    read = [each for each in before if tokens & {Token("uri", each.uri), Token("name", each.asset.name)}]
    return tuple(read[-1:])


def _groups(events: Sequence[AssetEvent], by_last: Mapping[UUID, object]) -> list[list[AssetEvent]]:
    """Group the events of one run's partitions, each group up to the event that completed something."""
    groups: list[list[AssetEvent]] = []
    for event in events:
        last = groups[-1][-1] if groups else None
        if last is None or last.id in by_last or last.partition_key is None or not _same_origin(last, event):
            groups.append([])
        groups[-1].append(event)
    return groups


def _same_origin(one: AssetEvent, other: AssetEvent) -> bool:
    runs = [event.source_flow_run.id if event.source_flow_run else None for event in (one, other)]
    return one.uri == other.uri and runs[0] == runs[1]


def _numbers(events: Sequence[AssetEvent]) -> str:
    """Return the sequences of events, as in `#1 #3–#7`."""
    ranges: list[list[int]] = []
    for number in (event.sequence or 0 for event in events):
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    return " ".join("–".join(f"#{number}" for number in each) for each in ranges)


def _entries(value: object) -> list[Json]:
    return cast("list[Json]", value)


def _clock(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%H:%M:%S") if moment else ""


def _mark(ok: object) -> Text:
    return Text("yes", style="green") if ok else Text("NO", style="bold red")
