"""Translate to and from Airflow's terms: Dags for consumers, numbers for aliases, run states, sort orders."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Path, Query
from pydantic import BaseModel, Field

from assetflow.api.requests import LARGEST, Moment, Text
from assetflow.core.values.words import iso
from assetflow.errors import InvalidCall, UnknownAsset, UnknownConsumer
from assetflow.ledger.read.assets import ListedAsset
from assetflow.ledger.read.events import ConsumedBy
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord
from assetflow.operations.lookup import find_consumer

DEFAULT = 50
MOST = 100


def dag_id(name: str) -> str:
    """Return the Dag id of a consumer or deployment `flow/deployment`."""
    return name.replace("/", ".")


def consumer_of(reader: Reader, dag: str) -> ConsumerRecord:
    """Return the consumer for a Dag id: `flow.deployment`, or the deployment's id.

    Raises:
        UnknownConsumer: no consumer matches; the error names similar ones.
    """
    if reader.consumers.number_of(dag) is None and dag.isdigit():
        raise UnknownConsumer(
            f"no Dag is called {dag!r}",
            where="path.dag_id",
            fix="Name it as flow.deployment, or by the deployment's id",
        )
    return find_consumer(reader, dag)


def asset_numbered(reader: Reader, number: int) -> ListedAsset:
    """Return the asset with this number.

    Raises:
        UnknownAsset: no asset has it.
    """
    found = reader.assets.get(number=number)
    if found is None:
        raise UnknownAsset(
            f"the asset with ID `{number}` was not found", where="asset_id", fix="GET /api/v2/assets lists the assets"
        )
    return found


def alias_number(name: str) -> int:
    """Return the number of an alias: a hash of its name, so that it is the same in every ledger."""
    return int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest()[:6])


def alias_to_json(name: str) -> dict[str, object]:
    return {"id": alias_number(name), "name": name, "group": ""}


def page_size(limit: int) -> int:
    """Return the page size for a limit, as Airflow does: at most 100, and 50 for 0."""
    return min(limit or DEFAULT, MOST)


def order_of(given: Collection[str], allowed: Collection[str]) -> list[tuple[str, bool]]:
    """Return the names to order by, each with True if the order is descending.

    Raises:
        InvalidCall: the list cannot be ordered by one of the names.
    """
    found: list[tuple[str, bool]] = []
    for each in given:
        name, descends = each.removeprefix("-"), each.startswith("-")
        if name not in allowed:
            raise InvalidCall(
                f"cannot order by {each!r}", where="query.order_by", fix=f"Order by one of {', '.join(allowed)}"
            )
        found.append((name, descends))
    return found


def alternatives(pattern: str | None) -> Sequence[str]:
    """Split a pattern at `|`."""
    return [each for each in (pattern or "").split("|") if each]


# How Airflow calls the state of a run that has not ended, by the status of its decision.
_STATES = {"waiting": "queued", "launched": "running"}


def run_to_json(each: ConsumedBy, sequence: int) -> dict[str, object]:
    """Return a run that consumed an event. Before the run exists, its id is that of the decision."""
    return {
        "run_id": str(each.flow_run_id or each.decision),
        "dag_id": dag_id(each.consumer_name),
        "logical_date": None,
        "start_date": iso(each.launched or each.made),
        "end_date": iso(each.ended),
        "state": _STATES.get(each.status) or ("success" if each.run_state == "Completed" else "failed"),
        "data_interval_start": None,
        "data_interval_end": None,
        "partition_key": each.target_key,
        "triggering": each.newest == sequence,
    }


Limit = Annotated[int, Query(ge=0, le=LARGEST, description="The largest number of items, at most 100.")]
Offset = Annotated[int, Query(ge=0, le=LARGEST)]
OrderBy = Annotated[list[Text], Query(description="Names to order by; `-` before a name means descending.")]
Pattern = Annotated[Text | None, Query(description="A part, in any case; `%` and `_` are wildcards, `|` separates.")]
Prefix = Annotated[Text | None, Query(description="A beginning, case-sensitive; `|` separates several.")]
AssetId = Annotated[int, Path(ge=0, le=LARGEST, examples=[1])]
DagId = Annotated[
    Text,
    Path(
        min_length=1,
        max_length=1000,
        description="`flow.deployment`, or the deployment's id.",
        examples=["report.nightly"],
    ),
]


Extra = dict[str, Any]


class AliasOut(BaseModel):
    id: int
    name: str
    group: str


class AliasesOut(BaseModel):
    asset_aliases: list[AliasOut]
    total_entries: int


class ScheduledDag(BaseModel):
    dag_id: str
    created_at: datetime
    updated_at: datetime


class TaskOfAsset(ScheduledDag):
    task_id: str


class LastEvent(BaseModel):
    id: int
    timestamp: datetime


class AirflowAsset(BaseModel):
    id: int
    name: str
    uri: str
    group: str
    extra: Extra
    created_at: datetime
    updated_at: datetime
    scheduled_dags: list[ScheduledDag]
    producing_tasks: list[TaskOfAsset]
    consuming_tasks: list[TaskOfAsset]
    aliases: list[AliasOut]
    watchers: list[Extra]
    last_asset_event: LastEvent | None = None


class AssetsOut(BaseModel):
    assets: list[AirflowAsset]
    total_entries: int


class RunOfEvent(BaseModel):
    """A run that consumed the event. `triggering` is true if this event was the newest that the run consumed."""

    run_id: str
    dag_id: str
    logical_date: datetime | None
    start_date: datetime
    end_date: datetime | None
    state: str
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    partition_key: str | None
    triggering: bool


class AssetEventOut(BaseModel):
    id: int
    asset_id: int
    uri: str
    name: str
    group: str
    extra: Extra
    source_task_id: str | None
    source_dag_id: str | None
    source_run_id: str | None
    source_map_index: int
    created_dagruns: list[RunOfEvent]
    timestamp: datetime
    partition_key: str | None


class AssetEventsOut(BaseModel):
    asset_events: list[AssetEventOut]
    total_entries: int


class AssetEventIn(BaseModel):
    """An update to record."""

    model_config = {"json_schema_extra": {"examples": [{"asset_id": 1, "extra": {"rows": 12}}]}}

    asset_id: Annotated[int, Field(ge=0, le=LARGEST)]
    extra: Extra = Field(default_factory=dict)
    partition_key: Annotated[str, Field(max_length=250)] | None = None
    access_control: Extra | None = Field(default=None, description="Airflow's teams; accepted and ignored.")


class QueuedEventOut(BaseModel):
    """The queued events of one asset for one Dag. `created_at` is when the oldest of them occurred."""

    asset_id: int
    dag_id: str
    dag_display_name: str
    created_at: datetime


class QueuedEventsOut(BaseModel):
    queued_events: list[QueuedEventOut]
    total_entries: int


class MaterializeIn(BaseModel):
    """The parameters of the run that makes the asset."""

    model_config = {"json_schema_extra": {"examples": [{"conf": {"full": True}}]}}

    dag_run_id: Text | None = Field(default=None, description="The run's name and idempotency key.")
    conf: Extra | None = Field(default=None, description="The run's parameters.")
    note: Text | None = Field(default=None, description="Accepted and ignored.")
    partition_key: Annotated[str, Field(min_length=1, max_length=250)] | None = None
    logical_date: Moment | None = Field(default=None, description="Accepted and ignored.")
    data_interval_start: Moment | None = Field(default=None, description="Accepted and ignored.")
    data_interval_end: Moment | None = Field(default=None, description="Accepted and ignored.")
    run_after: Moment | None = Field(default=None, description="When the run should start.")


class DagVersionOut(BaseModel):
    id: UUID
    version_number: int
    dag_id: str
    dag_display_name: str
    bundle_name: str | None
    bundle_version: str | None
    bundle_url: str | None
    created_at: datetime


class DagRunOut(BaseModel):
    dag_run_id: str
    dag_id: str
    dag_display_name: str
    logical_date: datetime | None
    queued_at: datetime | None
    start_date: datetime | None
    end_date: datetime | None
    duration: float | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    run_after: datetime
    last_scheduling_decision: datetime | None
    run_type: Literal["asset_materialization"]
    state: Literal["queued", "running", "success", "failed"]
    triggered_by: Literal["rest_api"]
    triggering_user_name: str | None
    conf: Extra | None
    note: str | None
    dag_versions: list[DagVersionOut]
    bundle_version: str | None
    partition_key: str | None
    partition_date: datetime | None
