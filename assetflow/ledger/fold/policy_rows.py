"""Freshness policies and their changes of state, as rows of the tables and back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from assetflow.core.codec.policies import policy_from_json, policy_to_json
from assetflow.core.freshness.moments import CURRENT, DataTime
from assetflow.core.freshness.state.policies import PolicyChange, PolicyRecord
from assetflow.core.wire.freshness import causes_from_json, causes_to_json
from assetflow.ledger.sql.freshness_tables import POLICY, POLICY_CHANGE

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
