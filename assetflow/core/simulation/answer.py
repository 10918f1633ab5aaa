"""The answer to a scenario: runs, what waits, receipts, answers and errors, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from assetflow.core.consumers import Receipt
from assetflow.core.events import AssetEvent
from assetflow.core.simulation.world import Failure, World

Answer = dict[str, object]


def event_to_answer(world: World, event: AssetEvent) -> Answer:
    """EVENT: the URI, the step that recorded it, and what of the rest there is."""
    assert event.sequence is not None
    found: Answer = {"asset": event.uri, "step": world.step_of_event[event.sequence - 1]}
    if event.extra:
        found["extra"] = dict(event.extra)
    if event.partition_key is not None:
        found["partition_key"] = event.partition_key
    if event.aliases:
        found["aliases"] = sorted(event.aliases)
    return found


def answer_of(world: World, name: str, *, receipts: bool) -> Answer:
    """The whole answer."""
    answer: Answer = {
        "name": name,
        "runs": sorted((*_asset_runs(world), *_time_runs(world)), key=_run_order),
        "queued": _queued(world),
        "pending_partitions": _pending_partitions(world),
    }
    if receipts:
        answer["receipts"] = _receipts(world)
    if world.answers:
        answer["answers"] = world.answers
    if world.failures:
        answer["errors"] = [_error(failure) for failure in world.failures]
    return answer


def _asset_runs(world: World) -> Iterator[Answer]:
    for decision in world.book.decisions:
        run: Answer = {"step": world.step_of_decision[decision.id], "consumer": world.names[decision.consumer]}
        if decision.target_key is not None:
            run["partition_key"] = decision.target_key
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


def _queued(world: World) -> Answer:
    queues = {consumer.name: world.book.queued(consumer.id, None) for consumer in world.consumers}
    return {name: [event_to_answer(world, event) for event in queue] for name, queue in queues.items() if queue}


def _pending_partitions(world: World) -> Answer:
    found: Answer = {}
    for consumer in world.consumers:
        keys = sorted(key for key in world.book.target_keys(consumer.id) if key is not None)
        if keys:
            found[consumer.name] = {
                key: [event_to_answer(world, event) for event in world.book.queued(consumer.id, key)] for key in keys
            }
    return found


def _receipts(world: World) -> list[Answer]:
    def order(receipt: Receipt) -> tuple[int, str, str]:
        consumer = "" if receipt.consumer is None else world.names[receipt.consumer]
        return receipt.event, consumer, receipt.target_key or ""

    return [_receipt(world, receipt) for receipt in sorted(world.book.receipts.values(), key=order)]


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
    return found | {key: text for key in ("by", "why", "error") if (text := getattr(receipt, key))}


def _error(failure: Failure) -> Answer:
    found: Answer = {"step": failure.step}
    if failure.consumer is not None:
        found["consumer"] = failure.consumer
    return found | {"rule": failure.error.rule or "format", "error": str(failure.error)}


def _time_text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
