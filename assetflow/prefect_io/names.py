"""The names that assetflow has in Prefect: events, resources, labels and tags."""

from __future__ import annotations

import re
from hashlib import sha256

ASSET_UPDATED = "assetflow.asset.updated"
"""One asset was updated; the resource id is its URI."""

MATERIALIZATION_SUCCEEDED = "prefect.asset.materialization.succeeded"
"""Prefect's own event for a `@materialize` task; an update too (2.6)."""

SCHEDULE_SATISFIED = "assetflow.schedule.satisfied"
"""Starts the deployment that its resource id names. Open to anyone; assetflow itself never emits it."""

DECISION_MADE = "assetflow.decision.made"
"""A schedule's condition held, and this run came of it."""

CONDITION_SHOWN = "assetflow.condition.shown"
"""Nobody emits this: an automation's triggers on it show a condition that the evaluator decides."""

ALIAS_PREFIX = "assetflow.alias."
"""Resource id of an alias, before its name."""

ALIAS_ROLE = "alias"

RECORDING_LABEL = "assetflow.recording"
"""Holds the events of one recording together: its id."""

RECORDING_SIZE_LABEL = "assetflow.recording-size"
"""How many events the recording has, as text."""

DECISION_LABEL = "assetflow.decision"
"""On a flow run: the decision that started it."""

CONSUMER_LABEL = "assetflow.consumer"
"""On a flow run: the consumer that it is a run of."""

PARTITION_KEY_LABEL = "assetflow.partition-key"
"""On a flow run: its partition key."""

TICK_LABEL = "assetflow.tick"
"""On a flow run: the time of its time table, as text."""

TIME_TAG = "assetflow:time"
"""Marks the flow runs that a time table made."""

PREFECT_TIME_TAG = "auto-scheduled"
"""Prefect's own mark for runs that the clock makes; on ours too, so that people find them together."""

TRACEPARENT_LABEL = "__OTEL_TRACEPARENT"
"""On a flow run, Prefect's own label: the span that Prefect makes the parent of the run's."""

UPDATE_ARTIFACT = "assetflow-update"
"""Type of the artifacts that hold a recording."""

TRIGGERING_EVENTS_ARTIFACT = "assetflow-triggering-events"
"""Type of the artifacts that hold the events of a run, when they are too large for its context."""

RUN_NOTE_ARTIFACT = "markdown"
"""Type of the notes that say why a run is there: one that Prefect's pages show as text."""

LEDGER_VARIABLE = "assetflow_ledger"
"""The variable that names the ledger that this Prefect belongs to."""

SCHEDULE_TAG = "assetflow:schedule"
"""Marks the automations that assetflow keeps in step with deployments."""

OFF_TAG = "assetflow:off"
"""A deployment with this tag drops the schedule of its flow."""

EVENTS_PARAMETER = "triggering_asset_events"
"""The parameter that every scheduled flow has; the flow's declaration stands in its JSON schema."""

KEY_PARAMETER = "partition_key"
"""The parameter of partitioned flows through which a person can start a run for a key."""

SCHEMA_EXTENSION = "x-assetflow"
"""Key of the declaration's text in the JSON schema of `EVENTS_PARAMETER`."""


def alias_resource_id(alias: str) -> str:
    return f"{ALIAS_PREFIX}{alias}"


def deployment_resource_id(deployment_id: object) -> str:
    return f"prefect.deployment.{deployment_id}"


def artifact_key(text: str, identity: str) -> str:
    """A key for artifacts, which may hold `[a-z0-9-]` only: readable, and another one for each identity."""
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[-60:].strip("-")
    digest = sha256(identity.encode()).hexdigest()[:8]
    return f"{slug}-{digest}" if slug else digest
