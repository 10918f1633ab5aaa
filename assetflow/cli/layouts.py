"""Lay out explanations, statuses, events and runs for a terminal."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from assetflow.cli.output import id_cell, mark, rows, sentence, state_text, tell, text, time_cell
from assetflow.core.explain import (
    ConditionRow,
    ConsumerExplanation,
    DecisionExplanation,
    EventExplanation,
    EventSummary,
    PartitionExplanation,
    ReceiptExplanation,
    source_of,
    summary_of,
)
from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.explain.status import AssetExplanation, DataStep, ReadVersion, RunRead, Status, short
from assetflow.core.rules.ended_runs import EndedRun, Failing
from assetflow.core.values.addresses import redact, redacted
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.words import at, count, rounded_in_words, shown
from assetflow.errors import AssetflowError
from assetflow.ledger.records import DecisionRecord
from assetflow.operations.installation import open_prefect
from assetflow.operations.needs import ListedRun
from assetflow.operations.what_if import Preview

# The columns that a line of a tree needs for its text. A tree that leaves less is printed as lines with their depth.
_LEAST = 50
# The largest number of consumed events to list; the others are only counted.
_MOST = 100
# The largest number of keys of a consumer to list; `assetflow plan` and `assetflow runs ls --failed` list them.
_TARGETS = 5
# The largest number of characters of an extra in a list.
_EXTRA = 60


Explanation = ConsumerExplanation | PartitionExplanation | DecisionExplanation | EventExplanation


def show_explanation(explanation: Explanation, *, json: bool) -> None:
    """Print an explanation: laid out for the terminal, or as one JSON document."""
    tell(explanation, *parts_of(explanation), json=json)


def parts_of(explanation: Explanation) -> list[RenderableType]:
    """Lay out an explanation."""
    match explanation:
        case ConsumerExplanation():
            return consumer_parts(explanation)
        case PartitionExplanation():
            return partition_parts(explanation)
        case DecisionExplanation():
            return decision_parts(explanation)
        case EventExplanation():
            return event_parts(explanation)


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
    told = ((each.describe().rstrip("."), each.retry) for each in failing[:_TARGETS])
    lines = [text(f"{words}. `{retry}` lets it try again", "red") for words, retry in told]
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
    parts += [text(f"{name}: {json.dumps(values, ensure_ascii=False)}") for name, values in facts.items() if values]
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
    return rows(("asset", "key", "version"), cells, empty="")


def _events(events: Iterable[EventSummary], completed: UUID | None) -> RenderableType:
    titles = ("#", "asset", "key", "recorded", "by", "id", "")
    cells = (
        [
            Text("" if event.sequence is None else str(event.sequence)),
            text(event.name),
            text(event.partition_key or ""),
            Text("" if event.recorded is None else at(event.recorded)),
            text(event.source),
            id_cell(event.id),
            Text("last one needed" if event.id == completed else ""),
        ]
        for event in events
    )
    return rows(titles, cells, right=("#",), whole=("id", ""), empty="No events.", spare=("by", "id", "recorded"))


# The exit status if the state of a policy is not known now.
UNKNOWN = 3


def show_asset(explanation: AssetExplanation, *, json: bool) -> None:
    """Print the status of an asset, what it was made from, and where its data time comes from."""
    reads = rows(
        ("input", "key", "read", "recorded", "now", "recorded", ""),
        map(_version_cells, explanation.reads),
        empty="No update of it names what it was made from.",
    )
    failed = (text(run.as_maker(), "red") for run in explanation.failed_makers)
    parts = (*status_parts(explanation), *failed, Text(), reads, *_path_parts(explanation.data_path))
    tell(explanation, *parts, json=json)


def _path_parts(path: Sequence[DataStep]) -> list[RenderableType]:
    """Lay out the path that a data time follows from; nothing if it leads nowhere."""
    if len(path) < 2:
        return []
    return [Text(), rows(("data path", "key", "data time", ""), map(_step_cells, path), whole=("data path",), empty="")]


def _step_cells(step: DataStep) -> list[Text]:
    moment = Text("current") if step.moment is None else time_cell(step.moment)
    return [text(step.name), text(step.partition_key or ""), moment, Text("source" if step.source else "", "dim")]


def status_parts(status: Status) -> list[RenderableType]:
    """Lay out the status of one asset: its state, and a line for each cause."""
    key = "" if status.partition_key is None else f" ({status.partition_key})"
    parts: list[RenderableType] = [Text.assemble(text(status.uri + key, "bold"), "  ", state_cell(status))]
    if status.producer is not None:
        parts.append(text(f"made by {status.producer}", "dim"))
    if status.freshness is not None:
        parts.append(Text.assemble("freshness: ", freshness_cell(status)))
    return [*parts, *(text(cause.words) for cause in status.causes)]


def state_cell(status: Status) -> Text:
    """Return the state with its mark, or how many keys are in which state."""
    return Text.assemble(mark(status.state), status.words)


def freshness_cell(status: Status) -> Text:
    """Return the state of an asset's policy with the age of its data; empty if it has no policy."""
    if status.freshness is None:
        return Text()
    found = state_text(status.freshness)
    if status.why:
        found.append(f": {status.why}", "magenta")
    if status.data_time == "current":
        found.append(", current", "dim")
    elif status.lag is not None:
        found.append(f", {rounded_in_words(status.lag)} old", "dim")
    if status.feasible is False:
        found.append(", cannot be held", "yellow")
    return found


def _version_cells(each: ReadVersion) -> list[Text]:
    changed = Text("" if each.same else "changed" if each.read is not None else "not read", "yellow")
    read, now = _version(each.read, each.read_recorded), _version(each.now, each.now_recorded)
    return [text(each.uri), text(each.partition_key or ""), *read, *now, changed]


def _version(version: str | None, recorded: datetime | None) -> list[Text]:
    if version is None:
        return [Text("–", "dim"), Text()]
    return [text(short(version)), time_cell(recorded)]


def events_table(found: Iterable[AssetEvent], *, empty: str, wide: bool) -> RenderableType:
    """Return a table of events.

    Parameters:
        empty: what to say without events.
        wide: the command's `--wide`.
    """
    titles = ("#", "asset", "key", "occurred", "by", "extra", "id")
    cells = (
        [
            Text(str(event.sequence)),
            text(event.asset.name),
            text(event.partition_key or ""),
            time_cell(event.occurred),
            text(source_of(event.origin)),
            Text(_shortened(event.extra)),
            id_cell(event.id, wide=wide),
        ]
        for event in found
    )
    return rows(titles, cells, right=("#",), whole=("id",), empty=empty, spare=("extra", "by", "id"), wide=wide)


def _shortened(extra: Mapping[str, object]) -> str:
    if not extra:
        return ""
    extra_text = shown(json.dumps(redact(extra), ensure_ascii=False))
    return extra_text if len(extra_text) <= _EXTRA else f"{extra_text[: _EXTRA - 1]}…"


RUN_SPARE = ("run id", "because of", "key", "run", "took", "started")
SECONDS_TO_ANSWER = 3.0


def runs_table(found: Sequence[ListedRun], *, empty: str, wide: bool = False) -> RenderableType:
    """Return a table of runs that have ended.

    Parameters:
        empty: what to say without runs.
    """
    titles = ("state", "flow", "key", "because of", "started", "took", "error", "run", "run id")
    cells = (
        [
            state_text(each.state + (", made good" if each.made_good else ""), each.outcome),
            text(each.flow),
            text(each.target_key or ""),
            text(each.because),
            time_cell(each.began),
            took(each),
            text(each.error),
            text(each.name),
            id_cell(each.flow_run_id, wide=wide),
        ]
        for each in found
    )
    return rows(titles, cells, right=("took",), empty=empty, spare=RUN_SPARE, wide=wide)


def took(each: EndedRun) -> Text:
    """Return how long a run took."""
    return Text("" if each.began is None else rounded_in_words(each.ended - each.began))


def states_now(going_on: Sequence[DecisionRecord]) -> Mapping[UUID | None, str]:
    """Return the states that Prefect has for runs that have not ended; without an answer from Prefect, none."""
    runs = [each.flow_run_id for each in going_on if each.flow_run_id is not None]
    return asyncio.run(_ask(runs)) if runs else {}


async def _ask(runs: Sequence[UUID]) -> Mapping[UUID | None, str]:
    from assetflow.prefect_io.flow_runs import MOST, run_states

    with suppress(AssetflowError, TimeoutError):
        async with asyncio.timeout(SECONDS_TO_ANSWER), open_prefect() as api:
            return {**await run_states(api, runs[:MOST])}
    return {}


def show_preview(preview: Preview, json: bool, *, meant: str = "") -> None:
    """Print what an action would lead to, as lines or as one JSON document.

    Parameters:
        meant: a sentence on what the user probably meant.
    """
    tell(preview, *map(text, (*_preview_lines(preview), *([f"  {meant}"] if meant else []))), json=json)


def _preview_lines(preview: Preview) -> Iterator[str]:
    yield "Nothing is written. This would happen:"
    if preview.known:
        yield "  nothing: the update is recorded already"
        return
    for run in preview.starts:
        yield f"  {run.consumer} runs{_for(run.target_key)} now, with {count(run.updates, 'update')}"
    for queue in preview.waits:
        yield f"  {queue.consumer}{_for(queue.target_key)} {queue.words}"
    yield from (f"  {words}" for words in preview.refused)
    if preview.is_empty:
        yield "  no consumer queues it: no deployed flow is scheduled on this asset"
    if preview.further:
        yield f"  {preview.further_words}"


def _for(target_key: str | None) -> str:
    return "" if target_key is None else f" for the partition {target_key}"
