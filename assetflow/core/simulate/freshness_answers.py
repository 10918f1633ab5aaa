"""The answers to steps about status, freshness and plans, and what the answer says of runs and backfills."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from assetflow.core.freshness.data_time import DataTimes
from assetflow.core.freshness.deciding import plan
from assetflow.core.freshness.demands import Demands, policy_inputs
from assetflow.core.freshness.records import BackfillItem, Item, Target, Verdict
from assetflow.core.freshness.statuses import ItemStatus, counts_of, status_of
from assetflow.core.simulate.world import World
from assetflow.core.values.freshness_policy import CURRENT, DataTime
from assetflow.core.values.keeping import Cause

Json = dict[str, object]


def time_text(moment: datetime) -> str:
    """Return a moment as answers write it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def cause_to_answer(cause: Cause) -> Json:
    """Return a cause with what it names."""
    return {"kind": cause.kind, **(_item_to_answer(Item(cause.uri, cause.key)) if cause.uri else {})}


def target_to_answer(world: World, target: Target) -> Json:
    """Return a target: its consumer, and its key if it has one."""
    found: Json = {"consumer": world.names[target.consumer]}
    return found if target.key is None else found | {"partition_key": target.key}


def status_answer(world: World, items: Iterable[tuple[str, str | None]] | None) -> Json:
    """Return the status of some items, or of everything that is read or made."""
    freshness = world.state.freshness
    if items is None:
        nodes = freshness.graph.all()
        items = [(uri, None) for uri in sorted({uri for node in nodes for uri in (*node.inputs, *node.outputs)})]
    found: Json = {}
    for uri, key in items:
        counts = counts_of(freshness, uri) if key is None else None
        if counts is not None:
            found[uri] = {"counts": dict(counts.states), "outdated": counts.outdated}
        else:
            found[uri if key is None else f"{uri}@{key}"] = _status_to_answer(status_of(freshness, Item(uri, key)))
    return found


def freshness_answer(world: World, uris: Iterable[str] | None) -> Json:
    """Return data time and state of some assets, or of all that have a policy."""
    freshness = world.state.freshness
    data_times = DataTimes(freshness)
    demands = Demands(freshness, data_times, world.now)
    found: Json = {}
    for uri in sorted(freshness.policies.all()) if uris is None else uris:
        record = freshness.policies.find(uri)
        data_time = data_times.of_asset(uri, None if record is None else policy_inputs(freshness, record))
        answer: Json = {"data_time": _data_time_text(data_time)}
        if record is not None:
            lag = record.policy.lag(data_time, record.since, world.now)
            answer |= {
                "state": record.policy.judge(data_time, record.since, world.now),
                "lag": None if lag is None else _seconds(lag),
                "feasible": demands.can_be_held(uri),
            }
        found[uri] = answer
    return found


def plan_answer(world: World) -> list[Json]:
    """Return what would be done now, and what holds it back."""
    rows = [_verdict_to_answer(world, verdict) for verdict in plan(world.state.freshness, world.now)]
    return sorted(rows, key=lambda row: (row["consumer"], row.get("partition_key", "")))


def backfills_answer(world: World) -> list[Json]:
    """Return what became of the targets of each backfill."""
    changes = world.state.freshness.changes
    return [
        _steps_to_answer(world, [step for (of, _), step in changes.steps.items() if of == number])
        for number in sorted(changes.backfills)
    ]


def freshness_events_answer(world: World) -> list[Json]:
    """Return the changes of state that were told, in order."""
    told = world.state.freshness.changes.policy_changes
    return [
        {"step": step, "time": time_text(each.at), "asset": each.uri, "state": each.state}
        for step, each in zip(world.step_of_told, told, strict=True)
    ]


def _steps_to_answer(world: World, steps: Sequence[BackfillItem]) -> Json:
    found: dict[str, list[Target]] = {}
    for step in steps:
        found.setdefault(step.state, []).append(step.target)
    rows = {state: [target_to_answer(world, target) for target in targets] for state, targets in found.items()}
    return {
        state: sorted(each, key=lambda row: (row["consumer"], row.get("partition_key", "")))
        for state, each in rows.items()
    }


def _verdict_to_answer(world: World, verdict: Verdict) -> Json:
    row = target_to_answer(world, verdict.target) | {"verdict": verdict.name}
    if verdict.because:
        row["because"] = [cause_to_answer(cause) for cause in verdict.because]
    if verdict.missing:
        row["missing"] = [_item_to_answer(item) for item in verdict.missing]
    if verdict.waits_for:
        row["waits_for"] = [target_to_answer(world, target) for target in verdict.waits_for]
    if verdict.at is not None:
        row["at"] = time_text(verdict.at)
    return row


def _status_to_answer(status: ItemStatus) -> Json:
    if status.state in ("source", "unknown"):
        return {"state": status.state}
    causes = [cause_to_answer(cause) for cause in status.causes]
    found: Json = {"state": status.state, "outdated": status.outdated}
    return found | {"causes": causes} if status.state == "stale" else found


def _item_to_answer(item: Item) -> Json:
    found: Json = {"asset": item.uri}
    return found if item.key is None else found | {"partition_key": item.key}


def _seconds(span: timedelta) -> int | float:
    seconds = span.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def _data_time_text(data_time: DataTime | None) -> str | None:
    if data_time is CURRENT:
        return "current"
    return time_text(data_time) if isinstance(data_time, datetime) else None
