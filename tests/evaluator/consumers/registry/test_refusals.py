"""Deployments that are refused beside others: tried again when others change, and kept in the ledger (8.1, 8.10)."""

from typing import Any
from uuid import UUID

import pytest

from assetflow import Asset
from assetflow.core.values.freshness_schedules import Eager
from assetflow.evaluator.consumers.registry import Registry
from assetflow.prefect_io.names import SCHEDULE_SATISFIED
from tests.evaluator.consumers.registry.fake_prefect import A, B, FakePrefect
from tests.evaluator.ledgers import LedgerHere

TABLE, OTHER = Asset("s3://lake/table"), Asset("s3://lake/other")
ENTRY = {"entrypoint": "flows/tables.py:core"}


def refused(ledger: LedgerHere) -> list[str]:
    return [each.words for each in ledger.reader.refused_deployments()]


@pytest.fixture
async def second(prefect: FakePrefect, registry: Registry) -> UUID:
    """The second of two deployments that make one table: it is refused."""
    prefect.deploy(1, Eager(A), TABLE)
    deployment = prefect.deploy(2, Eager(B), TABLE, **ENTRY)
    await registry.sync()
    return deployment


def automation_of(prefect: FakePrefect, deployment: UUID) -> dict[str, Any]:
    (found,) = [each for each in prefect.automations if each["actions"][0]["deployment_id"] == str(deployment)]
    return found


async def test_8_1_a_refusal_is_in_the_ledger_with_file_flow_and_rule(
    prefect: FakePrefect, registry: Registry, ledger: LedgerHere, caplog: pytest.LogCaptureFixture
) -> None:
    prefect.deploy(1, Eager(A), TABLE)
    prefect.deploy(2, Eager(B), TABLE, **ENTRY)
    await registry.sync()
    (words,) = refused(ledger)
    assert words.startswith("deployment 'flow/d2' (flows/tables.py:core): s3://lake/table is made by the Eager or Lazy")
    assert "delete the old deployment if the flow was renamed" in words
    assert words.endswith("Contract 8.1")
    assert "Contract 8.1" in caplog.text


async def test_8_1_and_8_10_sync_finds_refusals(prefect: FakePrefect, registry: Registry, ledger: LedgerHere) -> None:
    prefect.deploy(1, Eager(A), TABLE)
    prefect.deploy(2, Eager(B), TABLE)
    prefect.deploy(3, Eager(TABLE), A)
    await registry.sync()
    assert [error.rule for error in registry.report.problems.values()] == ["8.1", "8.10"]
    del prefect.rows["deployments"][str(prefect.deploy(1, None))]
    await registry.sync()
    assert refused(ledger) == []


async def test_8_1_prefect_shows_on_a_deployment_why_it_is_refused_and_the_schedule_when_it_is_not_any_more(
    prefect: FakePrefect, registry: Registry, second: UUID
) -> None:
    shown = automation_of(prefect, second)
    assert (shown["name"], shown["enabled"]) == ("flow/d2 is refused", True)
    assert shown["description"].startswith(
        "Refused: deployment 'flow/d2' (flows/tables.py:core): s3://lake/table is made"
    )
    assert "Contract 8.1. Its schedule starts nothing until then." in shown["description"]
    assert SCHEDULE_SATISFIED not in str(shown["trigger"])
    prefect.writes.clear()
    await registry.sync()
    assert prefect.writes == []
    prefect.deploy(1, Eager(A), B)
    await registry.sync()
    assert automation_of(prefect, second)["name"].startswith("flow/d2 runs when")
    assert "Refused" not in automation_of(prefect, second)["description"]


async def test_8_1_the_schedule_before_stays_with_the_refusal_beside_it_and_its_switch(
    prefect: FakePrefect, registry: Registry, ledger: LedgerHere
) -> None:
    prefect.deploy(1, Eager(A), TABLE)
    changed = prefect.deploy(2, Eager(B), OTHER)
    await registry.sync()
    before = automation_of(prefect, changed)
    prefect.deploy(2, Eager(B), TABLE)
    await registry.sync()
    shown = automation_of(prefect, changed)
    assert (shown["name"], shown["trigger"]) == (before["name"], before["trigger"])
    assert shown["description"].endswith(f"Contract 8.1. What it had before stays. {before['description']}")
    prefect.save("automations", {**shown, "enabled": False})
    await registry.sync()
    assert [each.consumer.paused for each in ledger.reader.consumers.all()] == [False, True]
    prefect.deploy(2, Eager(B), OTHER)
    await registry.sync()
    assert automation_of(prefect, changed)["description"] == before["description"]
