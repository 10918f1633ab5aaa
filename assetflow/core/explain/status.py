"""The status of an asset in words: whether it is up to date, and what has changed since it was made (contract 8.9)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Literal
from uuid import UUID

from assetflow.core.freshness.asset_freshness import AssetFreshness, Unjudged
from assetflow.core.freshness.data_time import DataTimes
from assetflow.core.freshness.demands import policy_inputs
from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import base_of, causes_of, items_read, items_then, target_key_of
from assetflow.core.freshness.records import Item, ItemState, ItemUpdate, Run, Target
from assetflow.core.freshness.state.state import FreshnessState
from assetflow.core.freshness.statuses import ItemCounts, Statuses
from assetflow.core.rules.ended_runs import EndedRun
from assetflow.core.shapes import called, shape
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.freshness_policy import CURRENT, DataTime, State
from assetflow.core.values.keeping import Cause
from assetflow.core.values.words import ago

MOST_CAUSES = 100
_SHORT = 10


@shape
class StatusCause:
    """Why an asset is not up to date.

    >>> from assetflow import status
    >>> def inputs_that_changed(uri: str) -> list[str]:
    ...     return [cause.uri for cause in status(uri).causes if cause.kind == "data"]

    Contract 8.9.
    """

    kind: Literal["missing", "data", "code", "dependency"]
    """`missing`: it was never made. `data`: an input has another version than the one that was read. `dependency`:
    since a deploy, its flow reads another input, or no longer reads one. `code`: its flow has another code version."""
    uri: str = ""
    """The input that changed, or the asset itself; empty for `code`."""
    partition_key: str | None = None
    read: str | None = None
    """The version that was read; of `code`, the code version that made it."""
    now: str | None = None
    """The newest version."""
    since: datetime | None = None
    """When the input changed first since it was read, UTC."""
    words: str = ""
    """The cause in words."""


@shape
class Status:
    """The status of an asset, or of one of its partitions. Contract 8.9.

    >>> from assetflow import status
    >>> def what_is_stale() -> dict[str, list[str]]:
    ...     return {each.uri: [cause.words for cause in each.causes] for each in status() if each.state == "stale"}
    """

    uri: str
    partition_key: str | None
    """The key of the partition; null for the asset as a whole."""
    state: ItemState
    """`fresh`, `stale`, or `missing`: it was never made. Of an asset with keys, `stale` or `missing` if one key is.
    `source`: no flow makes it. `unknown`: nothing compares it, because no Eager or Lazy flow needs it, or it was never
    updated."""
    outdated: bool = False
    """It is not fresh, or something further up is not."""
    causes: tuple[StatusCause, ...] = ()
    """Why it is not fresh, at most 100 causes; empty for an asset with keys as a whole."""
    counts: Mapping[ItemState, int] | None = None
    """Of an asset with keys: how many keys are in which state."""
    producer: str | None = None
    """The consumer whose declaration counts for it; null for a source."""
    freshness: State | None = None
    """The state of its freshness policy; null without a policy, and of one partition, as the next four."""
    data_time: datetime | Literal["current"] | None = None
    """Up to when it holds all data, UTC; `current` if nothing newer is known; null also if it was never made."""
    lag: timedelta | None = None
    """How old its data is, now or at the last deadline, in seconds; null also if that is not known."""
    feasible: bool | None = None
    """Whether the flows that make it are quick enough to hold its policy."""
    why: str | None = None
    """Why the state of its policy is not known now; null if it is."""

    @property
    def words(self) -> str:
        """The state in words: "stale", "3 stale, 97 fresh"."""
        if self.counts is None:
            return f"{self.state}, outdated" if self.outdated and self.state == "fresh" else self.state
        return ", ".join(f"{number:,} {state}" for state, number in self.counts.items()) or "no keys yet"


@shape
class ReadVersion:
    """An item that an output is made from: the version that was read, and the newest one."""

    uri: str
    partition_key: str | None
    read: str | None
    """The version that was read; null if none was."""
    read_recorded: datetime | None
    now: str | None
    """The newest version."""
    now_recorded: datetime | None
    same: bool

    @classmethod
    def of(cls, item: Item, read: ItemUpdate | None, now: ItemUpdate | None) -> ReadVersion:
        """Return the item with the update that was read, and the newest one; `None` if there was none."""
        versions = [(None, None) if each is None else (each.data_version, each.recorded) for each in (read, now)]
        is_same = read is not None and now is not None and read.data_version == now.data_version
        return cls(*item, *versions[0], *versions[1], is_same)

    @classmethod
    def of_events(cls, uri: str, read: AssetEvent | None, now: AssetEvent | None) -> ReadVersion:
        """Return an asset with the event that was read, and the newest one; `None` if there was none."""
        found = [(each.data_version or str(each.id), each.recorded) if each else (None, None) for each in (read, now)]
        return cls(uri, None, *found[0], *found[1], read is not None and found[0][0] == found[1][0])


class StatusExplainer:
    """Explains the status of assets, each thing worked out once.

    Parameters:
        name_of: returns the readable name of a URI.
        now: the time from which "12 min ago" counts, UTC.
        unjudged: why states of policies are not judged up to now; `None` if they are.
    """

    def __init__(
        self, book: FreshnessState, name_of: Callable[[str], str], now: datetime, unjudged: Unjudged | None = None
    ) -> None:
        self._book = book
        self._name = name_of
        self._now = now
        self._unjudged = unjudged
        self._statuses = Statuses(book, MOST_CAUSES)

    def of(self, uri: str, key: str | None = None) -> Status:
        """Return the status of an asset, or of one of its partitions."""
        found = self._compared(uri, key)
        record = self._book.policies.find(uri) if key is None and self._book.graph.policy(uri) is not None else None
        if record is None:
            return found
        told = AssetFreshness.of(uri, record, None, self._unjudged)
        return replace(
            found,
            freshness=told.record.state,
            data_time=told.data_moment if record.data_time is not CURRENT else "current",
            lag=told.lag(self._now),
            feasible=told.is_feasible,
            why=told.why or None,
        )

    def _compared(self, uri: str, key: str | None) -> Status:
        """Return the status of an asset, or of one of its partitions, by what it was made from."""
        if not self._book.concerns(uri):
            return Status(uri, key, "unknown")
        maker = self._book.graph.maker(uri)
        producer = None if maker is None else maker.consumer.name
        counts = self._statuses.counts(uri) if key is None else None
        if counts is not None:
            states: dict[ItemState, int] = {each: counts.states[each] for each in _WORST_FIRST if each in counts.states}
            return Status(uri, None, _worst(states), counts.outdated, (), states, producer)
        found = self._statuses.of(Item(uri, key))
        causes = () if maker is None else tuple(self._cause(maker, Item(uri, key), each) for each in found.causes)
        return Status(uri, key, found.state, found.outdated, causes, None, producer)

    def reads(self, uri: str, key: str | None = None) -> Sequence[ReadVersion]:
        """Return what an output is made from, at most 100 items, with the versions that were read and those of now."""
        maker = self._book.graph.maker(uri) if self._book.concerns(uri) else None
        return [] if maker is None else list(islice(self._reads(maker, Item(uri, key)), MOST_CAUSES))

    def _reads(self, maker: FlowNode, output: Item) -> Iterator[ReadVersion]:
        base = base_of(self._book, maker, output)
        for uri in sorted(maker.outputs[output.uri]):
            after = None if base is None else base.reads.get(uri)
            for item in items_read(self._book, maker, target_key_of(maker, output.key), uri):
                read = None if after is None else self._book.updates.as_of(item, after)
                yield ReadVersion.of(item, read, self._book.updates.newest(item))

    def _cause(self, maker: FlowNode, output: Item, cause: Cause) -> StatusCause:
        if cause.kind == "data":
            return self._data_cause(maker, output, Item(cause.uri, cause.key))
        if cause.kind == "code":
            base = base_of(self._book, maker, output)
            before, now = None if base is None else base.update.code_version, maker.code_versions[output.uri]
            words = f"the code changed: {before or 'no version'} → {now}"
            return StatusCause("code", read=before, now=now, words=words)
        name = self._name(cause.uri)
        if cause.kind == "missing":
            return StatusCause("missing", cause.uri, output.key, words="it was never made")
        reads = "is read since a deploy" if cause.uri in maker.inputs else "is not read any more"
        return StatusCause("dependency", cause.uri, words=f"{name} {reads}")

    def _data_cause(self, maker: FlowNode, output: Item, item: Item) -> StatusCause:
        base, newest = base_of(self._book, maker, output), self._book.updates.newest(item)
        assert base is not None, "without a base, nothing was read"
        assert newest is not None, "what changed exists"
        read = self._book.updates.as_of(item, base.reads[item.uri])
        first = self._book.updates.first(item) if read is None else self._book.updates.version_run(read).ended
        since = (first or newest).recorded
        name = self._name(item.uri) if item.key is None else f"{self._name(item.uri)} ({item.key})"
        version = short(newest.data_version)
        change = f"is new: {version}" if read is None else f"changed: {short(read.data_version)} → {version}"
        words = f"{name} {change}, {ago(since, self._now)}, {self._reading(maker, output.key, newest)}"
        before = None if read is None else read.data_version
        return StatusCause("data", *item, before, newest.data_version, since, words)

    def _reading(self, maker: FlowNode, key: str | None, newest: ItemUpdate) -> str:
        runs = self._book.runs.of_target(Target(maker.id, target_key_of(maker, key)))
        return "a run reads it now" if any(run.tried.sequence >= newest.sequence for run in runs) else "not read yet"


_WORST_FIRST: tuple[ItemState, ...] = ("stale", "missing", "fresh")


def _worst(states: Collection[ItemState]) -> ItemState:
    """Return the state of an asset with keys: the worst of theirs; an asset without a key is missing."""
    worst_first: list[ItemState] = [state for state in _WORST_FIRST if state in states]
    return worst_first[0] if worst_first else "missing"


def states_of(book: FreshnessState, uris: Collection[str]) -> dict[str, str]:
    """Return `fresh`, `outdated`, `stale` or `missing` for each of these assets that is compared with what it reads."""
    statuses = Statuses(book, 1)
    made = [uri for uri in uris if book.concerns(uri) and book.graph.maker(uri) is not None]
    book.updates.load(Item(uri) for uri in made)
    found: dict[str, str] = {}
    for uri in made:
        told = statuses.counts(uri) or statuses.of(Item(uri))
        state = _worst(told.states) if isinstance(told, ItemCounts) else told.state
        found[uri] = "outdated" if state == "fresh" and told.outdated else state
    return found


def short(version: str) -> str:
    """Return the first characters of a version: enough to tell two apart."""
    return version if len(version) <= _SHORT else f"{version[: _SHORT - 2]}…"


def stale_keys_of(book: FreshnessState, uri: str, keys: Collection[str]) -> set[str]:
    """Return those of the keys of an asset that were made from something that has changed since."""
    maker = book.graph.maker(uri) if book.concerns(uri) else None
    counts = None if maker is None else Statuses(book, 1).counts(uri)
    if maker is None or counts is None or not counts.states.get("stale"):
        return set()
    items = [Item(uri, key) for key in keys]
    book.updates.load(items)
    causes = {item.key: next(causes_of(book, maker, item), None) for item in items}
    return {key for key, cause in causes.items() if key is not None and cause is not None and cause.kind != "missing"}


@shape
class DataStep:
    """An asset, or a partition of one, on the path that a data time follows from (contract 8.12)."""

    uri: str
    name: str
    partition_key: str | None
    data_time: DataTime
    """Its data time as it was read."""
    source: bool
    """No flow makes it."""

    @property
    def moment(self) -> datetime | None:
        """The data time; `None` if it is current."""
        return self.data_time if isinstance(self.data_time, datetime) else None


@shape
class AssetExplanation(Status):
    """The status of an asset, or of one of its partitions, and what it was made from."""

    reads: Sequence[ReadVersion] = ()
    """What it is made from, at most 100 items; of an asset that nothing compares, what its newest update names."""
    data_path: Sequence[DataStep] = ()
    """From the asset to the source that its data time follows from; empty if it was never made or nothing compares it,
    and of one partition."""
    failed_makers: Sequence[EndedRun] = ()
    """The last runs of its makers that failed, and that nothing has made good."""


def explain_asset(
    book: FreshnessState,
    name_of: Callable[[str], str],
    uri: str,
    key: str | None,
    now: datetime,
    unjudged: Unjudged | None = None,
) -> AssetExplanation:
    """Explain an asset, or one of its partitions.

    Parameters:
        name_of: returns the readable name of a URI.
        now: the time from which "12 min ago" counts, UTC.
        unjudged: why states of policies are not judged up to now; `None` if they are.
    """
    explainer = StatusExplainer(book, name_of, now, unjudged)
    path = data_path(book, name_of, uri) if key is None else []
    return AssetExplanation(**vars(explainer.of(uri, key)), reads=explainer.reads(uri, key), data_path=path)


def data_path(book: FreshnessState, name_of: Callable[[str], str], uri: str) -> list[DataStep]:
    """Return the path from an asset to the source that its data time follows from; empty if it was never made."""
    if not book.concerns(uri):
        return []
    record = book.policies.find(uri)
    inputs = None if record is None else policy_inputs(book, record)
    return [
        DataStep(item.uri, name_of(item.uri), item.key, data_time, book.graph.maker(item.uri) is None)
        for item, data_time in DataTimes(book).way(uri, inputs)
    ]


MOST_READS = 100


@shape
class RunRead:
    """An input that a run read, in the version that was there when it began."""

    uri: str
    name: str
    key: str | None = field(metadata=called("partition_key"))
    before: str | None
    """The version that the run before it read; null if there was none."""
    version: str | None
    """The version that it read; null if the input was missing."""
    event_id: UUID | None
    """The update that brought this version; null if the input was missing, or only confirmed."""

    @property
    def words(self) -> str:
        """The change of the version: `a1b2 → c3d4`, `a1b2, as before`, or `missing`."""
        if self.version is None:
            return "missing"
        if self.before == self.version:
            return f"{short(self.version)}, as before"
        return f"{short(self.before) if self.before else 'not read before'} → {short(self.version)}"


def run_reads(
    book: FreshnessState, name_of: Callable[[str], str], node: FlowNode, run: Run, before: Run | None
) -> list[RunRead]:
    """Return what a run read, at most 100 items, those first that had changed since the run before it.

    Parameters:
        name_of: returns the readable name of a URI.
        before: the run of the same target before it; `None` for the first one.
    """
    found = list(islice(_reads(book, name_of, node, run, before), MOST_READS))
    return sorted(found, key=lambda each: each.before == each.version)


def _reads(
    book: FreshnessState, name_of: Callable[[str], str], node: FlowNode, run: Run, before: Run | None
) -> Iterator[RunRead]:
    for uri, mapper in sorted(run.tried.reads.items(), key=lambda each: each[0]):
        for item in items_then(book, node, mapper, run.target.key, uri, run.tried.sequence):
            read = book.updates.as_of(item, run.tried.sequence)
            old = None if before is None else book.updates.as_of(item, before.tried.sequence)
            yield RunRead(
                *(uri, name_of(uri), item.key),
                None if old is None else old.data_version,
                None if read is None else read.data_version,
                None if read is None or read.confirms else read.event,
            )
