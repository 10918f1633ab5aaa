"""The answer to a scenario as plain JSON data: runs, queues, receipts, answers and errors."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import cast

from assetflow.core.rules.deadlines import next_deadline
from assetflow.core.rules.waits import TimedQueue
from assetflow.core.simulate.freshness_answers import (
    backfills_answer,
    cause_to_answer,
    freshness_events_answer,
    time_text,
)
from assetflow.core.simulate.world import Failure, World
from assetflow.core.values.consumers import Consumer, Receipt
from assetflow.core.values.events import AssetEvent

Answer = dict[str, object]


def event_to_answer(world: World, event: AssetEvent) -> Answer:
    """Return an event: its URI, the step that recorded it, and its other fields that are not empty."""
    assert event.sequence is not None
    found: Answer = {"asset": event.uri, "step": world.step_of_event[event.sequence - 1]}
    if event.extra:
        found["extra"] = dict(event.extra)
    if event.partition_key is not None:
        found["partition_key"] = event.partition_key
    if event.aliases:
        found["aliases"] = sorted(event.aliases)
    return found


def answer_of(world: World, name: str, *, receipts: bool, timed: bool = False) -> Answer:
    """Return the answer to a scenario whose steps are carried out.

    Parameters:
        timed: whether runs bear the instants of their decisions.
    """
    answer: Answer = {
        "name": name,
        "runs": _runs(world, timed=timed),
        "queued": _queued(world),
        "pending_partitions": _pending_partitions(world),
    }
    if receipts:
        answer["receipts"] = _receipts(world)
    if world.answers:
        answer["answers"] = world.answers
    if world.state.freshness.changes.policy_changes:
        answer["freshness_events"] = freshness_events_answer(world)
    if world.state.freshness.changes.backfills:
        answer["backfills"] = backfills_answer(world)
    if world.state.changes.missed:
        answer["missed"] = sorted(_missed(world), key=_missed_order)
    if world.failures:
        answer["errors"] = [_error(failure) for failure in world.failures]
    return answer


def explained(world: World, consumer: Consumer) -> list[Answer]:
    """Return what holds a consumer back: a row for each key with something queued, or one row (9.15)."""
    keys = sorted(world.state.queues.target_keys(consumer.id), key=lambda key: key or "") or [None]
    return [_explained(world, TimedQueue(world.state, consumer, key, world.now, recorded=False)) for key in keys]


def _explained(world: World, queue: TimedQueue) -> Answer:
    row: Answer = {} if queue.target_key is None else {"partition_key": queue.target_key}
    row["waits"] = {reason: moment and _time_text(moment) for reason, moment in queue.waits().items()}
    if expiries := queue.line.expiries():
        row["expires"] = [[event.sequence, _time_text(moment)] for event, moment in expiries]
    if (deadline := next_deadline(world.state, queue)) is not None:
        row["deadline"] = _time_text(deadline)
    return row


def _missed(world: World) -> Iterator[Answer]:
    for step, missed in zip(world.step_of_missed, world.state.changes.missed, strict=True):
        found: Answer = {
            "step": step,
            "at": _time_text(missed.at),
            "due": _time_text(missed.due),
            "consumer": world.names[missed.consumer],
            "then": missed.then,
            "queued": missed.queued,
        }
        yield found if missed.target_key is None else found | {"partition_key": missed.target_key}


def _missed_order(missed: Answer) -> tuple[object, ...]:
    return missed["at"], missed["consumer"], missed.get("partition_key", ""), missed["due"]


def _runs(world: World, *, timed: bool) -> list[Answer]:
    runs = (*_asset_runs(world, timed=timed), *_time_runs(world))
    return sorted(runs, key=_timed_order if timed else _run_order)


def _asset_runs(world: World, *, timed: bool) -> Iterator[Answer]:
    for decision in world.state.changes.decisions:
        run: Answer = {"step": world.step_of_decision[decision.id], "consumer": world.names[decision.consumer]}
        if timed:
            run["at"] = _time_text(decision.made)
        if decision.opening is not None:
            run["time"] = _time_text(decision.opening)
        if decision.by_deadline:
            run["deadline"] = True
        if decision.target_key is not None:
            run["partition_key"] = decision.target_key
        if decision.kind != "asset":
            run |= {"time": time_text(decision.made), "because": [cause_to_answer(each) for each in decision.because]}
        run["events"] = [event_to_answer(world, event) for event in decision.events]
        yield run


def _time_runs(world: World) -> Iterator[Answer]:
    for run in world.time_runs:
        found: Answer = {"step": run.step, "consumer": world.names[run.consumer]}
        if run.tick.partition_key is not None:
            found["partition_key"] = run.tick.partition_key
        found["time"] = _time_text(run.tick.time)
        found["events"] = []
        yield found


def _run_order(run: Answer) -> tuple[object, ...]:
    return run["step"], run["consumer"], run.get("time", ""), run.get("partition_key", "")


def _timed_order(run: Answer) -> tuple[object, ...]:
    events = cast("list[Answer]", run["events"])
    return run.get("at", run.get("time")), *_run_order(run), events[0]["step"] if events else -1


def _queued(world: World) -> Answer:
    queues = {consumer.name: world.state.queues.queued(consumer.id, None) for consumer in world.consumers}
    return {name: [event_to_answer(world, event) for event in queue] for name, queue in queues.items() if queue}


def _pending_partitions(world: World) -> Answer:
    found: Answer = {}
    for consumer in world.consumers:
        keys = sorted(key for key in world.state.queues.target_keys(consumer.id) if key is not None)
        if keys:
            found[consumer.name] = {
                key: [event_to_answer(world, event) for event in world.state.queues.queued(consumer.id, key)]
                for key in keys
            }
    return found


def _receipts(world: World) -> list[Answer]:
    def order(receipt: Receipt) -> tuple[int, str, str]:
        consumer = "" if receipt.consumer is None else world.names[receipt.consumer]
        return receipt.event, consumer, receipt.target_key or ""

    return [_receipt(world, receipt) for receipt in sorted(world.state.changes.all_receipts(), key=order)]


def _receipt(world: World, receipt: Receipt) -> Answer:
    found: Answer = {
        "event": receipt.event,
        "asset": receipt.uri,
        "consumer": None if receipt.consumer is None else world.names[receipt.consumer],
        "status": receipt.status,
    }
    if receipt.target_key is not None:
        found["partition_key"] = receipt.target_key
    if receipt.decision is not None:
        found["step"] = world.step_of_decision[receipt.decision]
    if receipt.at is not None:
        found["at"] = _time_text(receipt.at)
    return found | {key: text for key in ("by", "why", "error") if (text := getattr(receipt, key))}


def _error(failure: Failure) -> Answer:
    found: Answer = {"step": failure.step}
    if failure.consumer is not None:
        found["consumer"] = failure.consumer
    return found | {"rule": failure.error.rule or "format", "error": str(failure.error)}


def _time_text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
