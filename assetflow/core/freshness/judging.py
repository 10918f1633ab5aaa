"""Judge a target: is it to be run now, and if not, what holds it back? The one place that says so (8.5, 8.14).

Passes, plans, explanations and pages show the verdicts of this module; nothing else decides.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal

from assetflow.core.freshness.causes import Cause
from assetflow.core.freshness.coming import Coming
from assetflow.core.freshness.demands import Pull
from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.inputs import is_same, starts_runs
from assetflow.core.freshness.reads import items_read, missing_items
from assetflow.core.freshness.records import FlowRecord, Item, Moment, Target
from assetflow.core.freshness.state.book import Book
from assetflow.core.freshness.status import base_of, causes_of
from assetflow.core.freshness.verdicts import Verdict, VerdictName

# An end at the instant at which a demand falls due came before it.
_LATEST = sys.maxsize


class Judging:
    """The judgement of targets in one pass. Judge the upper consumers first.

    Parameters:
        pulls: the Lazy and Eager consumers that a policy pulls now.
        recorded: whether all is recorded that counts at this instant: a delay until now is over only then (9.6).
    """

    def __init__(self, book: Book, pulls: Mapping[int, Pull], now: datetime, *, recorded: bool) -> None:
        self._book = book
        self._pulls = pulls
        self._now = now
        self._recorded = recorded
        self._verdicts: dict[int, dict[str | None, Verdict | None]] = {}
        self._coming = Coming(book, self._verdicts)

    def expect(self, nodes: Iterable[FlowNode]) -> None:
        """Read what concerns the makers of these consumers together."""
        self._coming.expect(nodes)

    def judge(self, node: FlowNode, key: str | None) -> Verdict | None:
        """Return the verdict on a target, or `None` if it is up to date and not demanded."""
        target = Target(node.id, key)
        if self._book.runs.is_busy(target):
            verdict: Verdict | None = Verdict(target, "in_progress")
        elif node.is_lazy:
            verdict = self._judge_lazy(node, target)
        else:
            verdict = self._judge_eager(node, target)
        self._verdicts.setdefault(node.id, {})[key] = verdict
        return verdict

    def _judge_eager(self, node: FlowNode, target: Target) -> Verdict | None:
        causes = list(all_causes(self._book, node, target.key))
        if not causes:
            return None
        counting = [cause for cause in causes if counts(self._book, node, target.key, cause)]
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
        return self._waits_or_runs(node, target, because, oldest_unread(self._book, node, target.key, counting))

    def _judge_lazy(self, node: FlowNode, target: Target) -> Verdict | None:
        causes = list(all_causes(self._book, node, target.key))
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
        if node.rests:
            return "paused"
        return "backfill" if self._book.backfills.has(target) else None

    def _outside_lookback(self, node: FlowNode, target: Target) -> VerdictName | None:
        lookback = None if node.keeping is None else node.keeping.lookback
        if lookback is None or target.key is None:
            return None
        return None if target.key in self._book.readings.greatest(node.id, lookback) else "history"

    def _missing(self, node: FlowNode, target: Target) -> tuple[Item, ...]:
        return tuple(item for uri in node.inputs for item in missing_items(self._book, node, target.key, uri))

    def _tried(self, node: FlowNode, target: Target, because: tuple[Cause, ...]) -> Verdict | None:
        """Return the verdict on inputs that were tried or waived before; `None` for others."""
        record = self._book.targets.find(target)
        if is_known(self._book, node, target.key, "tried"):
            # A redeploy may have taken retries away since.
            if record.retry_at is None or node.keeping is None or record.failures > node.keeping.retries:
                # Without inputs, a policy that is due again asks for another run (8.14).
                if node.inputs or node.is_eager:
                    return Verdict(target, "tried", because)
            elif not self._is_over(record.retry_at):
                return Verdict(target, "retry", because, at=record.retry_at)
        elif is_known(self._book, node, target.key, "waived"):
            return Verdict(target, "waived", because)
        return None

    def _is_target(self, target: Target) -> bool:
        """Return False if no input maps to a key: it is one of an own output that is read, or of an earlier mapper."""
        return target.key is None or self._book.readings.has(target)

    def _waits_or_runs(self, node: FlowNode, target: Target, because: tuple[Cause, ...], since: Moment) -> Verdict:
        waits_for = tuple(dict.fromkeys(self._coming.waits_for(node, target.key, since)))
        return Verdict(target, "waits" if waits_for else "run", because, waits_for=waits_for)

    def _is_over(self, moment: datetime) -> bool:
        return moment <= self._now if self._recorded else moment < self._now


def all_causes(book: Book, node: FlowNode, key: str | None) -> Iterator[Cause]:
    """Yield why the outputs of a target are out of date."""
    for uri in sorted(node.outputs):
        yield from causes_of(book, node, Item(uri, key))


def counts(book: Book, node: FlowNode, key: str | None, cause: Cause) -> bool:
    """Return True if a cause may start a run (8.4)."""
    on = node.keeping.on if node.keeping is not None else ()
    if cause.kind == "missing":
        return True
    if cause.kind == "code" or (cause.kind == "dependency" and cause.uri not in node.inputs):
        return "code" in on
    if cause.kind == "dependency":
        found = (starts_runs(node, item) for item in items_read(book, node, key, cause.uri))
        return "data" in on and cause.uri in node.starts and (not node.is_partitioned or any(found))
    return "data" in on and starts_runs(node, Item(cause.uri, cause.key))


def is_out_of_date(book: Book, node: FlowNode, key: str | None) -> bool:
    """Return True if a cause counts, and the inputs were neither tried nor waived (8.8)."""
    return has_counting_cause(book, node, key) and not (
        is_known(book, node, key, "tried") or is_known(book, node, key, "waived")
    )


def has_counting_cause(book: Book, node: FlowNode, key: str | None) -> bool:
    """Return True if an output of a target is out of date because of something that may start a run."""
    return any(counts(book, node, key, cause) for cause in all_causes(book, node, key))


def is_known(book: Book, node: FlowNode, key: str | None, what: Literal["tried", "waived"]) -> bool:
    """Return True if a target would try the inputs that it tried last, or that were waived."""
    record = book.targets.find(Target(node.id, key))
    inputs = record.tried if what == "tried" else record.waived
    return inputs is not None and is_same(book, node, key, inputs)


def oldest_unread(book: Book, node: FlowNode, key: str | None, causes: list[Cause]) -> Moment:
    """Return when the oldest cause that counts arose: for a flow that became an Eager one, not before it did."""
    flow = book.flow_record(node.id)
    assert flow is not None, "a flow that is judged was deployed"
    return max(flow.kept, min(moment for cause in causes for moment in _since(book, node, flow, key, cause)))


def _since(book: Book, node: FlowNode, flow: FlowRecord, key: str | None, cause: Cause) -> Iterator[Moment]:
    if cause.kind == "missing":
        yield flow.outputs[cause.uri]
    elif cause.kind == "code":
        yield flow.code
    elif cause.kind == "dependency":
        yield flow.reads
    else:
        for uri in node.outputs:
            yield from _unread_since(book, node, Item(uri, key), Item(cause.uri, cause.key))


def _unread_since(book: Book, node: FlowNode, output: Item, item: Item) -> Iterator[Moment]:
    """Yield, per item, when the first version that the output has not read was recorded."""
    base = base_of(book, node, output)
    if base is None or item.uri not in base.reads:
        return
    read = book.updates.as_of(item, base.reads[item.uri])
    first = book.updates.first(item) if read is None else book.updates.row(read).ended
    if first is not None:
        yield first.moment
