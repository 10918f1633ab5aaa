"""Lay out the status of an asset for a terminal: its state, the causes, and the versions that were read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.text import Text

from assetflow.cli.output import mark, print_json, rows, show, state_text, table, text, time_cell
from assetflow.core.explain.status import AssetExplanation, DataStep, ReadVersion, Status, short
from assetflow.core.values.words import rounded_in_words

# The exit status if the state of a policy is not known now.
UNKNOWN = 3


def show_asset(explanation: AssetExplanation, *, json: bool) -> None:
    """Print the status of an asset, what it was made from, and where its data time comes from."""
    if json:
        print_json(explanation)
        return
    made = table("input", "key", "read", "recorded", "now", "recorded", "")
    reads = rows(made, map(_cells, explanation.reads), empty="No update of it names what it was made from.")
    failed = (text(run.as_maker(), "red") for run in explanation.failed_makers)
    show(*status_parts(explanation), *failed, Text(), reads, *_path_parts(explanation.data_path))


def _path_parts(path: Sequence[DataStep]) -> list[RenderableType]:
    """Lay out the path that a data time follows from; nothing if it leads nowhere."""
    if len(path) < 2:
        return []
    made = table("data path", "key", "data time", "", whole=("data path",))
    return [Text(), rows(made, map(_step_cells, path), empty="")]


def _step_cells(step: DataStep) -> list[Text]:
    moment = Text("current") if step.moment is None else time_cell(step.moment, datetime.now(UTC))
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


def _cells(each: ReadVersion) -> list[Text]:
    changed = Text("" if each.same else "changed" if each.read is not None else "not read", "yellow")
    read, now = _version(each.read, each.read_recorded), _version(each.now, each.now_recorded)
    return [text(each.uri), text(each.partition_key or ""), *read, *now, changed]


def _version(version: str | None, recorded: datetime | None) -> list[Text]:
    if version is None:
        return [Text("–", "dim"), Text()]
    return [text(short(version)), time_cell(recorded, datetime.now(UTC))]
