"""What would happen: the fold of an update or of a resume on the real queues, told instead of written.

The functions change the state that they are given. Its owner throws it away afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, cast

from assetflow.core.explain.conditions import rollup_keys
from assetflow.core.explain.events import explain_event
from assetflow.core.explain.facts import waiting_of
from assetflow.core.partitions import RollupMapper
from assetflow.core.rules import clock, registry
from assetflow.core.rules.evaluation import Pending, TokensOf, evaluate, facts_of
from assetflow.core.rules.fold import pass_over, record_and_pass
from assetflow.core.rules.keeping import keep_up_to_date
from assetflow.core.rules.state import QueueKey, State
from assetflow.core.shapes import shape
from assetflow.core.values.conditions import Gate, Leaf, fold_condition
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent, Recording
from assetflow.core.values.schedules import Schedule
from assetflow.core.values.words import SHOWN, count, joined, some

REFUSED = ("dropped", "not_for_consumer", "not_mapped")
# Of the pending partitions of a consumer that is resumed, this many are told.
MOST_LEFT = 100
# Stands for the name of a consumer in a sentence about several: no name contains it.
_A_NAME = "\0"


@shape
class RunToStart:
    """A run that would start now, with the number of updates that it would consume."""

    consumer: str
    target_key: str | None
    updates: int


@shape
class StillWaiting:
    """A queue that would still wait."""

    consumer: str
    target_key: str | None
    words: str
    """For what, as a sentence without its subject: `still needs customers`."""


@shape
class WhatIf:
    """The outcome of updates that nobody has recorded."""

    starts: tuple[RunToStart, ...] = ()
    """The runs that would start now."""
    waits: tuple[StillWaiting, ...] = ()
    """The queues that would have the updates, and still wait."""
    refused: tuple[str, ...] = ()
    """A sentence for each reason for which consumers would refuse an update."""
    known: bool = False
    """The updates are recorded already: nothing would change."""

    @property
    def is_empty(self) -> bool:
        """True if no consumer has anything to do with the updates, though they are new."""
        return not (self.starts or self.waits or self.refused or self.known)


def if_recorded(state: State, recordings: Sequence[Recording], now: datetime) -> WhatIf:
    """Record updates in a state that nobody writes, and tell what followed."""
    events: list[AssetEvent] = []
    decisions: list[Decision] = []
    for recording in recordings:
        recorded, made = record_and_pass(state, recording, now)
        events += recorded.events
        decisions += keep_up_to_date(state, made, now)
    queued = [
        (receipt.consumer, receipt.target_key)
        for receipt in state.changes.all_receipts()
        if receipt.status == "queued" and receipt.consumer is not None
    ]
    return WhatIf(
        _starts(state, decisions), _left(state, queued, now), tuple(_refused(state, events)), known=not events
    )


def if_resumed(state: State, consumer: Consumer, now: datetime) -> WhatIf:
    """Resume a consumer in a state that nobody writes, and tell what followed."""
    clock.settle(state, consumer, now)
    changed = registry.switch(state, consumer, paused=False, now=now)
    decisions = pass_over(state, registry.touched_by(state, changed), now)
    decisions = keep_up_to_date(state, decisions, now)
    keys = sorted(state.queues.target_keys(consumer.id), key=lambda key: key or "")[:MOST_LEFT]
    return WhatIf(_starts(state, decisions), _left(state, [(consumer.id, key) for key in keys], now))


def still_needed(schedule: Schedule, target_key: str | None, pending: Pending, tokens_of: TokensOf) -> str:
    """Return the assets that would complete a condition in words, as `a and b` or `a or b`; "" if it is complete."""
    if schedule.condition is None:
        return ""
    facts = facts_of(schedule, target_key, pending, tokens_of)

    def leaf(node: Leaf) -> _Member:
        found = facts.get(node.token, 0)
        needed = "" if found else _leaf(schedule, node, target_key, pending, tokens_of)
        return _Member(needed, found, node.label)

    return fold_condition(schedule.condition, leaf, _gate).needed


class _Member(NamedTuple):
    """A node of a condition: what it lacks, and for a leaf its number of updates and its label."""

    needed: str
    found: int = 0
    label: str = ""


def _gate(gate: Gate, members: Sequence[_Member]) -> _Member:
    return _Member(_needed_by(gate, members))


def _needed_by(gate: Gate, members: Sequence[_Member]) -> str:
    """Return what a gate lacks, or "" if it is satisfied."""
    lacking = list(dict.fromkeys(each.needed for each in members if each.needed))
    if gate.kind == "times":
        missing = cast("int", gate.argument) - members[0].found
        return "" if missing <= 0 else f"{count(missing, 'more update')} of {members[0].label}"
    if gate.kind == "at_least":
        missing = cast("int", gate.argument) - sum(not each.needed for each in members)
        return "" if missing <= 0 else f"{missing} of {some(lacking)}"
    if gate.kind == "any" and any(not each.needed for each in members):
        return ""
    return joined(lacking, "or" if gate.kind == "any" else "and") if len(lacking) <= SHOWN else some(lacking)


def _leaf(schedule: Schedule, leaf: Leaf, target_key: str | None, pending: Pending, tokens_of: TokensOf) -> str:
    """Return what a leaf without enough updates lacks: its label, with its keys if it is rolled up."""
    for uri, keys in pending.items():
        tokens = tokens_of(uri)
        mapper = None if schedule.partitioning is None else schedule.partitioning.mapper_for(tokens)
        if leaf.token in tokens and isinstance(mapper, RollupMapper) and target_key is not None:
            found = rollup_keys(mapper, target_key, {key for key in keys if key is not None})
            if found.readable:
                total = len(found.received) + len(found.missing)
                return f"{leaf.label} ({len(found.received)} of {total} keys; missing {some(found.missing, 3)})"
    return leaf.label


def _starts(state: State, decisions: Iterable[Decision]) -> tuple[RunToStart, ...]:
    return tuple(RunToStart(_name(state, each.consumer), each.target_key, len(each.events)) for each in decisions)


def _left(state: State, queues: Iterable[QueueKey], now: datetime) -> tuple[StillWaiting, ...]:
    found: list[StillWaiting] = []
    for number, key in dict.fromkeys(queues):
        consumer = state.consumers.find(number)
        if consumer is not None and state.queues.size(number, key):
            found.append(StillWaiting(consumer.name, key, why_it_waits(state, consumer, key, now)))
    return tuple(found)


def why_it_waits(state: State, consumer: Consumer, key: str | None, now: datetime) -> str:
    """Return why a queue does not start a run, as a sentence without its subject."""
    pending = state.queues.pending(consumer.id, key)
    needed = still_needed(consumer.schedule, key, pending, state.names.tokens_of)
    if consumer.paused or consumer.held:
        state_now = "is paused" if consumer.paused else "is held, because its deployment is paused"
        return f"{state_now}, and still needs {needed}" if needed else state_now
    if needed:
        return f"still needs {needed}"
    if consumer.is_timed:
        words = waiting_of(state, consumer, key, now).words
        return words.removeprefix("It ").rstrip(".") or "is looked at again when its time has come"
    if evaluate(consumer.schedule, key, pending, state.names.tokens_of):
        return "waits for the end of its run (coalesce)"
    return "still waits"


def _refused(state: State, events: Sequence[AssetEvent]) -> Iterable[str]:
    """Yield a sentence for each reason for which consumers refuse one of the updates, with the first of them."""
    by_place = {event.sequence: event for event in events}
    said: dict[str, list[str]] = {}
    for receipt in state.changes.all_receipts():
        event = by_place.get(receipt.event)
        if event is not None and receipt.status in REFUSED and receipt.consumer is not None:
            name = _name(state, receipt.consumer)
            for told in explain_event(event, [receipt], {receipt.consumer: name}, []).receipts:
                alike = said.setdefault(told.words.replace(name, _A_NAME), [])
                alike += [] if name in alike else [name]
    for words, (first, *others) in said.items():
        yield words.replace(_A_NAME, first) + (f"; so with {count(len(others), 'more flow')}" if others else "")


def _name(state: State, number: int) -> str:
    consumer = state.consumers.find(number)
    return "" if consumer is None else consumer.name
