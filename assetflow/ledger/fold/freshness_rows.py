"""What chapter 8 remembers, as rows of the tables and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from assetflow.core.freshness.records import FlowRecord, Inputs, Item, ItemUpdate, Moment, Run, Target, TargetRecord
from assetflow.core.freshness.state.policies import PolicyChange, PolicyRecord
from assetflow.core.freshness.state.targets import Backfill, BackfillItem
from assetflow.core.values.freshness_policy import CURRENT, DataTime
from assetflow.core.wire.conditions import policy_from_json, policy_to_json
from assetflow.core.wire.freshness import causes_from_json, causes_to_json, reads_from_json, reads_to_json
from assetflow.ledger.sql.freshness_tables import (
    BACKFILL,
    BACKFILL_TARGET,
    ITEM_VERSION,
    KEPT_RUN,
    POLICY,
    POLICY_CHANGE,
    TARGET,
)
from assetflow.ledger.sql.rows import key_from_column, key_to_column

Json = Mapping[str, Any]

VERSION_KEY = (ITEM_VERSION.c.uri, ITEM_VERSION.c.partition_key, ITEM_VERSION.c.sequence, ITEM_VERSION.c.confirms)
VERSION_VALUES = (
    ITEM_VERSION.c.event,
    ITEM_VERSION.c.data_version,
    ITEM_VERSION.c.recorded,
    ITEM_VERSION.c.consumer,
    ITEM_VERSION.c.pins,
    ITEM_VERSION.c.code_version,
    ITEM_VERSION.c.started,
    ITEM_VERSION.c.mappers,
)
VERSION_COLUMNS = (*VERSION_KEY, *VERSION_VALUES)
RUN_KEY = (KEPT_RUN.c.id,)
RUN_VALUES = (
    KEPT_RUN.c.consumer,
    KEPT_RUN.c.target_key,
    KEPT_RUN.c.kind,
    KEPT_RUN.c.asked,
    KEPT_RUN.c.began,
    KEPT_RUN.c.tried,
    KEPT_RUN.c.pins,
    KEPT_RUN.c.predecessor,
)
RUN_END = (KEPT_RUN.c.ended, KEPT_RUN.c.state)
TARGET_PLACE = (TARGET.c.consumer, TARGET.c.target_key)
TARGET_VALUES = (
    TARGET.c.tried,
    TARGET.c.waived,
    TARGET.c.failures,
    TARGET.c.ended,
    TARGET.c.ended_place,
    TARGET.c.ended_order,
    TARGET.c.decision,
    TARGET.c.verdict,
    TARGET.c.retry_at,
)


def update_to_row(update: ItemUpdate) -> tuple[Any, ...]:
    """Return an update or a confirmation as a row of `VERSION_COLUMNS`."""
    place = (update.item.uri, key_to_column(update.item.key), update.sequence, int(update.confirms))
    mappers = None if update.mappers is None else reads_to_json(update.mappers)
    how = (update.consumer, update.pins, update.code_version, update.started, mappers)
    return (*place, update.event, update.data_version, update.recorded, *how)


def update_from_row(row: Sequence[Any]) -> ItemUpdate:
    """Return the update or the confirmation in a row of `VERSION_COLUMNS`."""
    uri, key, sequence, confirms, event, data_version, recorded, consumer, pins, code_version, started, by = row
    item = Item(uri, key_from_column(key))
    how = (consumer, pins, code_version, started, bool(confirms), None if by is None else reads_from_json(by))
    return ItemUpdate(item, sequence, event, data_version, recorded, *how)


def run_to_row(run: Run) -> tuple[Any, ...]:
    """Return a run as a row of `RUN_KEY` and `RUN_VALUES`."""
    of = (run.id, run.target.consumer, key_to_column(run.target.key), run.kind)
    return (*of, run.asked, run.began, inputs_to_json(run.tried), run.pins, run.predecessor)


def run_from_row(row: Sequence[Any]) -> Run:
    """Return the run in a row of `RUN_KEY` and `RUN_VALUES`."""
    number, consumer, key, kind, asked, began, tried, pins, predecessor = row
    inputs = inputs_from_json(tried)
    assert inputs is not None, "a run tries inputs"
    return Run(number, Target(consumer, key_from_column(key)), kind, asked, began, inputs, pins, predecessor)


def target_to_row(target: Target, record: TargetRecord) -> tuple[Any, ...]:
    """Return what is remembered of a target as a row of `TARGET_PLACE` and `TARGET_VALUES`."""
    ended = (None, 0, 0) if record.ended is None else record.ended
    inputs = (inputs_to_json(record.tried), inputs_to_json(record.waived))
    of = (target.consumer, key_to_column(target.key))
    return (*of, *inputs, record.failures, *ended, record.decision, record.verdict, record.retry_at)


def target_from_row(row: Sequence[Any]) -> tuple[Target, TargetRecord]:
    """Return what is remembered of a target from a row of `TARGET_PLACE` and `TARGET_VALUES`."""
    consumer, key, tried, waived, failures, ended, place, order, decision, verdict, retry_at = row
    moment = None if ended is None else Moment(ended, place, order)
    inputs = (inputs_from_json(tried), inputs_from_json(waived))
    return Target(consumer, key_from_column(key)), TargetRecord(*inputs, failures, moment, decision, verdict, retry_at)


def inputs_to_json(inputs: Inputs | None) -> Json | None:
    """Return the inputs that a run tried, or that were waived, as JSON."""
    if inputs is None:
        return None
    reads = reads_to_json(inputs.reads)
    return {"sequence": inputs.sequence, "code_versions": inputs.code_versions, "reads": reads}


def inputs_from_json(data: Json | None) -> Inputs | None:
    """Return the inputs that `inputs_to_json` wrote."""
    return None if data is None else Inputs(data["sequence"], data["code_versions"], reads_from_json(data["reads"]))


def flow_to_json(record: FlowRecord) -> Json:
    """Return since when a flow is as it is, as JSON."""
    return {
        "outputs": {uri: _moment_to_json(moment) for uri, moment in record.outputs.items()},
        "code": _moment_to_json(record.code),
        "reads": _moment_to_json(record.reads),
        "kept": _moment_to_json(record.kept),
        "failed": record.failed and record.failed.isoformat(),
        "good": record.good and record.good.isoformat(),
    }


def flow_from_json(data: Json) -> FlowRecord:
    """Return what `flow_to_json` wrote."""
    return FlowRecord(
        {uri: _moment_from_json(moment) for uri, moment in data["outputs"].items()},
        *(_moment_from_json(data[name]) for name in ("code", "reads", "kept")),
        failed=_instant_from_json(data["failed"]),
        good=_instant_from_json(data["good"]),
    )


def _moment_to_json(moment: Moment) -> list[Any]:
    return [moment.at.isoformat(), *moment[1:]]


def _moment_from_json(data: Sequence[Any]) -> Moment:
    return Moment(datetime.fromisoformat(data[0]), *data[1:])


def _instant_from_json(data: str | None) -> datetime | None:
    return None if data is None else datetime.fromisoformat(data)


BACKFILL_KEY = (BACKFILL.c.number,)
BACKFILL_VALUES = (
    BACKFILL.c.made,
    BACKFILL.c.uri,
    BACKFILL.c.down,
    BACKFILL.c.concurrency,
    BACKFILL.c.made_by,
    BACKFILL.c.why,
    BACKFILL.c.stopped,
    BACKFILL.c.ended,
    BACKFILL.c.todo,
    BACKFILL.c.asked,
    BACKFILL.c.done,
    BACKFILL.c.failed,
    BACKFILL.c.removed,
)
BACKFILL_COLUMNS = (*BACKFILL_KEY, *BACKFILL_VALUES)
STEP_KEY = (BACKFILL_TARGET.c.backfill, BACKFILL_TARGET.c.place)
STEP_VALUES = (
    BACKFILL_TARGET.c.consumer,
    BACKFILL_TARGET.c.target_key,
    BACKFILL_TARGET.c.wave,
    BACKFILL_TARGET.c.waits,
    BACKFILL_TARGET.c.state,
    BACKFILL_TARGET.c.attempt,
)
STEP_COLUMNS = (BACKFILL_TARGET.c.place, *STEP_VALUES)


def backfill_to_row(backfill: Backfill) -> tuple[Any, ...]:
    """Return a backfill as a row of `BACKFILL_COLUMNS`."""
    asked = (backfill.number, backfill.made, backfill.uri, int(backfill.down), backfill.concurrency)
    counts = (backfill.todo, backfill.asked, backfill.done, backfill.failed, backfill.removed)
    return (*asked, backfill.by, backfill.why, backfill.stopped, backfill.ended, *counts)


def backfill_from_row(row: Sequence[Any]) -> Backfill:
    """Return the backfill in a row of `BACKFILL_COLUMNS`."""
    number, made, uri, down, *rest = row
    return Backfill(number, made, uri, bool(down), *rest)


def step_to_row(number: int, step: BackfillItem) -> tuple[Any, ...]:
    """Return a target of a backfill as a row of `STEP_KEY` and `STEP_VALUES`."""
    of = (number, step.place, step.target.consumer, key_to_column(step.target.key))
    return (*of, step.wave, step.waits, step.state, step.attempt)


def step_from_row(row: Sequence[Any]) -> BackfillItem:
    """Return the target of a backfill in a row of `STEP_COLUMNS`."""
    place, consumer, key, *rest = row
    return BackfillItem(place, Target(consumer, key_from_column(key)), *rest)


POLICY_KEY = (POLICY.c.uri,)
POLICY_VALUES = (
    POLICY.c.declaration,
    POLICY.c.since,
    POLICY.c.state,
    POLICY.c.state_since,
    POLICY.c.data_time,
    POLICY.c.due,
    POLICY.c.next_change,
    POLICY.c.chain,
)
CHANGE_COLUMNS = (
    POLICY_CHANGE.c.number,
    POLICY_CHANGE.c.uri,
    POLICY_CHANGE.c.state,
    POLICY_CHANGE.c.at,
    POLICY_CHANGE.c.data_time,
    POLICY_CHANGE.c.lag,
    POLICY_CHANGE.c.policy,
    POLICY_CHANGE.c.causes,
    POLICY_CHANGE.c.maker,
)


def policy_to_row(uri: str, record: PolicyRecord) -> tuple[Any, ...]:
    """Return what is remembered of a policy as a row of `POLICY_KEY` and `POLICY_VALUES`."""
    judged = (record.state, record.state_since, _data_time_to_text(record.data_time))
    chain = [[name, span.total_seconds()] for name, span in record.chain]
    return (uri, policy_to_json(record.policy), record.since, *judged, record.due, record.next_change, chain)


def policy_from_row(row: Sequence[Any]) -> tuple[str, PolicyRecord]:
    """Return the asset and what is remembered of its policy from a row of `POLICY_KEY` and `POLICY_VALUES`."""
    uri, declaration, since, state, state_since, data_time, due, next_change, chain = row
    judged = (state, state_since, _data_time_from_text(data_time))
    spans = tuple((name, timedelta(seconds=seconds)) for name, seconds in chain)
    return uri, PolicyRecord(policy_from_json(declaration), since, *judged, due, next_change, spans)


def change_to_row(number: int, change: PolicyChange) -> tuple[Any, ...]:
    """Return a change of state as a row of `CHANGE_COLUMNS`."""
    lag = None if change.lag is None else change.lag.total_seconds()
    of = (number, change.uri, change.state, change.at, _data_time_to_text(change.data_time), lag)
    return (*of, policy_to_json(change.policy), causes_to_json(change.causes), change.maker)


def change_from_row(row: Sequence[Any]) -> tuple[int, PolicyChange]:
    """Return the number and the change of state in a row of `CHANGE_COLUMNS`."""
    number, uri, state, at, data_time, lag, policy, causes, maker = row
    span = None if lag is None else timedelta(seconds=lag)
    of = (uri, state, at, _data_time_from_text(data_time), policy_from_json(policy), span)
    return number, PolicyChange(*of, causes_from_json(causes), maker)


def _data_time_to_text(data_time: DataTime | None) -> str | None:
    return data_time.isoformat() if isinstance(data_time, datetime) else None if data_time is None else data_time.value


def _data_time_from_text(text: str | None) -> DataTime | None:
    if text is None:
        return None
    return CURRENT if text == CURRENT.value else datetime.fromisoformat(text)
