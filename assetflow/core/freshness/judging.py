"""Judge a target: is it to be run now, and if not, what holds it back? The one place that says so (8.5, 8.14).

Passes, plans, explanations and pages show the verdicts of this module; nothing else decides.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Literal

from assetflow.core.freshness.demands import Pull
from assetflow.core.freshness.graph import FlowNode, reached, work_out
from assetflow.core.freshness.reads import (
    base_of,
    causes_of,
    is_same,
    items_read,
    mapped_keys,
    missing_items,
    reads_key,
    starts_runs,
)
from assetflow.core.freshness.records import FlowRecord, Item, Moment, Target, Verdict, VerdictName
from assetflow.core.freshness.state.state import FreshnessState
from assetflow.core.values.keeping import Cause

Keys = Mapping[str | None, datetime]
"""The target keys of a consumer that will be made soon, each with the instant from which that was clear."""

Verdicts = Mapping[int, Mapping[str | None, Verdict | None]]
"""The verdicts of a pass, by consumer and target key; `None` for a target that is up to date."""


# The instants of a key that counts in any case, and of one that this pass asks for.
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class Upcoming:
    """The targets that will be made soon, as of one pass, computed once for each consumer. Judge upper consumers first.

    Parameters:
        verdicts: the verdicts of this pass so far; for other targets, the stored verdict counts.
    """

    def __init__(self, freshness: FreshnessState, verdicts: Verdicts) -> None:
        self._freshness = freshness
        self._verdicts = verdicts
        self._keys: dict[int, Keys] = {}
        self._expected: list[FlowNode] = []

    def expect(self, nodes: Iterable[FlowNode]) -> None:
        """Read what concerns these consumers together, as soon as something about one of them is asked."""
        self._expected = [*nodes]

    def waits_for(self, node: FlowNode, key: str | None, since: Moment) -> Iterator[Target]:
        """Yield the targets that a target waits for: upcoming ones without a run that ended since a moment.

        A flow without partitions waits for no keys that come after the first one that a maker has made since then: new
        ones may come for ever.
        """
        for uri in node.inputs:
            for maker in self._freshness.graph.makers(uri):
                if maker.id == node.id:
                    continue
                latest = self._first_made(node, maker, uri, since)
                keys = (made for made, at in self._keys_of(maker).items() if at <= latest)
                upcoming = [Target(maker.id, made) for made in keys if self._reads(node, key, uri, made)]
                self._freshness.targets.load(upcoming)
                yield from (target for target in upcoming if not self._has_ended(target, since))

    def _first_made(self, node: FlowNode, maker: FlowNode, uri: str, since: Moment) -> datetime:
        """Return when a partitioned maker of a flow without partitions made its first key since a moment."""
        are_many = maker.is_partitioned and not node.is_partitioned
        first = self._freshness.updates.first_of(uri, since) if are_many else None
        return _LAST if first is None else first.recorded

    def _reads(self, node: FlowNode, key: str | None, uri: str, made: str | None) -> bool:
        """Return True if a target reads this key through its mapper, or an input without keys."""
        if node.is_partitioned:
            belongs = mapped_keys(node, uri, made)
            return made is None if belongs is None else key in belongs
        return reads_key(self._freshness, node, None, uri, made)

    def _has_ended(self, target: Target, since: Moment) -> bool:
        ended = self._freshness.targets.find(target).ended
        return ended is not None and ended >= since

    def _keys_of(self, node: FlowNode) -> Keys:
        """Return the upcoming target keys of a consumer."""
        if node.id not in self._keys:
            self._read_ahead(node)
        return work_out(node, _number, self._above, self._upcoming_of, self._keys)

    def _upcoming_of(self, node: FlowNode) -> Keys:
        found: dict[str | None, datetime] = {}
        for key, at in (*self._about_to_start(node), *self._active(node)):
            found[key] = min(at, found.get(key, at))
        return found

    def _read_ahead(self, node: FlowNode) -> None:
        """Read together the open runs, and what waits, of the expected consumers and of all above them."""
        found = reached([node, *self._expected], lambda each: () if each.id in self._keys else self._above(each))
        self._expected = []
        self._freshness.runs.load(each.id for each in found)
        self._freshness.targets.load_waiting(each.id for each in found if each.keeping is not None)

    def _above(self, node: FlowNode) -> Iterator[FlowNode]:
        """Yield the makers whose upcoming runs will start a consumer."""
        if self._follows_data(node):
            for uri in sorted(node.starts):
                yield from (maker for maker in self._freshness.graph.makers(uri) if maker.id != node.id)

    def _active(self, node: FlowNode) -> Iterator[tuple[str | None, datetime]]:
        """Yield the keys that run, wait, or are asked for in this pass or soon, each with the instant of that."""
        yield from ((run.target.key, run.asked) for run in self._freshness.runs.of(node.id))
        if node.keeping is not None:
            judged = self._verdicts.get(node.id, {})
            yield from ((key, _LAST) for key, verdict in judged.items() if verdict and verdict.name in ("run", "waits"))
            upcoming = [(target.key, _LAST) for target in self._freshness.targets.waiting(node.id)]
            if node.is_partitioned:
                upcoming += ((target.key, _FIRST) for target in self._freshness.targets.with_verdict("owed", node.id))
                upcoming += ((key, _FIRST) for key in self._freshness.keys_set_aside(node.id))
            yield from (each for each in upcoming if each[0] not in judged)

    def _about_to_start(self, node: FlowNode) -> Iterator[tuple[str | None, datetime]]:
        """Yield the keys that an upcoming input will start, each with the instant from which that was clear."""
        if self._follows_data(node):
            for uri in sorted(node.starts):
                for maker in self._freshness.graph.makers(uri):
                    for made, at in self._keys.get(maker.id, {}).items() if maker.id != node.id else ():
                        yield from ((key, at) for key in self._started_by(node, uri, made))

    def _follows_data(self, node: FlowNode) -> bool:
        return node.is_eager and not node.is_idle and node.keeping is not None and "data" in node.keeping.on

    def _started_by(self, node: FlowNode, uri: str, made: str | None) -> Iterator[str | None]:
        """Yield the target keys that a key of an input will start."""
        if node.is_partitioned:
            belongs = mapped_keys(node, uri, made) or ()
        else:
            belongs = (None,) if reads_key(self._freshness, node, None, uri, made) else ()
        yield from (key for key in belongs if not self._freshness.backfills.has(Target(node.id, key)))


def _number(node: FlowNode) -> int:
    return node.id


# An end at the instant at which a demand falls due came before it.
_LATEST = sys.maxsize


class Judging:
    """The judgement of targets in one pass. Judge the upper consumers first.

    Parameters:
        pulls: the Lazy and Eager consumers that a policy pulls now.
        recorded: whether all is recorded that counts at this instant: a delay until now is over only then (9.6).

    Attributes:
        upcoming: the targets that will be made soon.
    """

    def __init__(self, freshness: FreshnessState, pulls: Mapping[int, Pull], now: datetime, *, recorded: bool) -> None:
        self._freshness = freshness
        self._pulls = pulls
        self._now = now
        self._recorded = recorded
        self._verdicts: dict[int, dict[str | None, Verdict | None]] = {}
        self.upcoming = Upcoming(freshness, self._verdicts)

    def judge(self, node: FlowNode, key: str | None) -> Verdict | None:
        """Return the verdict on a target, or `None` if it is up to date and not demanded."""
        target = Target(node.id, key)
        if self._freshness.runs.is_busy(target):
            verdict: Verdict | None = Verdict(target, "in_progress")
        elif node.is_lazy:
            verdict = self._judge_lazy(node, target)
        else:
            verdict = self._judge_eager(node, target)
        self._verdicts.setdefault(node.id, {})[key] = verdict
        return verdict

    def _judge_eager(self, node: FlowNode, target: Target) -> Verdict | None:
        causes = list(all_causes(self._freshness, node, target.key))
        if not causes:
            return None
        counting = [cause for cause in causes if counts(self._freshness, node, target.key, cause)]
        if not counting:
            return Verdict(target, "ignored")
        because = tuple(dict.fromkeys(counting))
        held = self._held_back(node, target) or self._outside_lookback(node, target)
        if held is not None:
            return Verdict(target, held, because)
        missing = self._missing(node, target)
        if missing:
            return Verdict(target, "missing_input", because, missing=missing)
        tried = self._tried(node, target, because)
        if tried is not None or not self._is_target(target):
            return tried
        return self._waits_or_runs(node, target, because, oldest_unread(self._freshness, node, target.key, counting))

    def _judge_lazy(self, node: FlowNode, target: Target) -> Verdict | None:
        causes = list(all_causes(self._freshness, node, target.key))
        pull = self._pulls.get(node.id)
        if pull is None:
            return Verdict(target, "not_needed") if causes else None
        because = tuple(Cause("freshness", uri) for uri in pull.uris)
        held = self._held_back(node, target)
        if held is not None:
            return Verdict(target, held, because)
        missing = self._missing(node, target)
        if missing:
            return Verdict(target, "missing_input", because, missing=missing)
        verdict = self._waits_or_runs(node, target, because, Moment(pull.due, _LATEST))
        if verdict.name == "waits":
            return verdict
        if node.inputs and not causes:
            return Verdict(target, "no_gain", because)
        return self._tried(node, target, because) or verdict

    def _held_back(self, node: FlowNode, target: Target) -> VerdictName | None:
        if node.is_idle:
            return "paused"
        return "backfill" if self._freshness.backfills.has(target) else None

    def _outside_lookback(self, node: FlowNode, target: Target) -> VerdictName | None:
        lookback = None if node.keeping is None else node.keeping.lookback
        if lookback is None or target.key is None:
            return None
        return None if target.key in self._freshness.readings.greatest(node.id, lookback) else "history"

    def _missing(self, node: FlowNode, target: Target) -> tuple[Item, ...]:
        return tuple(item for uri in node.inputs for item in missing_items(self._freshness, node, target.key, uri))

    def _tried(self, node: FlowNode, target: Target, because: tuple[Cause, ...]) -> Verdict | None:
        """Return the verdict on inputs that were tried or waived before; `None` for others."""
        record = self._freshness.targets.find(target)
        if is_known(self._freshness, node, target.key, "tried"):
            # A redeploy may have taken retries away since.
            if record.retry_at is None or node.keeping is None or record.failures > node.keeping.retries:
                # Without inputs, a policy that is due again asks for another run (8.14).
                if node.inputs or node.is_eager:
                    return Verdict(target, "tried", because)
            elif not self._is_over(record.retry_at):
                return Verdict(target, "retry", because, at=record.retry_at)
        elif is_known(self._freshness, node, target.key, "waived"):
            return Verdict(target, "waived", because)
        return None

    def _is_target(self, target: Target) -> bool:
        """Return False if no input maps to a key: it is one of an own output that is read, or of an earlier mapper."""
        return target.key is None or self._freshness.readings.has(target)

    def _waits_or_runs(self, node: FlowNode, target: Target, because: tuple[Cause, ...], since: Moment) -> Verdict:
        waits_for = tuple(dict.fromkeys(self.upcoming.waits_for(node, target.key, since)))
        return Verdict(target, "waits" if waits_for else "run", because, waits_for=waits_for)

    def _is_over(self, moment: datetime) -> bool:
        return moment <= self._now if self._recorded else moment < self._now


def all_causes(freshness: FreshnessState, node: FlowNode, key: str | None) -> Iterator[Cause]:
    """Yield why the outputs of a target are out of date."""
    for uri in sorted(node.outputs):
        yield from causes_of(freshness, node, Item(uri, key))


def counts(freshness: FreshnessState, node: FlowNode, key: str | None, cause: Cause) -> bool:
    """Return True if a cause may start a run (8.4)."""
    on = node.keeping.on if node.keeping is not None else ()
    if cause.kind == "missing":
        return True
    if cause.kind == "code" or (cause.kind == "dependency" and cause.uri not in node.inputs):
        return "code" in on
    if cause.kind == "dependency":
        found = (starts_runs(node, item) for item in items_read(freshness, node, key, cause.uri))
        return "data" in on and cause.uri in node.starts and (not node.is_partitioned or any(found))
    return "data" in on and starts_runs(node, Item(cause.uri, cause.key))


def is_out_of_date(freshness: FreshnessState, node: FlowNode, key: str | None) -> bool:
    """Return True if a cause counts, and the inputs were neither tried nor waived (8.8)."""
    return has_counting_cause(freshness, node, key) and not (
        is_known(freshness, node, key, "tried") or is_known(freshness, node, key, "waived")
    )


def has_counting_cause(freshness: FreshnessState, node: FlowNode, key: str | None) -> bool:
    """Return True if an output of a target is out of date because of something that may start a run."""
    return any(counts(freshness, node, key, cause) for cause in all_causes(freshness, node, key))


def is_known(freshness: FreshnessState, node: FlowNode, key: str | None, what: Literal["tried", "waived"]) -> bool:
    """Return True if a target would try the inputs that it tried last, or that were waived."""
    record = freshness.targets.find(Target(node.id, key))
    inputs = record.tried if what == "tried" else record.waived
    return inputs is not None and is_same(freshness, node, key, inputs)


def oldest_unread(freshness: FreshnessState, node: FlowNode, key: str | None, causes: list[Cause]) -> Moment:
    """Return when the oldest cause that counts arose: for a flow that became an Eager one, not before it did."""
    flow = freshness.flow_record(node.id)
    assert flow is not None, "a flow that is judged was deployed"
    return max(flow.kept, min(moment for cause in causes for moment in _since(freshness, node, flow, key, cause)))


def _since(
    freshness: FreshnessState, node: FlowNode, flow: FlowRecord, key: str | None, cause: Cause
) -> Iterator[Moment]:
    if cause.kind == "missing":
        yield flow.outputs[cause.uri]
    elif cause.kind == "code":
        yield flow.code
    elif cause.kind == "dependency":
        yield flow.reads
    else:
        for uri in node.outputs:
            yield from _unread_since(freshness, node, Item(uri, key), Item(cause.uri, cause.key))


def _unread_since(freshness: FreshnessState, node: FlowNode, output: Item, item: Item) -> Iterator[Moment]:
    """Yield, per item, when the first version that the output has not read was recorded."""
    base = base_of(freshness, node, output)
    if base is None or item.uri not in base.reads:
        return
    read = freshness.updates.as_of(item, base.reads[item.uri])
    first = freshness.updates.first(item) if read is None else freshness.updates.version_run(read).ended
    if first is not None:
        yield first.moment
