"""`assetflow observe`: record which version of a source was seen. Contract 8.2."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

from assetflow.cli.output import print_json, show, text
from assetflow.cli.user import this_user
from assetflow.core.assets import Asset
from assetflow.core.by_hand import key_by_hand
from assetflow.core.events import Origin, Recording
from assetflow.core.json_data import fit_text
from assetflow.core.observations import observation
from assetflow.core.versions import check_data_version
from assetflow.errors import places
from assetflow.ledger.ledger import Ledger
from assetflow.operations.installation import Installation
from assetflow.operations.recording import Recorded, record_here, through_prefect


def observe(uri: str, version: str, /, *, partition: str | None = None, json: bool = False) -> None:
    """Record which version of a source was seen. If it is not the newest one, that is an update of the asset.

    Parameters
    ----------
    uri
        The asset's URI. No deployed flow may make it.
    version
        The version, such as an ETag.
    partition
        The partition key of which this is the version.
    json
        Print one JSON document.
    """
    with places(partition_key="--partition"):
        key = None if partition is None else key_by_hand(partition)
    seen = observation(
        Asset(uri),
        {key: check_data_version(version, where="VERSION")},
        id=uuid4(),
        occurred=datetime.now(UTC),
        origin=Origin("cli", by=fit_text(this_user())),
    )
    recorded = _record(seen)
    (item,) = seen.observed
    number = None if recorded is None else next((str(event.id) for event in recorded.events), None)
    via = "prefect" if recorded is None else "ledger"
    if json:
        told = {"uri": item.uri, "partition_key": key, "data_version": version, "via": via, "event": number}
        print_json(told)
    else:
        place = f"{item.uri}{'' if key is None else f', partition {key}'}"
        show(*(text(line) for line in _lines(place, number, recorded)))


def _record(seen: Recording) -> Recorded | None:
    """Record an observation in the ledger at hand; without one, send it to Prefect and return `None`."""
    # Import the HTTP client only here: `--help` does not need it.
    from assetflow.operations.deciding_ledger import ledger_at_hand

    if ledger_at_hand().decides:
        with Ledger.open() as ledger:
            return record_here(Installation(ledger), seen)
    from assetflow.prefect_io.rest import check_address

    # This command must not start a temporary Prefect server: no evaluator would read from it.
    check_address()
    through_prefect(seen)
    return None


def _lines(place: str, number: str | None, recorded: Recorded | None) -> list[str]:
    if recorded is None:
        return [f"{place}: the observation is in Prefect; the evaluator decides whether it is an update"]
    if number is None:
        return [f"{place}: that is the newest version; nothing changes"]
    lines = [f"{place}: event {number} is recorded"]
    for consumer, decision in recorded.decisions:
        target = "" if decision.target_key is None else f" for the partition {decision.target_key}"
        lines.append(f"  {consumer} runs{target}: decision {decision.id}")
    return lines
