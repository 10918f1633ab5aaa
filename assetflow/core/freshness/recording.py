"""Runs begin, make updates and end: what they read and tried, and the versions of what they make (8.2, 8.6, 8.7)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from assetflow.core.freshness.backfilling import note_end, note_retry
from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import (
    all_keys,
    are_same,
    inputs_now,
    is_changed,
    items_then,
    newest_made,
    read_ahead,
    touch_flow,
    touch_item,
)
from assetflow.core.freshness.records import (
    Inputs,
    Item,
    ItemUpdate,
    Reads,
    Run,
    RunKind,
    RunState,
    Target,
    TargetRecord,
)
from assetflow.core.freshness.state.state import FreshnessState
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent
from assetflow.errors import InvalidCall


def begin_run(
    freshness: FreshnessState,
    node: FlowNode,
    key: str | None,
    run_id: UUID,
    kind: RunKind,
    asked: datetime,
    *,
    place: int | None = None,
    predecessor: UUID | None = None,
) -> Run:
    """Remember a new run, asked for or started by hand: it reads what is in the ledger now.

    Parameters:
        place: the place in the ledger up to which it reads; `None` for the newest one.
        predecessor: the decision before it for this target.
    """
    now = inputs_now(freshness, node)
    tried = now if place is None else replace(now, sequence=place)
    pins = {output: dict.fromkeys(depends, tried.sequence) for output, depends in node.outputs.items()}
    run = Run(run_id, Target(node.id, key), kind, asked, asked, tried, pins, predecessor)
    freshness.runs.begin(run)
    freshness.agenda.add(run.target)
    return run


def retry_run(freshness: FreshnessState, node: FlowNode, run: Run, at: datetime, place: int) -> None:
    """Remember that an ended run is retried: it runs as if it were asked for now, and its failure is undone (4.7).

    Parameters:
        at: when it left its final state.
        place: the place in the ledger up to which it reads.
    """
    begin_run(freshness, node, run.target.key, run.id, run.kind, at, place=place, predecessor=run.predecessor)
    record = freshness.targets.find(run.target)
    if record.failures and record.tried == run.tried:
        freshness.targets.save(run.target, replace(record, failures=record.failures - 1, retry_at=None))
    note_retry(freshness, run, at)


def start_run(freshness: FreshnessState, node: FlowNode, run: Run, at: datetime, place: int) -> None:
    """Remember when a run started that was asked for earlier: it reads what is in the ledger at its start.

    Parameters:
        place: the place in the ledger up to which it reads.
    """
    flow = freshness.flow_record(node.id)
    # What was deployed after the start was not run.
    is_current = flow is not None and max(flow.code.at, flow.reads.at) <= at
    tried = replace(inputs_now(freshness, node) if is_current else run.tried, sequence=place)
    begun = freshness.runs.began(run, at, tried)
    for update in _made_before_start_was_heard(freshness, node, run):
        correct_tried(freshness, begun, update.item.uri, update.pins or {}, update.code_version)


def correct_tried(
    freshness: FreshnessState, run: Run, output: str, read: Mapping[str, int], code_version: str | None
) -> None:
    """Reduce what an open run has tried to what an update says it has read (8.6).

    Clocks differ, and an update that a task does not see may have come before the start of its run.

    Parameters:
        read: what the task pinned, as places in the ledger.
        code_version: what the task ran. A run that was asked for before a deploy may run the code of before.
    """
    node, flow = freshness.graph.find(run.target.consumer), freshness.flow_record(run.target.consumer)
    known = next((each for each in freshness.runs.of(run.target.consumer) if each.id == run.id), None)
    if node is None or flow is None or known is None:
        return
    key, tried = run.target.key, known.tried
    for uri, place in read.items():
        if (
            uri in node.starts
            and place < tried.sequence
            and is_changed(freshness, node, key, uri, place, tried.sequence)
        ):
            tried = replace(tried, sequence=place)
    if run.asked < flow.code.at and tried.code_versions.get(output) != code_version:
        tried = replace(tried, code_versions={**tried.code_versions, output: code_version})
    if tried != known.tried:
        freshness.runs.begin(replace(known, tried=tried))


def _made_before_start_was_heard(freshness: FreshnessState, node: FlowNode, run: Run) -> Iterator[ItemUpdate]:
    """Yield the updates and confirmations of a run that were recorded while its start was unknown."""
    for uri in node.outputs:
        newest = (
            freshness.updates.newest(Item(uri, run.target.key))
            if node.is_partitioned
            else freshness.updates.newest_of(uri)
        )
        if newest is not None and (newest.consumer, newest.started) == (node.id, run.began):
            yield newest


def adopt_run(
    freshness: FreshnessState,
    node: FlowNode,
    target: Target,
    run_id: UUID,
    kind: RunKind,
    asked: datetime,
    began: datetime,
    tried: Inputs,
) -> None:
    """Remember a run that an earlier ledger asked for, as the last one of its target.

    Parameters:
        asked: when it was asked for.
        tried: what it reads, as places in this ledger.
    """
    pins = {output: dict.fromkeys(depends, tried.sequence) for output, depends in node.outputs.items()}
    freshness.runs.begin(Run(run_id, target, kind, asked, began, tried, pins))
    freshness.targets.save(target, replace(freshness.targets.find(target), decision=run_id))
    freshness.agenda.add(target)


def end_run(freshness: FreshnessState, run: Run, state: RunState, now: datetime) -> None:
    """Remember that a run ended: what it tried, and when that is repeated if it failed."""
    freshness.runs.end(run, state, now)
    note_end(freshness, run, state, now)
    node = freshness.graph.find(run.target.consumer)
    if node is None:
        return
    record = freshness.targets.find(run.target)
    if state == "completed":
        after = replace(record, failures=0, retry_at=None)
        _note(freshness, node, failed=None, good=run.began)
    else:
        after = _after_failure(freshness, node, run, record, now)
    freshness.targets.save(run.target, replace(after, tried=run.tried, waived=None, ended=freshness.moment(now)))
    freshness.agenda.add(run.target)


def _after_failure(
    freshness: FreshnessState, node: FlowNode, run: Run, record: TargetRecord, now: datetime
) -> TargetRecord:
    before = record.tried
    repeats = (
        before is not None and record.failures > 0 and are_same(freshness, node, run.target.key, before, run.tried)
    )
    failures = record.failures + 1 if repeats else 1
    keeping = node.keeping
    again = keeping is not None and failures <= keeping.retries
    if not again and keeping is not None:
        _note(freshness, node, failed=run.began)
    return replace(
        record,
        failures=failures,
        retry_at=now + keeping.retry_delay if again and keeping is not None else None,
    )


def _note(freshness: FreshnessState, node: FlowNode, **changes: datetime | None) -> None:
    flow = freshness.flow_record(node.id)
    if flow is not None:
        freshness.save_flow(node.id, replace(flow, **changes))


def check_retry(freshness: FreshnessState, consumer: Consumer, key: str | None) -> FlowNode:
    """Return the flow of which targets are to be tried again.

    Parameters:
        key: one target key; `None` for all targets.

    Raises:
        InvalidCall: the consumer tries nothing of itself, or has no such target. `where` is `consumer` or `key`.
    """
    node = freshness.graph.find(consumer.id)
    if node is None or node.keeping is None:
        raise InvalidCall(
            f"the schedule of {consumer.name} is not Eager, OnMissing or Lazy, so it waives and repeats nothing",
            where="consumer",
            rule="8.7",
            fix="`assetflow retry` lets its last failed run run again",
        )
    if key is not None and not node.is_partitioned:
        raise InvalidCall(f"{consumer.name} is not partitioned", where="key", rule="8.7", fix="Leave the key out")
    if key is not None and not freshness.readings.has(Target(node.id, key)):
        raise InvalidCall(
            f"{consumer.name} has no key {key!r}",
            where="key",
            rule="8.7",
            fix="`assetflow plan` lists its keys; without a key, all of them are tried again",
        )
    return node


def retry(freshness: FreshnessState, node: FlowNode, key: str | None, now: datetime) -> None:
    """Forget what was tried and waived, of one target or of all, and that a run failed for good (8.7)."""
    keys = all_keys(freshness, node) if key is None else [key]
    read_ahead(freshness, node, keys)
    for target in (Target(node.id, each) for each in keys):
        record = freshness.targets.find(target)
        freshness.targets.save(target, replace(record, tried=None, waived=None, failures=0, retry_at=None))
    # The next run need not wait for a period (8.14).
    _note(freshness, node, failed=None)
    if key is None:
        touch_flow(freshness, node, now)
    else:
        freshness.agenda.add(Target(node.id, key))


@dataclass(frozen=True)
class Made:
    """How an update was made, as its flow run reports it.

    Attributes:
        consumer: the flow that made it; `None` if it is not known.
        pins: each input with the place in the ledger up to which it was read; `None` if nobody knows.
        started: when the run began, UTC.
        run: the run, if what it tries is remembered.
        mappers: the mappers by which it was read; `None` if nobody knows.
    """

    consumer: int | None
    pins: Mapping[str, int] | None
    code_version: str | None
    started: datetime
    run: Run | None = None
    mappers: Reads | None = None

    def on(self, update: ItemUpdate) -> ItemUpdate:
        """Return an update or a confirmation with what is known of how it was made."""
        return replace(
            update,
            consumer=self.consumer,
            pins=self.pins,
            code_version=self.code_version,
            started=self.started,
            mappers=self.mappers,
        )


def made_of(freshness: FreshnessState, event: AssetEvent) -> Made | None:
    """Return how an event was made; `None` for an update from outside.

    Inputs that its task did not pin were read when the run was asked for; without a known run, nobody knows when.
    """
    flow_run = event.origin.flow_run
    if flow_run is None or flow_run.deployment_id is None:
        return None
    node = freshness.graph.of_deployment(flow_run.deployment_id)
    if node is None:
        return None
    depends = node.outputs.get(event.uri)
    pinned = {uri: pin for uri, pin in event.inputs.items() if depends is None or uri in depends}
    run = freshness.runs.of_flow_run(node.id, flow_run.id)
    if run is None:
        started = event.started or event.occurred
        return Made(node.id, pinned or None, event.code_version, started, mappers=node.mappers)
    pins = {**run.pins.get(event.uri, {}), **pinned}
    return Made(node.id, pins, event.code_version, event.started or run.began, run, run.tried.reads)


def with_data_version(freshness: FreshnessState, event: AssetEvent, made: Made | None) -> AssetEvent:
    """Return an event with its data version: the given one, a hash of what it was made from, or a unique one."""
    if event.data_version is not None:
        return event
    version = None
    if made is not None and made.consumer is not None and made.code_version is not None:
        version = _hash(freshness, freshness.graph.find(made.consumer), event, made)
    return replace(event, data_version=version or str(event.id))


def record_update(freshness: FreshnessState, event: AssetEvent, made: Made | None) -> None:
    """Remember an event that was appended to the ledger, and put what it concerns on the agenda."""
    assert event.sequence is not None
    assert event.recorded is not None
    item = Item(event.uri, event.partition_key)
    update = ItemUpdate(item, event.sequence, event.id, event.data_version or str(event.id), event.recorded)
    if made is not None:
        update = made.on(update)
        _correct_run(freshness, item, made)
    elif event.inputs:
        update = replace(update, pins=event.inputs, code_version=event.code_version)
    freshness.made_from(item.uri, update.pins or ())
    touch_item(freshness, item, is_new=freshness.updates.add(update))
    freshness.agenda.instants[event.recorded] = None


def confirm(freshness: FreshnessState, item: Item, confirmation: UUID, made: Made, now: datetime) -> None:
    """Confirm that an output is up to date, made from what its task read; what was never made stays missing.

    A confirmation that is delivered after a later update says nothing of it.
    """
    _correct_run(freshness, item, made)
    node = None if made.consumer is None else freshness.graph.find(made.consumer)
    newest = freshness.updates.newest(item) if node is None else newest_made(freshness, node, item)
    if newest is not None and newest.recorded <= now and newest.event != confirmation:
        again = replace(newest, sequence=freshness.place(), event=confirmation, recorded=now, confirms=True)
        freshness.made_from(item.uri, made.pins or ())
        freshness.updates.add(made.on(again))
        touch_item(freshness, newest.item, is_new=False)


def see(freshness: FreshnessState, item: Item, version: str | None, observation: UUID, at: datetime) -> None:
    """Remember that an observation saw the newest version of an item. It may be heard of late, or once more.

    Parameters:
        observation: the id of its event.
    """
    newest = freshness.updates.newest(item)
    if newest is None or newest.data_version != version or (at < newest.recorded and newest.event != observation):
        return
    seen = freshness.updates.seen(newest)
    if seen is None or seen < at:
        freshness.updates.see(newest, at)
        freshness.agenda.assets[item.uri] = None


def _correct_run(freshness: FreshnessState, output: Item, made: Made) -> None:
    if made.run is not None:
        correct_tried(freshness, made.run, output.uri, made.pins or {}, made.code_version)


def _hash(freshness: FreshnessState, node: FlowNode | None, event: AssetEvent, made: Made) -> str | None:
    """Return a hash of the code version and the versions that were read; `None` if nothing was."""
    if node is None:
        return None
    pins, mappers = made.pins or {}, made.mappers or {}
    updates = [
        freshness.updates.as_of(item, pin)
        for uri, pin in pins.items()
        for item in items_then(freshness, node, mappers.get(uri), event.partition_key, uri, pin)
    ]
    read = sorted((each.item.uri, each.item.key or "", each.data_version) for each in updates if each is not None)
    if not read:
        return None
    text = "\0".join([made.code_version or "", *(part for row in read for part in row)])
    return hashlib.sha256(text.encode()).hexdigest()
