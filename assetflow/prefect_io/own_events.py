"""Write the Prefect event of a changed state of an asset, and the trigger on it. Contract 8.13."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

from prefect.events.schemas.automations import EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification

from assetflow.core.freshness.asset_freshness import StateChange, data_time_text
from assetflow.core.json_data import fit_object
from assetflow.core.values.assets import Asset
from assetflow.core.values.uri import normalize
from assetflow.core.wire.freshness import causes_to_json
from assetflow.errors import InvalidCall
from assetflow.prefect_io.names import FRESHNESS_EVENTS, deployment_resource_id

ASSETS_NAMED = 90  # Prefect takes 100 related resources.


def freshness_changed(told: StateChange) -> dict[str, Any]:
    """Return the event of a changed state. Its id follows from asset, state and instant: Prefect stores it once."""
    change = told.change
    event = {
        "id": str(told.id),
        "occurred": change.at.isoformat(),
        "event": FRESHNESS_EVENTS[change.state],
        "resource": {"prefect.resource.id": change.uri, "prefect.resource.name": change.uri},
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
    return fit_object(event)


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
        found.append(_related(deployment_resource_id(told.deployment_id), "deployment"))
    if told.flow_run is not None:
        found.append(_related(f"prefect.flow-run.{told.flow_run}", "flow-run"))
    stale = dict.fromkeys(cause.uri for cause in told.change.causes if cause.uri and cause.uri != told.change.uri)
    return found + [_related(uri, "stale-input") for uri in list(stale)[:ASSETS_NAMED]]


def _related(number: str, role: str) -> dict[str, str]:
    return {"prefect.resource.id": number, "prefect.resource.role": role}
