"""Airflow's schemas: the same fields that its client reads."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from assetflow.api.requests import LARGEST, Moment, Text

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
