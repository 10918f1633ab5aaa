"""Runs that somebody starts by hand."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from assetflow.api.requests import Text
from assetflow.api.schemas.common import Extra


class RunIn(BaseModel):
    """The run to start."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"parameters": {"full": True}}]})

    parameters: Extra = Field(default_factory=dict, description="The parameters of the flow.")
    partition_key: Annotated[Text, Field(min_length=1, max_length=250)] | None = Field(
        default=None, description="The key that the run is for."
    )
    name: Annotated[Text, Field(min_length=1, max_length=250)] | None = Field(
        default=None,
        description="The run's name, and the idempotency key: the same request again starts no second run.",
    )


class AssetRunIn(RunIn):
    """The run that makes the asset."""

    producer: Text | None = Field(
        default=None, description="The flow to run, as `flow/deployment`, if several make the asset."
    )


class RunStarted(BaseModel):
    flow_run_id: UUID
    flow_run_name: str
    partition_key: str | None


class ConsumerRun(RunStarted):
    """A run of a consumer that Prefect starts. It consumes nothing."""

    consumer: str


class MaterializingRun(RunStarted):
    """A run that makes an asset, which Prefect starts. It consumes nothing."""

    uri: str
    producer: str
