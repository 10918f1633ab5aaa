"""The names that assetflow has in Prefect: events, resources, labels and tags."""

from __future__ import annotations

import re
from hashlib import sha256

ASSET_UPDATED = "assetflow.asset.updated"
"""One asset was updated; the resource id is its URI."""

MATERIALIZATION_SUCCEEDED = "prefect.asset.materialization.succeeded"
"""Prefect's own event for a `@materialize` task, which counts as an update. Contract 2.6."""

MATERIALIZATION_FAILED = "prefect.asset.materialization.failed"
"""Prefect's own event for a `@materialize` task that failed. Contract 2.9."""

ASSET_REFERENCED = "prefect.asset.referenced"
"""Prefect's own event for what a `@materialize` task has read. Contract 2.9."""

ASSET_ROLE = "asset"
"""Prefect's role of a related resource that a `@materialize` task has read."""

MAKER_ROLE = "asset-materialized-by"
"""Prefect's role of the related resource that is the tool of a `@materialize` task."""

SCHEDULE_SATISFIED = "assetflow.schedule.satisfied"
"""Starts the deployment in its resource id. Anyone may emit it; assetflow itself never does."""

DECISION_MADE = "assetflow.decision.made"
"""The condition of a schedule held, and led to this run."""

DEADLINE_MISSED = "assetflow.deadline.missed"
"""No decision of a consumer came by its deadline."""

RUN_FAILED = "assetflow.run.failed"
"""A run of a consumer or a maker failed, and no retry of its flow's follows. Contract 4.8."""

CHECK_FAILED = "assetflow.check.failed"
"""Data failed a check: it was held back, or is an update with a warning. Contract 12.6."""

FRESHNESS_EVENTS = {state: f"assetflow.freshness.{state}" for state in ("warn", "fail", "pass")}
"""The data of an asset is getting old, is too old, or is fresh again; the resource id is its URI."""

CONDITION_SHOWN = "assetflow.condition.shown"
"""Never emitted: automations have triggers on it to show a condition that the evaluator decides."""

ALIAS_PREFIX = "assetflow.alias."
"""Resource id of an alias, before its name."""

ALIAS_ROLE = "alias"

RECORDING_LABEL = "assetflow.recording"
"""The id of the recording that the event belongs to."""

RECORDING_SIZE_LABEL = "assetflow.recording-size"
"""The number of events in the recording, as text."""

DECISION_LABEL = "assetflow.decision"
"""On a flow run: the decision that started it."""

CONSUMER_LABEL = "assetflow.consumer"
"""On a flow run: its consumer."""

PREDECESSOR_LABEL = "assetflow.predecessor"
"""On a flow run of an Eager or Lazy flow: the decision before its own for the same target. Contract 8.17."""

BECAUSE_LABEL = "assetflow.because"
"""On a flow run of an Eager or Lazy flow: why it was asked for, in words."""

DEADLINE_LABEL = "assetflow.deadline"
PARTITION_KEY_LABEL = "assetflow.partition-key"
"""On a flow run: its partition key."""

TICK_LABEL = "assetflow.tick"
"""On a flow run: its time in the timetable, as text."""

TIME_TAG = "assetflow:time"
"""Marks the flow runs of a timetable."""

PREFECT_TIME_TAG = "auto-scheduled"
"""Prefect's own tag for scheduled runs; the runs of timetables have it too, so that users find them together."""

TRACEPARENT_LABEL = "__OTEL_TRACEPARENT"
"""On a flow run, Prefect's own label: the trace span that becomes the parent of the run's span."""

UPDATE_ARTIFACT = "assetflow-update"
"""Type of the artifacts that hold a recording."""

TRIGGERING_EVENTS_ARTIFACT = "assetflow-triggering-events"
"""Type of the artifacts that hold the events of a run, when they are too large for its context."""

RUN_NOTE_ARTIFACT = "markdown"
"""Type of the notes that say why a run was started: one that Prefect's pages show as text."""

LEDGER_VARIABLE = "assetflow_ledger"
"""The variable with the id of the ledger that decides for this Prefect."""

SCHEDULE_TAG = "assetflow:schedule"
"""Marks the automations with which assetflow shows the schedules of deployments."""

OFF_TAG = "assetflow:off"
"""A deployment with this tag drops the schedule of its flow."""

EVENTS_PARAMETER = "triggering_asset_events"
"""The parameter of every scheduled flow; its JSON schema holds the flow's declaration."""

KEY_PARAMETER = "partition_key"
"""The parameter of partitioned flows with which a user can start a run for a key."""

SCHEMA_EXTENSION = "x-assetflow"
"""Key of the declaration's text in the JSON schema of `EVENTS_PARAMETER`."""


def alias_resource_id(alias: str) -> str:
    return f"{ALIAS_PREFIX}{alias}"


def deployment_resource_id(deployment_id: object) -> str:
    return f"prefect.deployment.{deployment_id}"


def related(number: str, role: str, name: str = "") -> dict[str, str]:
    """Return a related resource of an event."""
    named = {"prefect.resource.name": name} if name else {}
    return {"prefect.resource.id": number, "prefect.resource.role": role, **named}


def artifact_key(text: str, identity: str) -> str:
    """Return an artifact key of the characters `[a-z0-9-]`: readable, and unique for each identity."""
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[-60:].strip("-")
    digest = sha256(identity.encode()).hexdigest()[:8]
    return f"{slug}-{digest}" if slug else digest
