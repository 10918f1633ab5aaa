"""Freshness policies as JSON: spans in seconds, inputs as pairs of kind and value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from assetflow.core.values.assets import AssetRef
from assetflow.core.values.freshness_policy import FreshnessPolicy

Json = Mapping[str, Any]


def policy_to_json(policy: FreshnessPolicy) -> dict[str, object]:
    """Return a policy."""
    warn_after = policy.warn_after
    return {
        "maximum_lag": policy.maximum_lag.total_seconds(),
        "deadline": policy.deadline,
        "timezone": policy.timezone,
        "warn_after": None if warn_after is None else warn_after.total_seconds(),
        "inputs": None if policy.inputs is None else [list(each.token) for each in policy.inputs],
    }


def policy_from_json(data: Json) -> FreshnessPolicy:
    """Return what `policy_to_json` wrote; its inputs are references."""
    warn_after, inputs = data["warn_after"], data["inputs"]
    return FreshnessPolicy(
        timedelta(seconds=data["maximum_lag"]),
        deadline=data["deadline"],
        timezone=data["timezone"],
        warn_after=None if warn_after is None else timedelta(seconds=warn_after),
        inputs=None if inputs is None else [_reference(token) for token in inputs],
    )


def _reference(token: Sequence[str]) -> AssetRef:
    kind, value = token
    return AssetRef(**{kind: value})
