"""`assetflow observe`: record which version of a source was seen. Contract 8.2."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from uuid import uuid4

from assetflow.cli.output import print_json, show, text
from assetflow.cli.user import this_user
from assetflow.core.json_data import fit_text
from assetflow.core.observations import observation
from assetflow.core.values.events import Origin
from assetflow.core.values.posted_events import key_by_hand
from assetflow.core.values.versions import check_data_version
from assetflow.core.visible import shown
from assetflow.errors import places
from assetflow.operations.recording import RecordedUpdates, asset_at_hand, record_at_hand


def observe(asset: str, version: str, /, *, key: str | None = None, json: bool = False) -> None:
    """Record which version of a source was seen. If it is not the newest one, that is an update of the asset.

    Parameters
    ----------
    asset
        The asset's URI, or its name. No deployed flow may make it.
    version
        The version, such as an ETag.
    key
        The partition key of which this is the version.
    json
        Print one JSON document.
    """
    with places(partition_key="--key"):
        key = None if key is None else key_by_hand(key)
    seen = observation(
        asset_at_hand(asset),
        {key: check_data_version(version, where="VERSION")},
        id=uuid4(),
        occurred=datetime.now(UTC),
        origin=Origin("cli", by=fit_text(this_user())),
    )
    recorded = record_at_hand(seen)
    for warning in recorded.warnings:
        sys.stderr.write(f"{shown(warning)}\n")
    (item,) = seen.observed
    number = next((str(event.id) for event in recorded.events), None)
    if json:
        told = {"uri": item.uri, "partition_key": key, "data_version": version, "via": recorded.via, "event": number}
        print_json(told)
    else:
        place = f"{item.uri}{'' if key is None else f', partition {key}'}"
        show(*(text(line) for line in _lines(place, number, recorded)))


def _lines(place: str, number: str | None, recorded: RecordedUpdates) -> list[str]:
    if recorded.via == "prefect":
        return [f"{place}: the observation is in Prefect; the evaluator decides whether it is an update"]
    if number is None:
        return [f"{place}: that is the newest version; nothing changes"]
    lines = [f"{place}: event {number} is recorded"]
    for consumer, decision in recorded.decisions:
        target = "" if decision.target_key is None else f" for the partition {decision.target_key}"
        lines.append(f"  {consumer} runs{target}: decision {decision.id}")
    return lines
