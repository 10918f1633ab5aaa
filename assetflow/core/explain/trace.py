"""What triggered what: the tree from an update, or a run, down to all that it led to. Contract 7.4."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, TypeVar
from uuid import UUID

from assetflow.core.explain.events import maker_of
from assetflow.core.grouping import grouped
from assetflow.core.rules.ended_runs import FAILED
from assetflow.core.shapes import TextOrNull, called, shape
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.words import at, count, rounded_in_words, some

T = TypeVar("T")

# A tree is followed for so many levels, and to so many updates and runs.
LEVELS = 50
MOST = 2_000
LINES = 500
MEMBERS = 50


@shape
class TracedAsset:
    """An asset in a line of a tree: one that led to a run too, or one that a run updated."""

    uri: str
    name: str
    at: datetime | None = None
    """When its update was recorded."""


@shape
class TracedRun:
    """A run of a tree of causes."""

    id: UUID
    """The id of its decision; of a run that no decision asked for, its own."""
    flow: str
    key: str | None = field(metadata=called("target_key"))
    kind: str
    """`asset`, `time`, `backfill`, `eager` or `lazy`; of a run that no decision asked for `time` or `hand`, or `task`
    until its end is known."""
    made: datetime
    """When it was decided, or what it updated first was recorded."""
    flow_run_id: UUID | None
    launched: datetime | None
    ended: datetime | None
    state: str
    """The state in which it ended, as Prefect names it, or the status of its decision."""
    error: TextOrNull = ""
    """The first line of the error with which it failed."""

    @property
    def took(self) -> timedelta | None:
        return None if self.launched is None or self.ended is None else self.ended - self.launched

    @property
    def has_failed(self) -> bool:
        return self.state in FAILED or self.state == "undeliverable"


@dataclass(frozen=True)
class Led:
    """A run with what led to it.

    Attributes:
        by: the sequences of the updates in the tree that led to it.
        assets: all assets that led to it, each with the sequence of its newest update; 0 if it is not known.
    """

    run: TracedRun
    by: Sequence[int]
    assets: Sequence[tuple[int, TracedAsset]] = ()


@dataclass(frozen=True)
class Held:
    """A consumer that did not run on an update of the tree, and why: `waits: still needs customers`."""

    by: int
    flow: str
    words: str


@dataclass(frozen=True)
class Causes:
    """All that was read of some trees.

    Attributes:
        names: what assets are called, by URI.
        is_cut: there is more than was read.
    """

    updates: Sequence[AssetEvent]
    runs: Sequence[Led]
    held: Sequence[Held]
    names: Mapping[str, str]
    is_cut: bool = False


_REASONS = {"time": "by time", "hand": "by hand", "backfill": "backfill", "eager": "Eager", "lazy": "Lazy"}


@shape
class TraceLine:
    """A line of a tree of causes: an update, runs of one flow that ended alike, or consumers that did not run."""

    depth: int
    kind: Literal["update", "run", "held"]
    name: str
    """The asset, or `flow/deployment`; of several deployments, the flow."""
    id: UUID | None
    """The id of the newest update, or that of the first run."""
    at: datetime | None
    count: int = 1
    """How many updates, runs or consumers the line stands for."""
    words: str = ""
    """The keys of updates and their rows, why a run ran or failed, or why consumers did not."""
    uri: str | None = None
    source: TextOrNull = ""
    """Who made the update."""
    state: TextOrNull = ""
    least: timedelta | None = None
    """How long the shortest of the runs took."""
    most: timedelta | None = None
    runs: Sequence[TracedRun] = ()
    """The runs, at most 50."""
    joined: Sequence[TracedAsset] = ()
    """The other assets that led to the run."""
    made: Sequence[TracedAsset] = ()
    """What the runs updated that led to nothing."""

    @property
    def reason(self) -> str:
        """What its runs were started by, if that is not a queue."""
        return _REASONS.get(self.runs[0].kind, "") if self.runs else ""

    @property
    def has_failed(self) -> bool:
        return any(run.has_failed for run in self.runs)

    @property
    def is_open(self) -> bool:
        return any(run.ended is None for run in self.runs)

    @property
    def took(self) -> str:
        """How long its runs took, in words."""
        if self.least is None or self.most is None:
            return ""
        shortest, longest = rounded_in_words(self.least), rounded_in_words(self.most)
        return longest if shortest == longest else f"{shortest} to {longest}"


@shape
class Trace:
    """The tree of causes of an update or a run, line by line from its root down."""

    id: UUID
    """The id of the update or the run that it begins with."""
    at: datetime
    until: datetime | None
    """When the last thing in it happened; null while something in it goes on."""
    runs: int
    failed: int
    held: int
    """How many consumers were offered an update of it and have not run on it."""
    lines: Sequence[TraceLine]
    left_out: int
    """How many lines are not shown."""
    is_cut: bool
    """It is longer than it was followed."""

    @property
    def words(self) -> str:
        """The tree in a few words: "19 runs, 1 failed, done in 23 s"."""
        parts = [count(self.runs, "run") if self.runs else "no run"]
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{self.held} did not run"] if self.held else []
        made_nothing = self.until is not None and not any(line.kind == "update" or line.made for line in self.lines)
        parts += ["updated nothing"] if made_nothing else []
        if self.runs:
            parts.append("goes on" if self.until is None else f"done in {rounded_in_words(self.until - self.at)}")
        return ", ".join(parts)

    def cut_to(self, most: int) -> Trace:
        """Return the tree with its first lines only."""
        return replace(self, lines=self.lines[:most], left_out=self.left_out + max(0, len(self.lines) - most))


def trace(causes: Causes, updates: Sequence[AssetEvent] = (), runs: Sequence[TracedRun] = ()) -> Trace:
    """Return the tree of causes of some updates of one asset, or of some runs.

    Parameters:
        causes: what was read from these on, and maybe of other trees.
    """
    known = {each.run.id: each.run for each in causes.runs}
    runs = [known.get(run.id, run) for run in runs]
    tree = _Tree(causes, updates, runs)
    first = [Led(run, ()) for run in runs]
    lines = [*tree.of_runs(first, 0), *tree.of_updates(updates, 0)]
    begun = [*(run.made for run in runs), *map(_recorded, updates)]
    moments = [moment for run in tree.runs for moment in (run.made, run.launched, run.ended) if moment is not None]
    return Trace(
        runs[0].id if runs else updates[-1].id,
        min(begun),
        None if any(run.ended is None for run in tree.runs) else max([*begun, *moments, *tree.recorded]),
        len(tree.runs),
        sum(run.has_failed for run in tree.runs),
        sum(line.count for line in lines if line.kind == "held"),
        lines,
        0,
        causes.is_cut,
    ).cut_to(LINES)


class _Tree:
    """The updates and runs that one root led to; each run has its place below the newest update that led to it.

    Attributes:
        runs: all of them.
    """

    def __init__(self, causes: Causes, updates: Sequence[AssetEvent], runs: Sequence[TracedRun]) -> None:
        self._names = causes.names
        runs_of = ((event.source_flow_run, event) for event in causes.updates)
        self._made = grouped((run.id, event) for run, event in runs_of if run is not None)
        follow = grouped((sequence, each) for each in causes.runs for sequence in each.by)
        self._reached: dict[int, AssetEvent] = {}
        led = {run.id: Led(run, ()) for run in runs}
        waiting = [*updates, *(event for run in runs for event in self._made_by(run))]
        while waiting:
            event = waiting.pop()
            self._reached[event.sequence or 0] = event
            for each in follow.get(event.sequence or 0, ()):
                if each.run.id not in led:
                    led[each.run.id] = each
                    waiting += self._made_by(each.run)
        self.runs = [each.run for each in led.values()]
        below = ((max(self._reached.keys() & each.by, default=0), each) for each in led.values())
        self._below = grouped((newest, each) for newest, each in below if newest)
        self._held = grouped((each.by, each) for each in causes.held)

    @property
    def recorded(self) -> Iterable[datetime]:
        return map(_recorded, self._reached.values())

    def of_updates(self, updates: Iterable[AssetEvent], depth: int) -> Iterator[TraceLine]:
        """Yield a line for each asset that was updated, with all that its updates led to below it."""
        for events in _grouped(updates, lambda event: event.uri):
            last = events[-1]
            keys, rows = [event.partition_key for event in events if event.partition_key is not None], _rows(events)
            words = [count(len(keys), "key") if len(keys) > 1 else "".join(keys)]
            words += [count(len(events), "update")] if len(events) > max(1, len(keys)) else []
            words += [f"{rows:,} {'row' if rows == 1 else 'rows'}"] if rows is not None else []
            sequences = [event.sequence or 0 for event in events]
            runs = [run for sequence in sequences for run in self._below.get(sequence, ())]
            held = [each for sequence in sequences for each in self._held.get(sequence, ())]
            if not runs and not held:
                words.append("nothing runs on it")
            yield TraceLine(
                depth,
                "update",
                self._names.get(last.uri, last.asset.name),
                last.id,
                _recorded(last),
                len(events),
                ", ".join(filter(None, words)),
                last.uri,
                "" if depth else maker_of(last.origin),
            )
            yield from self.of_runs(runs, depth + 1)
            yield from _of_held(held, depth + 1)

    def of_runs(self, runs: Iterable[Led], depth: int) -> Iterator[TraceLine]:
        """Yield a line for the runs of each flow that ended alike, with what they updated below it."""
        ordered = sorted(runs, key=lambda each: (each.run.made, each.run.flow, each.run.key or ""))
        for group in _grouped(ordered, lambda each: (_flow(each.run), each.run.state, each.run.error, each.run.kind)):
            first, own = group[0].run, [each.run for each in group]
            made = [event for run in own for event in self._made_by(run)]
            on = {event.uri for event in made if self._leads_on(event)}
            times = [run.took for run in own if run.took is not None]
            flows = {run.flow for run in own}
            yield TraceLine(
                depth,
                "run",
                first.flow if len(flows) == 1 else _flow(first),
                first.id,
                min((run.launched for run in own if run.launched is not None), default=first.made),
                len(own),
                first.error,
                state=first.state,
                least=min(times, default=None),
                most=max(times, default=None),
                runs=own[:MEMBERS],
                joined=self._joined(group[0]) if depth else (),
                made=[
                    TracedAsset(uri, self._names.get(uri, uri))
                    for uri in dict.fromkeys(event.uri for event in made)
                    if uri not in on
                ],
            )
            yield from self.of_updates((event for event in made if event.uri in on), depth + 1)

    def _made_by(self, run: TracedRun) -> Sequence[AssetEvent]:
        return () if run.flow_run_id is None else self._made.get(run.flow_run_id, ())

    def _leads_on(self, event: AssetEvent) -> bool:
        place = event.sequence or 0
        return place in self._below or place in self._held

    def _joined(self, led: Led) -> Sequence[TracedAsset]:
        """Return the assets that led to a run, without the one that it stands below."""
        newest = self._reached[max(self._reached.keys() & led.by)].uri
        return [asset for _, asset in sorted(led.assets, key=lambda each: each[0]) if asset.uri != newest]


def _of_held(held: Iterable[Held], depth: int) -> Iterator[TraceLine]:
    for group in _grouped(held, lambda each: each.words):
        flows = list(dict.fromkeys(each.flow for each in group))
        yield TraceLine(depth, "held", some(flows), None, None, len(flows), group[0].words)


def line_words(line: TraceLine) -> str:
    """Return a line of a tree as text, for a terminal: "✓ orders-consumer/shop  9 s"."""
    if line.kind == "held":
        return f"◌ {line.name}  {line.words}"
    if line.kind == "update":
        by = f"by {line.source}" if line.source else ""
        return "  ".join(filter(None, (f"● {line.name}", line.words, by)))
    sign = "✕" if line.has_failed else "◌" if line.is_open else "✓" if line.state == "Completed" else "–"
    times = f"×{line.count}" if line.count > 1 else line.runs[0].key
    state = "" if line.state == "Completed" else line.state.lower()
    also = f"with {some([_joined_words(each) for each in line.joined])}" if line.joined else ""
    made = f"─▶ {some([each.name for each in line.made])}" if line.made else ""
    error = f'"{line.words}"' if line.words else ""
    return "  ".join(filter(None, (f"{sign} {line.name}", times, line.reason, state, line.took, also, error, made)))


def drawn(told: Trace) -> Iterator[tuple[str, TraceLine]]:
    """Yield each line of a tree with the branches that lead to it, as a terminal draws them."""
    # A branch goes on to the right of a line while a later line hangs on it.
    hanging: set[int] = set()
    found: list[tuple[str, TraceLine]] = []
    for line in reversed(told.lines):
        branches = "".join("│  " if depth in hanging else "   " for depth in range(1, line.depth))
        last = "" if not line.depth else "├─ " if line.depth in hanging else "└─ "
        found.append((branches + last, line))
        hanging = {depth for depth in hanging if depth < line.depth} | {line.depth}
    yield from reversed(found)


def _joined_words(asset: TracedAsset) -> str:
    return asset.name if asset.at is None else f"{asset.name} {at(asset.at)[11:19]}"


def _grouped(found: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    return list(grouped((key(each), each) for each in found).values())


def _flow(run: TracedRun) -> str:
    return run.flow.partition("/")[0]


def _recorded(event: AssetEvent) -> datetime:
    return event.recorded or event.occurred


def _rows(events: Sequence[AssetEvent]) -> int | None:
    rows = [event.metrics["rows"] for event in events if "rows" in event.metrics]
    return int(sum(rows)) if rows else None
