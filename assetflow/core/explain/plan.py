"""What Eager and Lazy flows would run now, what holds them back, and their next look, in words (contract 8.16)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime

from assetflow.core.freshness.deciding import plan
from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.records import Item, Run, Target, Verdict, VerdictName
from assetflow.core.freshness.state.state import FreshnessState
from assetflow.core.grouping import grouped
from assetflow.core.shapes import HIDDEN, called, shape
from assetflow.core.values.keeping import causes_in_words
from assetflow.core.values.words import at, count, joined, some

MOST_TARGETS = 50

# The order in which a plan shows targets, and in which it looks for them if there are many.
_ORDER: tuple[VerdictName, ...] = (
    *("run", "in_progress", "owed", "waits", "retry", "missing_input", "backfill", "paused"),
    *("tried", "waived", "history", "ignored", "no_gain", "not_needed"),
)
_WORDS: Mapping[VerdictName, str] = {
    "run": "It would run now",
    "in_progress": "It runs",
    "owed": "Newer keys go first (catchup)",
    "paused": "It is paused",
    "backfill": "A backfill makes it",
    "history": "Too old: only the newest keys run (lookback)",
    "missing_input": "It misses an input",
    "tried": "The last run had the same inputs",
    "waived": "Skipped by catchup",
    "retry": "Its last run failed",
    "waits": "It waits",
    "ignored": "What has changed starts no runs",
    "not_needed": "No freshness policy needs it now",
    "no_gain": "Nothing new to read",
}
_LOOK: Mapping[VerdictName, str] = {
    "run": "now",
    "in_progress": "when the run ends",
    "owed": "when runs of greater keys end",
    "paused": "when it is resumed",
    "backfill": "when the backfill is done with it",
    "history": "when it is among the newest keys",
    "tried": "when an input or the code changes",
    "waived": "when an input or the code changes",
    "ignored": "when something changes that starts runs",
    "not_needed": "when a policy is due",
    "no_gain": "when an input changes",
}


@shape
class PlannedTarget:
    """The plan for a consumer, or for one of its keys, and why.

    >>> from assetflow.testing import Harness
    >>> def test_it_waits_for_its_input(h: Harness):
    ...     (target,) = h.plan("core/test").targets
    ...     assert target.verdict == "missing_input", target.words

    Contract 8.16.
    """

    partition_key: str | None = field(metadata=called("target_key"))
    """The target key; null for a plain consumer."""
    verdict: VerdictName
    """`run`, or what holds it back."""
    words: str
    """The same in words, with the causes."""
    looked_at: str
    """When it is looked at next, in words."""
    look: datetime | None = None
    """The same as an instant, UTC, if only the time has to pass."""
    state: str = field(default="", metadata=HIDDEN)
    """The verdict without its causes."""
    tried: str = field(default="", metadata=HIDDEN)
    """What its last run tried, and how often that failed, in words; "" before a run has ended."""


@shape
class PlannedConsumer:
    """The plan for the targets of one Eager or Lazy consumer.

    >>> from assetflow.testing import Harness
    >>> def test_nothing_is_left_to_do(h: Harness):
    ...     assert [plan.consumer for plan in h.plan() if plan.targets] == []

    Contract 8.16.
    """

    consumer: str
    """`flow/deployment`."""
    schedule: str
    """When it runs, in words."""
    words: str
    """The plan of the consumer in a sentence."""
    targets: Sequence[PlannedTarget]
    """Those that are out of date, or run, at most 50; those that would run come first."""
    counts: Mapping[str, int]
    """How many targets there are by verdict, as the last pass left them; up-to-date ones are left out."""
    total_targets: int
    """How many targets there are, with those that are up to date."""

    @property
    def is_up_to_date(self) -> bool:
        """True if it has targets, none of which is out of date or runs."""
        return bool(self.total_targets) and not self.targets

    @property
    def state(self) -> str:
        """The plan in a few words, for a list: `up to date`, `waits for core/lake`, `3 keys running`."""
        if not self.targets:
            return "up to date" if self.total_targets else "no keys yet"
        first = self.targets[0]
        if first.partition_key is None:
            words = first.state.removeprefix("It ")
            return f"{words[:1].lower()}{words[1:]}"
        number = self.counts.get(first.verdict) or sum(each.verdict == first.verdict for each in self.targets)
        return f"{count(number, 'key')} {IN_SHORT[first.verdict]}"


IN_SHORT: Mapping[VerdictName, str] = {
    "run": "would run now",
    "in_progress": "running",
    "owed": "after newer keys",
    "paused": "held back by the pause",
    "backfill": "in a backfill",
    "history": "too old for the lookback",
    "missing_input": "missing an input",
    "tried": "tried with the same inputs",
    "waived": "skipped by catchup",
    "retry": "waiting for a retry",
    "waits": "waiting for others",
    "ignored": "with changes that start no runs",
    "not_needed": "not needed now",
    "no_gain": "without anything new to read",
}


def explain_plan(
    book: FreshnessState,
    name_of: Callable[[str], str],
    now: datetime,
    consumers: Collection[int] | None = None,
    key: str | None = None,
) -> list[PlannedConsumer]:
    """Return what would be done now with the Eager and Lazy consumers, and what holds them back; start nothing.

    Parameters:
        name_of: returns the readable name of a URI.
        consumers: only these; all by default.
        key: only this target key, of the consumers that have it; all by default.
    """
    wanted = [node for node in book.graph.all() if consumers is None or node.id in consumers]
    keepers = [node for node in wanted if node.keeping is not None]
    if key is None:
        targets = [target for node in keepers for target in _open_targets(book, node)]
    else:
        keepers = [node for node in keepers if book.readings.has(Target(node.id, key))]
        targets = [Target(node.id, key) for node in keepers]
    found = grouped((verdict.target.consumer, verdict) for verdict in plan(book, now, targets))
    words = _Words(book, name_of, now, is_whole=key is None)
    return [
        words.consumer(node, found.get(node.id, ())) for node in sorted(keepers, key=lambda node: node.consumer.name)
    ]


def _open_targets(book: FreshnessState, node: FlowNode) -> list[Target]:
    """Return the targets that are not up to date as the last pass left them, at most `MOST_TARGETS`."""
    if not node.is_partitioned:
        return [Target(node.id)]
    found = {run.target: None for run in book.runs.of(node.id)}
    for name in _ORDER:
        if len(found) < MOST_TARGETS:
            found |= dict.fromkeys(book.targets.with_verdict(name, node.id, MOST_TARGETS))
    return list(found)[:MOST_TARGETS]


def _in_a_sentence(targets: Sequence[PlannedTarget], counts: Mapping[str, int], known: int) -> str:
    if not targets:
        return "Everything is up to date." if known else "It has no keys yet."
    if targets[0].partition_key is None:
        return f"{targets[0].words}."
    parts = [f"{number:,} {IN_SHORT[name]}" for name in _ORDER if (number := counts.get(name, 0))]
    return f"Of {known:,} {'key' if known == 1 else 'keys'}: {joined(parts)}."


def _times(failures: int) -> str:
    """Return how often something failed, if not once."""
    return "" if failures == 1 else f" {failures} times in a row"


class _Words:
    def __init__(self, book: FreshnessState, name_of: Callable[[str], str], now: datetime, *, is_whole: bool) -> None:
        self._now = now
        self._is_whole = is_whole
        self._book = book
        self._name = name_of
        self._owed: dict[int, list[str]] = {}

    def consumer(self, node: FlowNode, verdicts: Sequence[Verdict]) -> PlannedConsumer:
        ordered = sorted(verdicts, key=lambda each: (_ORDER.index(each.name), each.target.key or ""))
        counts: Mapping[str, int] = Counter(each.name for each in verdicts)
        known = 1
        if self._is_whole:
            counts = self._book.targets.verdicts(node.id, self._book.readings.has)
            known = self._book.readings.count(node.id) if node.is_partitioned else 1
        rows = tuple(self._target(node, each) for each in ordered)
        schedule = node.consumer.schedule.describe()
        return PlannedConsumer(node.consumer.name, schedule, _in_a_sentence(rows, counts, known), rows, counts, known)

    def _target(self, node: FlowNode, verdict: Verdict) -> PlannedTarget:
        parts = [state := self._verdict(node, verdict)]
        if verdict.because:
            parts.append(causes_in_words(verdict.because, self._name))
        look = self._due(node) if verdict.name == "not_needed" else verdict.at
        looked_at = self._look(verdict) if look is None else at(look)
        tried = self._tried(verdict.target)
        return PlannedTarget(verdict.target.key, verdict.name, ": ".join(parts), looked_at, look, state, tried)

    def _tried(self, target: Target) -> str:
        record = self._book.targets.find(target)
        if record.tried is None or record.ended is None:
            return ""
        versions = sorted({version for version in record.tried.code_versions.values() if version is not None})
        code = f", with the code {some(versions, 2)}" if versions else ""
        failed = f", and failed{_times(record.failures)}" if record.failures else ""
        return f"the inputs as of update {record.tried.sequence}{code}, until {at(record.ended.at)}{failed}"

    def _due(self, node: FlowNode) -> datetime | None:
        """Return when the first of the policies is due that may pull a Lazy consumer; `None` if nothing is due."""
        graph = self._book.graph
        below = (each for number in graph.below([node.id]) if (each := graph.find(number)) is not None)
        uris = (uri for each in below if each.keeping is not None for uri in each.outputs if graph.declares_any([uri]))
        records = (self._book.policies.find(uri) for uri in uris)
        moments = (record.due for record in records if record is not None and record.due is not None)
        return min((each for each in moments if each > self._now), default=None)

    def _verdict(self, node: FlowNode, verdict: Verdict) -> str:
        words = _WORDS[verdict.name]
        failures = self._book.targets.find(verdict.target).failures
        if failures and verdict.name in ("tried", "retry"):
            return f"Failed on this data{_times(failures)}"
        if verdict.name == "owed":
            return f"{count(self._greater(verdict.target), 'newer key goes', 'newer keys go')} first (catchup)"
        if verdict.name == "paused" and not node.consumer.paused:
            return "Its deployment is paused"
        if verdict.name == "in_progress":
            runs: Iterable[Run] = self._book.runs.of_target(verdict.target)
            return f"{words}, since {at(min(run.began for run in runs))}"
        if verdict.name == "waits":
            return f"{words} for {some([self._maker(each) for each in verdict.waits_for], 3)}"
        if verdict.name == "missing_input":
            return f"It misses {some([self._item(each) for each in verdict.missing], 3)}"
        return words

    def _greater(self, target: Target) -> int:
        """Return how many owed and running keys of a consumer are greater than this one."""
        if target.consumer not in self._owed:
            owed = {each.key or "" for each in self._book.targets.with_verdict("owed", target.consumer)}
            running = {run.target.key or "" for run in self._book.runs.of(target.consumer)}
            self._owed[target.consumer] = sorted(owed | running)
        keys = self._owed[target.consumer]
        return len(keys) - bisect_right(keys, target.key or "")

    def _look(self, verdict: Verdict) -> str:
        if verdict.name == "waits":
            return f"when {some([self._maker(each) for each in verdict.waits_for], 3)} ended"
        if verdict.name == "missing_input":
            return f"when {some([self._item(each) for each in verdict.missing], 3)} is updated"
        return _LOOK[verdict.name]

    def _maker(self, target: Target) -> str:
        node = self._book.graph.find(target.consumer)
        assert node is not None, "a target of a removed flow is not waited for"
        return node.consumer.name if target.key is None else f"{node.consumer.name} ({target.key})"

    def _item(self, item: Item) -> str:
        return self._name(item.uri) if item.key is None else f"{self._name(item.uri)} ({item.key})"
