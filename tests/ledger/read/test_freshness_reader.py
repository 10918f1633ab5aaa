"""What the ledger says of chapter 8: the status of assets, plans and versions, with few statements (8.9, 8.16)."""

import random
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from assetflow import Eager
from assetflow.core.explain.plan import MOST_TARGETS
from assetflow.core.explain.status import Status
from assetflow.core.freshness.records import RunState
from assetflow.core.partitions import IdentityMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import Origin, SourceFlowRun
from assetflow.ledger import Ledger
from assetflow.ledger.records import DecisionRecord
from tests.ledger.making import NOW, A, B, C, deploy_maker, update
from tests.ledger.sql.test_plans import scans, statements

MINUTE = timedelta(minutes=1)
TABLES = ("item_version", "item", "reading", "target_key", "target", "kept_run", "event", "decision")
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


def states(ledger: Ledger, *assets: Asset) -> list[str]:
    return [each.state for each in ledger.reader.freshness.statuses([asset.uri for asset in assets], NOW)]


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


def test_8_16_a_plan_of_very_many_keys_shows_some_and_counts_all(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(catchup="none", default_partition_mapper=IdentityMapper()), [C], [B], "other/x")
    keys = [f"{number:03}" for number in range(MOST_TARGETS + 30)]
    for key in keys:
        record(ledger, A, partition_key=key)
    deploy_maker(ledger, Eager(A, catchup="none", default_partition_mapper=IdentityMapper()), [B], [A], "make/x")
    record(ledger, A, partition_key=keys[0])

    made, _ = ledger.reader.freshness.plan(NOW)

    assert made.targets[0].verdict == "in_progress"
    assert len(made.targets) == MOST_TARGETS
    assert made.words == f"Of {len(keys)} keys: 1 running and {len(keys) - 1} skipped by catchup."


def layered(ledger: Ledger) -> list[Asset]:
    """Deploy five layers of 20 flows each: some are fresh, stale, missing or outdated, and some assets have keys."""
    layers = [[Asset(f"s3://lake/{layer}/{number:02}") for number in range(20)] for layer in range(6)]
    for layer, (above, below) in enumerate(pairwise(layers)):
        for number, made in enumerate(below):
            schedule = Eager() if number % 10 else Eager(default_partition_mapper=IdentityMapper())
            deploy_maker(ledger, schedule, [made], above[number : number + 3], f"make-{layer}/{number:02}")
    chance = random.Random(8)
    for above, layer in pairwise([[], *layers]):
        last = ledger.reader.status().last_event
        for asset in layer if not above else chance.sample(layer, 12):
            record(ledger, asset, inputs={each.uri: last for each in above})
            if asset.uri.endswith("0"):
                record(ledger, asset, partition_key=chance.choice("abc"))
    for asset in chance.sample(layers[0], 5):
        record(ledger, asset, minute=1, data_version="second")
    return [asset for layer in layers for asset in layer]


@pytest.fixture
def assets(sqlite_ledger: Ledger) -> list[Asset]:
    return layered(sqlite_ledger)


def test_8_9_many_assets_are_read_together(sqlite_ledger: Ledger, assets: list[Asset]) -> None:
    ledger = sqlite_ledger
    alone = {asset.uri: status(ledger, asset) for asset in assets}
    with statements(ledger) as sent:
        together = {each.uri: each for each in ledger.reader.freshness.statuses(None, NOW)}
    assert together == alone
    assert {each.state for each in alone.values()} >= {"source", "fresh", "stale", "missing"}
    assert not scans(ledger, sent, TABLES)


def test_8_12_a_data_path_may_end_at_something_made_that_was_not_read(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(on=()), [B], [A], "make-b/x")
    deploy_maker(ledger, Eager(on=()), [C], [B], "make-c/x")
    record(ledger, A)
    record(ledger, C, minute=1, inputs={B.uri: 1})
    record(ledger, B, minute=2, inputs={A.uri: 1})
    path = [(step.uri, step.moment, step.source) for step in ledger.reader.freshness.data_path(C.uri)]
    assert path == [(C.uri, NOW + 2 * MINUTE, False), (B.uri, NOW + 2 * MINUTE, False)]
    assert ledger.reader.freshness.data_path("s3://lake/nothing") == []
