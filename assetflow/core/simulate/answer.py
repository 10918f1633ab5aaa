"""The answer to a scenario as plain JSON data: runs, queues, receipts and errors, and the answers to its questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import cast

from assetflow.core.freshness.data_time import DataTimes
from assetflow.core.freshness.deciding import plan
from assetflow.core.freshness.demands import Demands, policy_inputs
from assetflow.core.freshness.records import BackfillItem, Item, Target, Verdict
from assetflow.core.freshness.statuses import ItemStatus, Statuses
from assetflow.core.grouping import grouped
from assetflow.core.rules.waits import TimedQueue, next_deadline
from assetflow.core.simulate.world import Failure, World
from assetflow.core.values.consumers import Consumer, Receipt
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.freshness_policy import CURRENT, DataTime
from assetflow.core.values.keeping import Cause

Answer = dict[str, object]


def _filled(**parts: object) -> Answer:
    """Return those parts of an answer that are there."""
    return {name: value for name, value in parts.items() if value is not None}


def event_to_answer(world: World, event: AssetEvent) -> Answer:
    """Return an event: its URI, the step that recorded it, and its other fields that are not empty."""
    assert event.sequence is not None
    return _filled(
        asset=event.uri,
        step=world.step_of_event[event.sequence - 1],
        extra=dict(event.extra) or None,
        partition_key=event.partition_key,
        aliases=sorted(event.aliases) or None,
    )


def answer_of(world: World, name: str, *, receipts: bool, timed: bool = False) -> Answer:
    """Return the answer to a scenario whose steps are carried out.

    Parameters:
        timed: whether runs bear the instants of their decisions.
    """
    return _filled(
        name=name,
        runs=_runs(world, timed=timed),
        queued=_queued(world),
        pending_partitions=_pending_partitions(world),
        receipts=_receipts(world) if receipts else None,
        answers=world.answers or None,
        freshness_events=_freshness_events(world) or None,
        backfills=_backfills(world) or None,
        missed=sorted(_missed(world), key=_missed_order) or None,
        errors=[_error(failure) for failure in world.failures] or None,
    )


def explained(world: World, consumer: Consumer) -> list[Answer]:
    """Return what holds a consumer back: a row for each key with something queued, or one row (9.15)."""
    keys = sorted(world.state.queues.target_keys(consumer.id), key=lambda key: key or "") or [None]
    return [_explained(world, TimedQueue(world.state, consumer, key, world.now, recorded=False)) for key in keys]


def _explained(world: World, queue: TimedQueue) -> Answer:
    return _filled(
        partition_key=queue.target_key,
        waits={reason: _time(moment) for reason, moment in queue.waits().items()},
        expires=[[event.sequence, _time(moment)] for event, moment in queue.line.expiries()] or None,
        deadline=_time(next_deadline(world.state, queue)),
    )


def _missed(world: World) -> Iterator[Answer]:
    for step, missed in zip(world.step_of_missed, world.state.changes.missed, strict=True):
        yield _filled(
            step=step,
            at=_time(missed.at),
            due=_time(missed.due),
            consumer=world.names[missed.consumer],
            then=missed.then,
            queued=missed.queued,
            partition_key=missed.target_key,
        )


def _missed_order(missed: Answer) -> tuple[object, ...]:
    return missed["at"], missed["consumer"], missed.get("partition_key", ""), missed["due"]


def _runs(world: World, *, timed: bool) -> list[Answer]:
    runs = (*_asset_runs(world, timed=timed), *_time_runs(world))
    return sorted(runs, key=_timed_order if timed else _run_order)


def _asset_runs(world: World, *, timed: bool) -> Iterator[Answer]:
    for decision in world.state.changes.decisions:
        asked = decision.kind != "asset"
        yield _filled(
            step=world.step_of_decision[decision.id],
            consumer=world.names[decision.consumer],
            at=_time(decision.made) if timed else None,
            time=_time(decision.made if asked else decision.opening),
            deadline=decision.by_deadline or None,
            partition_key=decision.target_key,
            because=[_cause(each) for each in decision.because] if asked else None,
            events=[event_to_answer(world, event) for event in decision.events],
        )


def _time_runs(world: World) -> Iterator[Answer]:
    for run in world.time_runs:
        yield _filled(
            step=run.step,
            consumer=world.names[run.consumer],
            partition_key=run.tick.partition_key,
            time=_time(run.tick.time),
            events=[],
        )


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
    consumer = None if receipt.consumer is None else world.names[receipt.consumer]
    found: Answer = {"event": receipt.event, "asset": receipt.uri, "consumer": consumer, "status": receipt.status}
    return found | _filled(
        partition_key=receipt.target_key,
        step=None if receipt.decision is None else world.step_of_decision[receipt.decision],
        at=_time(receipt.at),
        by=receipt.by or None,
        why=receipt.why or None,
        error=receipt.error or None,
    )


def _error(failure: Failure) -> Answer:
    error = {"rule": failure.error.rule or "format", "error": str(failure.error)}
    return {"step": failure.step, **_filled(consumer=failure.consumer), **error}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def target_to_answer(world: World, target: Target) -> Answer:
    """Return a target: its consumer, and its key if it has one."""
    return _filled(consumer=world.names[target.consumer], partition_key=target.key)


def status_answer(world: World, items: Iterable[tuple[str, str | None]] | None) -> Answer:
    """Return the status of some items, or of everything that is read or made."""
    freshness = world.state.freshness
    if items is None:
        nodes = freshness.graph.all()
        items = [(uri, None) for uri in sorted({uri for node in nodes for uri in (*node.inputs, *node.outputs)})]
    found: Answer = {}
    statuses = Statuses(freshness)
    for uri, key in items:
        counts = statuses.counts(uri) if key is None else None
        if counts is not None:
            found[uri] = {"counts": dict(counts.states), "outdated": counts.outdated}
        else:
            found[uri if key is None else f"{uri}@{key}"] = _status(statuses.of(Item(uri, key)))
    return found


def freshness_answer(world: World, uris: Iterable[str] | None) -> Answer:
    """Return data time and state of some assets, or of all that have a policy."""
    freshness = world.state.freshness
    data_times = DataTimes(freshness)
    demands = Demands(freshness, data_times, world.now)
    found: Answer = {}
    for uri in sorted(freshness.policies.all()) if uris is None else uris:
        record = freshness.policies.find(uri)
        data_time = data_times.of_asset(uri, None if record is None else policy_inputs(freshness, record))
        answer: Answer = {"data_time": _data_time_text(data_time)}
        if record is not None:
            lag = record.policy.lag(data_time, record.since, world.now)
            answer |= {
                "state": record.policy.judge(data_time, record.since, world.now),
                "lag": None if lag is None else _seconds(lag),
                "feasible": demands.can_be_held(uri),
            }
        found[uri] = answer
    return found


def plan_answer(world: World) -> list[Answer]:
    """Return what would be done now, and what holds it back."""
    rows = [_verdict(world, verdict) for verdict in plan(world.state.freshness, world.now)]
    return sorted(rows, key=lambda row: (row["consumer"], row.get("partition_key", "")))


def _backfills(world: World) -> list[Answer]:
    """Return what became of the targets of each backfill."""
    changes = world.state.freshness.changes
    return [
        _steps(world, [step for (of, _), step in changes.steps.items() if of == number])
        for number in sorted(changes.backfills)
    ]


def _freshness_events(world: World) -> list[Answer]:
    """Return the changes of state that were told, in order."""
    told = world.state.freshness.changes.policy_changes
    return [
        {"step": step, "time": _time(each.at), "asset": each.uri, "state": each.state}
        for step, each in zip(world.step_of_told, told, strict=True)
    ]


def _steps(world: World, steps: Sequence[BackfillItem]) -> Answer:
    found = grouped((step.state, step.target) for step in steps)
    rows = {state: [target_to_answer(world, target) for target in targets] for state, targets in found.items()}
    return {
        state: sorted(each, key=lambda row: (row["consumer"], row.get("partition_key", "")))
        for state, each in rows.items()
    }


def _verdict(world: World, verdict: Verdict) -> Answer:
    return target_to_answer(world, verdict.target) | _filled(
        verdict=verdict.name,
        because=[_cause(cause) for cause in verdict.because] or None,
        missing=[_item(item) for item in verdict.missing] or None,
        waits_for=[target_to_answer(world, target) for target in verdict.waits_for] or None,
        at=_time(verdict.at),
    )


def _status(status: ItemStatus) -> Answer:
    if status.state in ("source", "unknown"):
        return {"state": status.state}
    causes = [_cause(cause) for cause in status.causes] if status.state == "stale" else None
    return _filled(state=status.state, outdated=status.outdated, causes=causes)


def _cause(cause: Cause) -> Answer:
    return {"kind": cause.kind, **(_item(Item(cause.uri, cause.key)) if cause.uri else {})}


def _item(item: Item) -> Answer:
    return _filled(asset=item.uri, partition_key=item.key)


def _seconds(span: timedelta) -> int | float:
    seconds = span.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def _data_time_text(data_time: DataTime | None) -> str | None:
    if data_time is CURRENT:
        return "current"
    return _time(data_time) if isinstance(data_time, datetime) else None
