"""Write what chapter 8 remembers to the tables, from the changes of a unit of work."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Select,
    Text,
    bindparam,
    case,
    cast,
    delete,
    false,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    type_coerce,
    update,
)

from assetflow.core.freshness.records import ItemUpdate
from assetflow.core.freshness.state.source import FreshnessChanges
from assetflow.ledger.sql.bulk import (
    delete_rows,
    in_values,
    insert_into,
    insert_rows,
    text_at,
    update_rows,
    upsert_rows,
)
from assetflow.ledger.sql.freshness_tables import (
    BACKFILL,
    BACKFILL_EDGE,
    BACKFILL_TARGET,
    DATA_FLOW,
    EARLIER_INPUT,
    ITEM,
    ITEM_VERSION,
    KEPT_RUN,
    POLICY,
    POLICY_TOUCH,
    READING,
    TARGET,
    TARGET_KEY,
)
from assetflow.ledger.sql.rows import (
    BACKFILL_ITEMS,
    BACKFILLS,
    ITEM_UPDATES,
    KEPT_RUNS,
    POLICY_CHANGES,
    POLICY_RECORDS,
    TARGET_RECORDS,
)
from assetflow.ledger.sql.tables import EVENT, NO_KEY

_VERSION_KEY = (ITEM_VERSION.c.uri, ITEM_VERSION.c.partition_key, ITEM_VERSION.c.sequence, ITEM_VERSION.c.confirms)
_ADD_VERSIONS = upsert_rows(*ITEM_UPDATES.columns)
_SEE = update_rows(*_VERSION_KEY, ITEM_VERSION.c.seen)
_SET_ITEMS = upsert_rows(*ITEM.c)
_ADD_READINGS = upsert_rows(*READING.c)
_ADD_TARGET_KEYS = upsert_rows(*TARGET_KEY.c)
_TARGET = (TARGET.c.consumer, TARGET.c.target_key)
_SET_TARGETS = upsert_rows(*_TARGET, *TARGET_RECORDS.columns)
_SET_LOOKS = update_rows(*_TARGET, TARGET.c.look)
_BEGIN_RUNS = upsert_rows(*KEPT_RUNS.columns, KEPT_RUN.c.ended, KEPT_RUN.c.state)
_END_RUNS = update_rows(KEPT_RUN.c.id, KEPT_RUN.c.ended, KEPT_RUN.c.state)
_SET_FLOWS = upsert_rows(*DATA_FLOW.c)
_DROP_FLOWS = delete_rows(DATA_FLOW.c.consumer)
_SET_POLICIES = upsert_rows(POLICY.c.uri, *POLICY_RECORDS.columns)
_DROP_POLICIES = delete_rows(POLICY.c.uri)
_ADD_EARLIER_INPUTS = upsert_rows(*EARLIER_INPUT.c)
_ADD_TOUCHES = upsert_rows(*POLICY_TOUCH.c)
_DROP_TOUCHES = delete(POLICY_TOUCH).where(POLICY_TOUCH.c.at <= bindparam("judged"))
_NOTHING_DUE = (
    update(TARGET).where(TARGET.c.look.is_not(None)).values(look=None),
    update(POLICY)
    .where(or_(POLICY.c.due.is_not(None), POLICY.c.next_change.is_not(None)))
    .values(due=None, next_change=None),
    delete(POLICY_TOUCH),
)
_ADD_CHANGES = insert_rows(*POLICY_CHANGES.columns)
_SET_BACKFILLS = upsert_rows(*BACKFILLS.columns, BACKFILL.c.begun)
_SET_STEPS = upsert_rows(BACKFILL_TARGET.c.backfill, *BACKFILL_ITEMS.columns)
_ADD_EDGES = upsert_rows(*BACKFILL_EDGE.c)


def write_freshness(connection: Connection, changes: FreshnessChanges) -> None:
    """Write the changes of the state of freshness to the tables."""
    if changes.is_idle:
        for statement in _NOTHING_DUE:
            connection.execute(statement)
    _write_updates(connection, changes)
    _write_targets(connection, changes)
    _write_runs(connection, changes)
    _write_policies(connection, changes)
    _write_backfills(connection, changes)
    _SET_FLOWS.run(connection, [each for each in changes.flows.items() if each[1] is not None])
    _DROP_FLOWS.run(connection, [(number,) for number, record in changes.flows.items() if record is None])


def _write_updates(connection: Connection, changes: FreshnessChanges) -> None:
    versions = {_key(each): each for each in changes.updates}
    _ADD_VERSIONS.run(connection, [*map(ITEM_UPDATES.row, versions.values())])
    newest = {each.item: each.sequence for each in changes.updates}
    _SET_ITEMS.run(connection, [(*item, place) for item, place in newest.items()])
    _SEE.run(connection, [(*_key(each), moment) for each, moment in changes.seen.values()])


def _write_targets(connection: Connection, changes: FreshnessChanges) -> None:
    if changes.forgotten:
        for table in (READING, TARGET_KEY):
            gone = delete(table).where(in_values(table.c.consumer, "consumers"))
            connection.execute(gone, {"consumers": list(changes.forgotten)})
    _ADD_READINGS.run(connection, [*dict.fromkeys((*target, uri, key) for target, uri, key in changes.readings)])
    _ADD_TARGET_KEYS.run(connection, [*changes.target_keys])
    _SET_TARGETS.run(connection, [(*each, *TARGET_RECORDS.row(record)) for each, record in changes.targets.items()])
    _SET_LOOKS.run(connection, [(*each, moment) for each, moment in changes.looks.items()])
    # Last, because what the same unit of work has judged may be judged again.
    for consumer, (others, now) in changes.set_aside.items():
        given = {"of": consumer, "others": others, "now": now}
        connection.execute(_setting_aside(connection), given)


def _setting_aside(connection: Connection) -> Executable:
    """Return the statement that lets the clock judge the other targets of a flow, except those that run."""
    columns = (*_TARGET, TARGET.c.failures, TARGET.c.verdict, TARGET.c.look)
    values = (literal(0), literal("owed"), bindparam("now", type_=TARGET.c.look.type))
    rows = select(TARGET_KEY.c.consumer, TARGET_KEY.c.target_key, *values).where(
        TARGET_KEY.c.consumer == bindparam("of"), ~in_values(TARGET_KEY.c.target_key, "others")
    )
    adding = insert_into(TARGET, connection.dialect.name).from_select([each.name for each in columns], rows)
    return adding.on_conflict_do_update(
        index_elements=[each.name for each in _TARGET],
        set_={"verdict": adding.excluded.verdict, "look": adding.excluded.look},
        where=TARGET.c.verdict != literal("in_progress"),
    )


def _write_runs(connection: Connection, changes: FreshnessChanges) -> None:
    _BEGIN_RUNS.run(connection, [(*KEPT_RUNS.row(run), None, "") for run in changes.begun.values()])
    _END_RUNS.run(connection, [(number, at, state) for number, (_, state, at) in changes.ended.items()])


def _write_policies(connection: Connection, changes: FreshnessChanges) -> None:
    if changes.judged is not None:
        connection.execute(_DROP_TOUCHES, {"judged": changes.judged})
    records = [(uri, *POLICY_RECORDS.row(each)) for uri, each in changes.policies.items() if each is not None]
    _SET_POLICIES.run(connection, records)
    _DROP_POLICIES.run(connection, [(uri,) for uri, each in changes.policies.items() if each is None])
    _ADD_EARLIER_INPUTS.run(connection, [*changes.earlier_inputs])
    _ADD_TOUCHES.run(connection, [(at, uri) for uri, at in changes.touched])
    _ADD_CHANGES.run(connection, [*map(POLICY_CHANGES.row, changes.policy_changes)])


def _write_backfills(connection: Connection, changes: FreshnessChanges) -> None:
    _SET_BACKFILLS.run(connection, [(*BACKFILLS.row(each), each.made) for each in changes.backfills.values()])
    steps = [(number, *BACKFILL_ITEMS.row(step)) for (number, _), step in changes.steps.items()]
    _SET_STEPS.run(connection, steps)
    _ADD_EDGES.run(connection, changes.edges)


def _key(each: ItemUpdate) -> tuple[str, str | None, int, bool]:
    return each.item.uri, each.item.key, each.sequence, each.confirms


_V = ITEM_VERSION.c
_NEWEST = select(func.coalesce(func.max(_V.sequence), 0)).where(_V.uri == bindparam("of_uri"))
_NEW = (EVENT.c.uri == bindparam("of_uri"), EVENT.c.sequence > bindparam("after"))
_KEY = func.coalesce(EVENT.c.partition_key, NO_KEY)
_COLUMNS = (
    "uri",
    "partition_key",
    "sequence",
    "confirms",
    "event",
    "data_version",
    "recorded",
    "pins",
    "code_version",
)


def track(connection: Connection, uri: str, makers: Mapping[UUID, int]) -> None:
    """Give the updates of an asset that were recorded while nothing compared it their versions.

    Parameters:
        makers: the numbers of the flows that make it, by deployment.
    """
    given = {"of_uri": uri, "after": connection.scalar(_NEWEST, {"of_uri": uri})}
    connection.execute(insert(ITEM_VERSION).from_select(_COLUMNS, _versions(connection)), given)
    for deployment_id, consumer in makers.items():
        made = select(EVENT.c.id).where(
            *_NEW, text_at(EVENT.c.origin, "flow_run", "deployment_id") == str(deployment_id)
        )
        rows = update(ITEM_VERSION).where(_V.uri == bindparam("of_uri"), _V.event.in_(made))
        connection.execute(rows.values(consumer=consumer, pins=null()), given)
    newest = select(EVENT.c.uri, _KEY, func.max(EVENT.c.sequence)).where(*_NEW).group_by(EVENT.c.uri, _KEY)
    items = insert_into(ITEM, connection.dialect.name).from_select(["uri", "partition_key", "sequence"], newest)
    changes = {"sequence": items.excluded.sequence}
    connection.execute(items.on_conflict_do_update(index_elements=["uri", "partition_key"], set_=changes), given)


def _versions(connection: Connection) -> Select[Any]:
    """Return the query for the new rows: an update without a version of its own has its id as version."""
    text = type_coerce(cast(EVENT.c.id, Text), Text)
    own = text if connection.dialect.name == "postgresql" else _with_dashes(text)
    has_pins = cast(EVENT.c.inputs, Text) != literal("{}")
    return select(
        EVENT.c.uri,
        _KEY,
        EVENT.c.sequence,
        false(),
        EVENT.c.id,
        func.coalesce(EVENT.c.data_version, own),
        EVENT.c.recorded,
        case((has_pins, EVENT.c.inputs)),
        EVENT.c.code_version,
    ).where(*_NEW)


def _with_dashes(digits: ColumnElement[str]) -> ColumnElement[str]:
    parts = [func.substr(digits, start, length) for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
    return reduce(lambda before, part: before + "-" + part, parts)
