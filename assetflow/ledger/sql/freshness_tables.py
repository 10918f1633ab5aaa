"""The tables of chapter 8: versions of items, who reads what, and what was tried.

They hold only what an Eager or Lazy flow reads or makes, what has a freshness policy, and what is above these. Without
such a flow or a policy all of them are empty.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Index
from sqlmodel import Field

from assetflow.core.freshness.records import Chain, FlowRecord, Inputs, Moment
from assetflow.core.values.freshness_policy import Current
from assetflow.core.wire.declarations import policy_from_json, policy_to_json, reads_from_json, reads_to_json
from assetflow.ledger.sql.bulk import JsonText, KeyText, Number, Stored, UtcTime, stored
from assetflow.ledger.sql.tables import CAUSES, CLUSTERED, Base, as_table, partial_index


def _inputs_to_json(inputs: Inputs) -> dict[str, object]:
    reads = reads_to_json(inputs.reads)
    return {"sequence": inputs.sequence, "code_versions": inputs.code_versions, "reads": reads}


def _inputs_from_json(data: dict[str, Any]) -> Inputs:
    return Inputs(data["sequence"], data["code_versions"], reads_from_json(data["reads"]))


_INPUTS: Any = Stored(_inputs_to_json, _inputs_from_json)
_POLICY: Any = Stored(policy_to_json, policy_from_json)


@as_table
class DATA_FLOW(Base, table=True):
    """A flow in the data graph; `record` has when its parts were deployed (8.6)."""

    consumer: int = Field(primary_key=True, sa_type=Number, foreign_key="consumer.id")
    record: dict[str, Any] = Field(sa_type=stored(FlowRecord))


@as_table
class ITEM_VERSION(Base, table=True):
    """An update of an item, or, with `confirms` 1, the confirmation that it is up to date (8.2).

    `event` is the id of the event, or one of its own for a confirmation. `pins` has for each input the sequence up to
    which it was read, and `mappers` its mapper; null if nobody said. `seen` is the last observation that saw this
    version.
    """

    __table_args__ = (Index(None, "uri", "sequence"), CLUSTERED)
    uri: str = Field(primary_key=True)
    partition_key: str = Field(sa_type=KeyText, primary_key=True)
    sequence: int = Field(primary_key=True, sa_type=Number)
    confirms: bool = Field(primary_key=True)
    event: UUID
    data_version: str
    recorded: datetime = Field(sa_type=UtcTime)
    consumer: int | None = Field(default=None, sa_type=Number)
    pins: dict[str, int] | None = Field(default=None, sa_type=Stored(dict, dict))
    code_version: str | None = None
    started: datetime | None = Field(default=None, sa_type=UtcTime)
    mappers: dict[str, Any] | None = Field(default=None, sa_type=Stored(reads_to_json, reads_from_json))
    seen: datetime | None = Field(default=None, sa_type=UtcTime)


@as_table
class ITEM(Base, table=True):
    """An item, with the place of its newest update."""

    __table_args__ = (Index(None, "uri", "sequence"), CLUSTERED)
    uri: str = Field(primary_key=True)
    partition_key: str = Field(sa_type=KeyText, primary_key=True)
    sequence: int = Field(sa_type=Number)


@as_table
class READING(Base, table=True):
    """A key of an input that belongs to a target of a partitioned flow (8.3)."""

    __table_args__ = CLUSTERED
    consumer: int = Field(primary_key=True, sa_type=Number, foreign_key="consumer.id")
    target_key: str = Field(sa_type=KeyText, primary_key=True)
    uri: str = Field(primary_key=True)
    source_key: str = Field(sa_type=KeyText, primary_key=True)


@as_table
class TARGET_KEY(Base, table=True):
    """A target of a partitioned flow (8.3)."""

    __table_args__ = CLUSTERED
    consumer: int = Field(primary_key=True, sa_type=Number, foreign_key="consumer.id")
    target_key: str = Field(sa_type=KeyText, primary_key=True)


@as_table
class TARGET(Base, table=True):
    """A target: its last verdict and run (8.6 to 8.8); `look` is when a failed run has to be looked at again."""

    __table_args__ = (
        Index(None, "consumer", "verdict"),
        partial_index("target_waits", "verdict", "consumer", where="verdict = 'waits'"),
        partial_index("target_look", "look", where="look IS NOT NULL"),
        CLUSTERED,
    )
    consumer: int = Field(primary_key=True, sa_type=Number, foreign_key="consumer.id")
    target_key: str = Field(sa_type=KeyText, primary_key=True)
    tried: dict[str, Any] | None = Field(default=None, sa_type=_INPUTS)
    waived: dict[str, Any] | None = Field(default=None, sa_type=_INPUTS)
    failures: int = Field(default=0, sa_type=Number)
    ended: list[Any] | None = Field(default=None, sa_type=stored(Moment))
    decision: UUID | None = None
    verdict: str = ""
    retry_at: datetime | None = Field(default=None, sa_type=UtcTime)
    look: datetime | None = Field(default=None, sa_type=UtcTime)


@as_table
class KEPT_RUN(Base, table=True):
    """A run of a flow in the data graph, by the id of its decision: what it reads, and how it ended (8.6).

    `predecessor` is the decision before it for its target, if an Eager or Lazy flow was asked for (8.17). `state_at` is
    the time of the newest state that was heard of, by Prefect's clock, of a run without a decision (4.7).
    """

    __table_args__ = (
        partial_index("kept_run_open", "consumer", where="ended IS NULL"),
        partial_index("kept_run_ended", "ended", where="ended IS NOT NULL"),
        partial_index("kept_run_completed", "consumer", "ended", where="state = 'completed'"),
    )
    id: UUID = Field(primary_key=True)
    consumer: int = Field(sa_type=Number, foreign_key="consumer.id")
    target_key: str = Field(sa_type=KeyText)
    kind: str
    asked: datetime = Field(sa_type=UtcTime)
    began: datetime = Field(sa_type=UtcTime)
    tried: dict[str, Any] = Field(sa_type=_INPUTS)
    pins: dict[str, dict[str, int]] = Field(sa_type=JsonText)
    predecessor: UUID | None = None
    ended: datetime | None = Field(default=None, sa_type=UtcTime)
    state: str = ""
    state_at: datetime | None = Field(default=None, sa_type=UtcTime)


@as_table
class EARLIER_INPUT(Base, table=True):
    """An asset and one that it was made from and its makers do not read, by which its data gets older (8.12)."""

    __table_args__ = CLUSTERED
    uri: str = Field(primary_key=True)
    input: str = Field(primary_key=True)


@as_table
class POLICY(Base, table=True):
    """The freshness policy of an asset, and its state (8.11 to 8.15).

    `data_time` is a moment, or "current"; null if the asset was never made. `due` is when its maker has to start, and
    `next_change` when its state can change although nothing happens. `chain` has the flows that run one after the other
    for it, each with the seconds that it is expected to take.
    """

    __table_args__ = (
        partial_index("policy_due", "due", where="due IS NOT NULL"),
        partial_index("policy_next_change", "next_change", where="next_change IS NOT NULL"),
    )
    uri: str = Field(primary_key=True)
    declaration: dict[str, Any] = Field(sa_type=_POLICY)
    since: datetime = Field(sa_type=UtcTime)
    state: str
    state_since: datetime | None = Field(default=None, sa_type=UtcTime)
    data_time: str | None = Field(default=None, sa_type=stored(datetime | Current))
    due: datetime | None = Field(default=None, sa_type=UtcTime)
    next_change: datetime | None = Field(default=None, sa_type=UtcTime)
    chain: list[Any] = Field(sa_type=stored(Chain))


@as_table
class POLICY_TOUCH(Base, table=True):
    """An instant at which something happened, after which the state of a policy has to be judged (8.13)."""

    __table_args__ = CLUSTERED
    at: datetime = Field(primary_key=True, sa_type=UtcTime)
    uri: str = Field(primary_key=True)


@as_table
class POLICY_CHANGE(Base, table=True):
    """A change of state of a policy (8.13).

    `posted` is when its event was sent to Prefect last, `stored` when Prefect's log was seen to have it.
    """

    __table_args__ = (
        partial_index("policy_change_to_tell", "number", where="stored IS NULL"),
        Index(None, "uri", "number"),
    )
    number: int = Field(primary_key=True, sa_type=Number)
    uri: str
    state: str
    at: datetime = Field(sa_type=UtcTime)
    data_time: str | None = Field(default=None, sa_type=stored(datetime | Current))
    lag: float | None = Field(default=None, sa_type=stored(timedelta))
    policy: dict[str, Any] = Field(sa_type=_POLICY)
    causes: list[Any] = Field(sa_type=CAUSES)
    maker: int | None = Field(default=None, sa_type=Number)
    posted: datetime | None = Field(default=None, sa_type=UtcTime)
    stored: datetime | None = Field(default=None, sa_type=UtcTime)


@as_table
class BACKFILL(Base, table=True):
    """A backfill.

    `begun` is null until all its targets are written: such a backfill runs nothing. `stopped` is since when it asks for
    nothing more, `ended` when nothing of it was left. The last columns count its targets by state.
    """

    __table_args__ = (partial_index("backfill_going_on", "number", where="begun IS NOT NULL AND ended IS NULL"),)
    number: int = Field(primary_key=True, sa_type=Number)
    made: datetime = Field(sa_type=UtcTime)
    uri: str
    down: bool
    concurrency: int | None = Field(default=None, sa_type=Number)
    made_by: str = ""
    why: str = ""
    begun: datetime | None = Field(default=None, sa_type=UtcTime)
    stopped: datetime | None = Field(default=None, sa_type=UtcTime)
    ended: datetime | None = Field(default=None, sa_type=UtcTime)
    todo: int = Field(sa_type=Number)
    asked: int = Field(default=0, sa_type=Number)
    done: int = Field(default=0, sa_type=Number)
    failed: int = Field(default=0, sa_type=Number)
    removed: int = Field(default=0, sa_type=Number)


@as_table
class BACKFILL_TARGET(Base, table=True):
    """A target of a backfill, at its place in the order; `waits` of the targets directly above it are not done."""

    __table_args__ = (
        Index(None, "backfill", "consumer", "target_key"),
        partial_index("backfill_target_ready", "backfill", "place", where="state = 'todo' AND waits = 0"),
        CLUSTERED,
    )
    backfill: int = Field(primary_key=True, sa_type=Number, foreign_key="backfill.number")
    place: int = Field(primary_key=True, sa_type=Number)
    consumer: int = Field(sa_type=Number, foreign_key="consumer.id")
    target_key: str = Field(sa_type=KeyText)
    wave: int = Field(sa_type=Number)
    waits: int = Field(sa_type=Number)
    state: str
    attempt: int = Field(sa_type=Number)


@as_table
class BACKFILL_EDGE(Base, table=True):
    """The target at the place `below` waits for the one at `above`."""

    __table_args__ = CLUSTERED
    backfill: int = Field(primary_key=True, sa_type=Number, foreign_key="backfill.number")
    above: int = Field(primary_key=True, sa_type=Number)
    below: int = Field(primary_key=True, sa_type=Number)
