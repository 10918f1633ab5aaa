"""The name of a watcher is one trigger in all deployments (10.1)."""

from __future__ import annotations

from assetflow import Asset, AssetWatcher
from assetflow.evaluator.consumers.registry import Registry
from assetflow.watchers import FileTrigger
from tests.evaluator.consumers.registry.fake_prefect import FakePrefect
from tests.evaluator.ledgers import LedgerHere

HERE, THERE = (
    Asset("s3://lake/watched", watchers=[AssetWatcher("w", FileTrigger(path))]) for path in ("/here/*", "/there/*")
)


async def test_rule_10_1_a_second_trigger_of_a_name_is_refused_until_both_agree(
    prefect: FakePrefect, ledger: LedgerHere, registry: Registry
) -> None:
    prefect.deploy(1, HERE)
    await registry.sync()
    second = prefect.deploy(2, THERE)
    await registry.sync()
    (problem,) = registry.report.problems.values()
    assert "'w' is files /here/* in deployment 'flow/d1', and files /there/* here" in str(problem)
    assert [each.consumer.name for each in ledger.reader.consumers.all()] == ["flow/d1"]
    prefect.deploy(1, THERE)
    await registry.sync()
    assert registry.report.problems == {}
    assert second in {each.consumer.deployment_id for each in ledger.reader.consumers.all()}
