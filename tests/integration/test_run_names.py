"""The ledger knows what Prefect calls the runs of decisions, without having been told."""

from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client

from assetflow import Asset, PartitionedAssetTimetable, flow
from assetflow.core.values.conditions import AssetAll
from assetflow.ledger import Reader
from assetflow.ledger.read.explanations import decision_explanation, event_explanation
from assetflow.testing import Harness

pytestmark = [pytest.mark.long, pytest.mark.prefect]

NAMED = [Asset(f"s3://run-names/{number}", name=f"named {number}") for number in (3, 1, 2)]
UNNAMED = Asset("s3://run-names/deep/table/")
SCHEDULES: dict[str, Any] = {
    "one": UNNAMED,
    "several": AssetAll(*NAMED, UNNAMED),
    "keyed": PartitionedAssetTimetable(assets=NAMED[0]),
}


@pytest.mark.parametrize("kind", SCHEDULES)
def test_the_name_is_that_in_prefect(h: Harness, kind: str) -> None:
    consumer = flow(name=f"run-names-{kind}", schedule=SCHEDULES[kind])(lambda: None)
    h.deploy(consumer)
    for asset in (*NAMED, NAMED[1], UNNAMED):
        h.emit(asset, partition_key="2026-01-01" if kind == "keyed" else None)
    (run,) = h.settle(execute=False).runs(consumer)
    with get_client(sync_client=True) as client:
        name = client.read_flow_run(run.id).name
    with Reader.open(Path(h._reader.place)) as reader:
        record = reader.decisions.of_run(run.id)
        assert record is not None
        (receipt,) = event_explanation(reader, run.events[0].id).receipts
        told = decision_explanation(reader, record)
    assert name
    assert receipt.decision is not None
    assert (receipt.decision.run.name, told.facts.run.name) == (name, name)
