"""Write the events of assetflow in Prefect, read those of Prefect's own assets, and the trigger on a changed state."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal
from uuid import UUID, uuid5

from prefect.events.schemas.automations import EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification
from prefect.types.names import validate_valid_asset_key

from assetflow.core.freshness.asset_freshness import StateChange, data_time_text
from assetflow.core.json_data import fit_object
from assetflow.core.rules.ended_runs import FailedForGood
from assetflow.core.shapes import as_json
from assetflow.core.values.announcements import FailedChecks, Materialized, MissedDeadlineRecord
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Automation, Decision
from assetflow.core.values.events import SCHEMA, AssetEvent
from assetflow.core.values.uri import normalize
from assetflow.core.wire.declarations import causes_to_json
from assetflow.core.wire.fields import Json, without_empty
from assetflow.errors import InvalidCall
from assetflow.prefect_io.names import (
    ASSET_ROLE,
    CHECK_FAILED,
    DEADLINE_MISSED,
    DECISION_MADE,
    FRESHNESS_EVENTS,
    MAKER_ROLE,
    MATERIALIZATION_FAILED,
    MATERIALIZATION_SUCCEEDED,
    RECORDING_LABEL,
    RUN_FAILED,
    deployment_resource_id,
    related,
)
from assetflow.prefect_io.recordings import related_to

ASSETS_NAMED = 90  # Prefect takes 100 related resources.


def freshness_changed(told: StateChange) -> list[Json]:
    """Return the event of a changed state. Its id follows from asset, state and instant: Prefect stores it once."""
    change = told.change
    event = {
        "id": str(told.id),
        "occurred": change.at.isoformat(),
        "event": FRESHNESS_EVENTS[change.state],
        "resource": {"prefect.resource.id": change.uri, "prefect.resource.name": told.name},
        "related": _related_of(told),
        "payload": {
            "version": 1,
            "state": change.state,
            "data_time": data_time_text(change.data_time),
            "lag": None if change.lag is None else change.lag.total_seconds(),
            "maximum_lag": change.policy.maximum_lag.total_seconds(),
            "policy": change.policy.describe(),
            "maker": told.maker,
            "causes": causes_to_json(change.causes[:ASSETS_NAMED]),
            "words": told.describe(),
        },
    }
    return [fit_object(event)]


def freshness_trigger(
    asset: Asset | str | None = None, state: Literal["fail", "warn", "pass"] = "fail"
) -> EventTrigger:
    """Return the trigger of a Prefect automation that runs when the data of an asset gets too old, or is fresh again.

    >>> from assetflow import Asset, freshness_trigger
    >>> freshness_trigger(Asset("s3://lake/board")).expect
    {'assetflow.freshness.fail'}

    The evaluator posts one event for each change of state of an asset that has a `FreshnessPolicy`. Contract 8.13.

    Parameters:
        asset: the asset, or its URI; `None` for every asset with a policy.
        state: the state that it comes into: "fail" when the data is too old, "warn" when it is getting old, "pass" when
            it is fresh again after one of these.

    Returns:
        The trigger, for `Automation(trigger=...)`.

    Raises:
        InvalidCall: `state` is not one of the three.
        InvalidAsset: the URI breaks contract 1.4.
    """
    if state not in FRESHNESS_EVENTS:
        raise InvalidCall(f"the state must be fail, warn or pass, not {state!r}", fix='Write state="fail"', rule="8.13")
    uri = asset.uri if isinstance(asset, Asset) else None if asset is None else normalize(asset)
    return EventTrigger(
        expect={FRESHNESS_EVENTS[state]},
        match=ResourceSpecification({} if uri is None else {"prefect.resource.id": uri}),
        posture=Posture.Reactive,
        threshold=1,
        within=timedelta(),
    )


def _related_of(told: StateChange) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    if told.deployment_id is not None:
        found.append(related(deployment_resource_id(told.deployment_id), "deployment"))
    if told.flow_run is not None:
        found.append(related(f"prefect.flow-run.{told.flow_run}", "flow-run"))
    stale = dict.fromkeys(cause.uri for cause in told.change.causes if cause.uri and cause.uri != told.change.uri)
    return found + [related(uri, "stale-input") for uri in list(stale)[:ASSETS_NAMED]]


EVENTS_NAMED = 1_000
CAUSES_NAMED = 100


def decision_made(
    decision: Decision, consumer: str, automation: Automation | None, flow_run: UUID, occurred: str
) -> dict[str, Any]:
    """Return the event of a decision. It has the decision's id, so that Prefect stores it once.

    Parameters:
        consumer: the name `flow/deployment`.
        occurred: the time of the event, in ISO format.
    """
    return {
        "id": str(decision.id),
        "occurred": occurred,
        "event": DECISION_MADE,
        "resource": {
            "prefect.resource.id": f"assetflow.decision.{decision.id}",
            "prefect.resource.name": consumer,
        },
        "related": _related_of_decision(decision, automation, flow_run),
        "payload": {
            "version": 1,
            "consumer": consumer,
            "partition_key": decision.target_key,
            "events": [str(event.id) for event in decision.events[:EVENTS_NAMED]],
            "number_of_events": len(decision.events),
            **_because(decision),
        },
    }


def _because(decision: Decision) -> dict[str, Any]:
    """Return the causes for which an Eager or Lazy flow was asked for the run."""
    causes = [as_json(cause.shown()) for cause in decision.because[:CAUSES_NAMED]]
    return {"because": causes} if causes else {}


def _related_of_decision(decision: Decision, automation: Automation | None, flow_run: UUID) -> list[dict[str, str]]:
    found = [
        related(f"prefect.flow-run.{flow_run}", "flow-run"),
        related(deployment_resource_id(decision.deployment_id), "deployment"),
    ]
    if automation is not None:
        found.append(related(f"prefect.automation.{automation.id}", "automation", automation.name))
    assets = {event.uri: event.asset.name for event in decision.events}
    return found + [related(uri, "asset", name) for uri, name in list(assets.items())[:ASSETS_NAMED]]


_NAMESPACE = UUID("6b2a1d0e-6e0b-5c0f-9d5b-0d3f0a9a7c11")


def deadline_missed(missed: MissedDeadlineRecord) -> list[Json]:
    """Return the event of a missed deadline. Its id follows from consumer, key and instant: Prefect stores it once."""
    key, deployment_id, automation_id = missed.target_key, missed.deployment_id, missed.automation_id
    named = missed.missing[:ASSETS_NAMED]
    event = {
        "id": str(uuid5(_NAMESPACE, "|".join((str(deployment_id), key or "", missed.due.isoformat())))),
        "occurred": missed.at.isoformat(),
        "event": DEADLINE_MISSED,
        "resource": {
            "prefect.resource.id": f"assetflow.consumer.{deployment_id}",
            "prefect.resource.name": missed.consumer_name,
        },
        "related": [
            related(deployment_resource_id(deployment_id), "deployment"),
            *([] if automation_id is None else [related(f"prefect.automation.{automation_id}", "automation")]),
            *(related(name, "missing") for name in named),
        ],
        "payload": {
            "version": 1,
            "consumer": missed.consumer_name,
            "partition_key": key,
            "due": missed.due.isoformat(),
            "then": missed.then,
            "queued": missed.queued,
            "missing": list(named),
        },
    }
    return [fit_object(event)]


def run_failed(failed: FailedForGood) -> list[Json]:
    """Return the event of a run that failed for good. Its id follows from run and state: Prefect stores it once."""
    run = failed.run
    event = {
        "id": str(failed.id),
        "occurred": failed.at.isoformat(),
        "event": RUN_FAILED,
        "resource": {"prefect.resource.id": f"prefect.flow-run.{run.flow_run_id}", "prefect.resource.name": run.name},
        "related": [related(deployment_resource_id(run.deployment_id), "deployment")],
        "payload": {
            "version": 1,
            "flow": run.flow,
            "partition_key": run.target_key,
            "state": run.state,
            "error": run.error,
            "below": list(failed.below[:ASSETS_NAMED]),
            "number_below": len(failed.below),
            "words": failed.describe(),
        },
    }
    return [fit_object(event)]


def check_failed(failed: FailedChecks) -> list[Json]:
    """Return the event of data that failed a check. Its id follows from the update or the attempt."""
    found: list[dict[str, str]] = []
    if failed.flow_run_id is not None:
        found.append(related(f"prefect.flow-run.{failed.flow_run_id}", "flow-run", failed.flow_run_name))
    if failed.deployment_id is not None:
        found.append(related(deployment_resource_id(failed.deployment_id), "deployment"))
    event = {
        "id": str(failed.id),
        "occurred": failed.at.isoformat(),
        "event": CHECK_FAILED,
        "resource": {"prefect.resource.id": failed.uri, "prefect.resource.name": failed.name},
        "related": found,
        "payload": {
            "version": 1,
            "flow": failed.flow,
            "partition_key": failed.partition_key,
            "held_back": failed.held_back,
            "checks": [as_json(each) for each in failed.failed],
            "words": failed.describe(),
        },
    }
    return [fit_object(event)]


_NATIVE_NAMESPACE = UUID("a3f6c9a4-1d0c-5a0a-8f6e-52f0b7f0c2d1")
_PROPERTIES = ("description", "url")


def is_key(uri: str) -> bool:
    """Return True if Prefect takes a URI as the key of an asset."""
    try:
        validate_valid_asset_key(uri)
    except ValueError:
        return False
    return True


def materialized(told: Materialized) -> list[Json]:
    """Return Prefect's event of an update; none if Prefect does not take its URI as a key."""
    event = told.event
    if not is_key(event.uri):
        return []
    run = event.source_flow_run
    maker = "spark" if event.metrics or run is None else run.flow_name
    inputs = [related(uri, ASSET_ROLE) for uri in told.inputs if is_key(uri) and uri != event.uri][:ASSETS_NAMED]
    made = {
        "id": str(uuid5(_NATIVE_NAMESPACE, str(event.id))),
        "occurred": event.occurred.isoformat(),
        "event": MATERIALIZATION_SUCCEEDED,
        "resource": {**_resource(event), RECORDING_LABEL: str(event.id)},
        "related": [*inputs, *([related(maker, MAKER_ROLE)] if maker else []), *related_to(run)],
        "payload": _payload(event),
    }
    return [fit_object(made)]


def _resource(event: AssetEvent) -> dict[str, str]:
    told = {f"prefect.asset.{each}": event.asset.extra.get(each) for each in _PROPERTIES}
    properties = {label: value for label, value in told.items() if isinstance(value, str)}
    return {"prefect.resource.id": event.uri, "prefect.resource.name": event.asset.name, **properties}


def _payload(event: AssetEvent) -> dict[str, Any]:
    about = without_empty({"partition_key": event.partition_key, "data_version": event.data_version})
    metrics = {name: value for name, value in event.metrics.items() if name != SCHEMA}
    return {**metrics, **({"assetflow": about} if about else {})}


def failed_with_assets(failed: FailedForGood) -> list[Json]:
    """Return assetflow's event of a failed run, and Prefect's for each asset that the run was to make."""
    run = failed.run
    found = [
        related(run.flow.partition("/")[0], MAKER_ROLE),
        related(f"prefect.flow-run.{run.flow_run_id}", "flow-run", run.name),
        related(deployment_resource_id(run.deployment_id), "deployment"),
    ]
    of_assets = [
        {
            "id": str(uuid5(failed.id, uri)),
            "occurred": failed.at.isoformat(),
            "event": MATERIALIZATION_FAILED,
            "resource": {"prefect.resource.id": uri, RECORDING_LABEL: str(failed.id)},
            "related": found,
            "payload": {"error": run.error or run.state},
        }
        for uri in failed.not_made
        if is_key(uri)
    ]
    return [*run_failed(failed), *map(fit_object, of_assets)]
