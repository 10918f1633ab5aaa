"""What the ledger says of chapter 8: the status of assets, plans and versions, with few statements (8.9, 8.16)."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from assetflow import Eager
from assetflow.core.explain.status import Status
from assetflow.core.freshness.records import RunState
from assetflow.core.partitions import IdentityMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import Origin, SourceFlowRun
from assetflow.ledger import Ledger
from assetflow.ledger.records import DecisionRecord
from tests.ledger.making import NOW, A, B, C, deploy_maker, update

MINUTE = timedelta(minutes=1)
BY_KEY = Eager(A, default_partition_mapper=IdentityMapper())


def record(ledger: Ledger, asset: Asset, minute: int = 0, **fields: Any) -> list[Decision]:
    return ledger.writer.events.record([update(asset, **fields)], NOW + minute * MINUTE)[0][1]


def run(
    ledger: Ledger, made: Sequence[Decision | DecisionRecord], *outputs: Asset, outcome: RunState = "completed"
) -> None:
    """Let the run of the one decision update its outputs and end."""
    (decision,) = made
    for output in outputs:
        source = SourceFlowRun(decision.id, "make/x", deployment_id=decision.deployment_id)
        record(ledger, output, partition_key=decision.target_key, origin=Origin("task", flow_run=source))
    ledger.writer.decisions.ended(outcome.title(), NOW, decision_id=decision.id, outcome=outcome)


def status(ledger: Ledger, asset: Asset, key: str | None = None, minute: int = 0) -> Status:
    return ledger.reader.freshness.status(asset.uri, key, NOW + minute * MINUTE)


def words(ledger: Ledger, minute: int = 0) -> list[str]:
    return [each.words for each in ledger.reader.freshness.plan(NOW + minute * MINUTE)]


@pytest.mark.parametrize("outputs", [[B], [B, C]], ids=["one output", "two outputs"])
def test_8_9_counts_are_those_of_the_items(ledger: Ledger, outputs: list[Asset]) -> None:
    """Also with an input that every target reads, and a flow whose outputs are not all made."""
    whole = Asset("s3://lake/whole")
    record(ledger, whole)
    deploy_maker(ledger, BY_KEY, outputs, [A, whole], "make/x")
    for key in "1234":
        run(ledger, record(ledger, A, partition_key=key), *outputs[: 1 + (key == "1")])
    record(ledger, A, partition_key="5")
    record(ledger, A, partition_key="2")
    for moment in range(2):
        for output in outputs:
            found = status(ledger, output)
            each = [status(ledger, output, key).state for key in "12345"]
            assert found.counts == {
                state: each.count(state) for state in ("stale", "missing", "fresh") if state in each
            }
        if moment == 0:
            record(ledger, whole)
    assert status(ledger, B).counts == {"stale": 4, "missing": 1}
