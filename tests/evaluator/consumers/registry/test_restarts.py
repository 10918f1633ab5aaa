"""The next evaluator reads what changed since the last one, before it evaluates."""

from __future__ import annotations

from uuid import UUID

import pytest

from assetflow.errors import PrefectUnreachable
from assetflow.evaluator.consumers.reconcile import RESHOWN_AT_ONCE
from assetflow.evaluator.consumers.registry import Registry
from tests.evaluator.consumers.registry.fake_prefect import A, B, C, FakePrefect, known
from tests.evaluator.ledgers import LedgerHere


async def test_a_new_ledger_reads_everything(prefect: FakePrefect, ledger: LedgerHere, restarted: Registry) -> None:
    prefect.deploy(1, A)
    await restarted.begin()
    assert known(ledger) == {"flow/d1": A}
    assert prefect.writes == ["create"]


async def test_a_restart_reads_the_automations_that_changed(
    prefect: FakePrefect, ledger: LedgerHere, registry: Registry, restarted: Registry
) -> None:
    for number in range(1, 401):
        prefect.deploy(number, A)
    await registry.sync()
    await registry.sync()
    switched = prefect.automations[7]
    prefect.save("automations", {**switched, "enabled": False})
    prefect.asked.clear()
    await restarted.begin()
    assert [each.consumer.paused for each in ledger.reader.consumers.all()].count(True) == 1
    assert prefect.asked.count("POST /automations/filter") == 1
    assert not [asked for asked in prefect.asked if asked.startswith("GET")]
    assert len(restarted.report.scheduled) == 400
    assert restarted.inherited(UUID(int=3)) == registry.inherited(UUID(int=3)) != ""


async def test_a_restart_reconciles_what_was_deployed_changed_and_deleted_meanwhile(
    prefect: FakePrefect, ledger: LedgerHere, registry: Registry, restarted: Registry
) -> None:
    gone, *_ = (prefect.deploy(number, A) for number in (1, 2, 3, 4))
    await registry.sync()
    await registry.sync()
    del prefect.rows["deployments"][str(gone)]
    prefect.deploy(2, B)
    prefect.deploy(3, A, paused=True)
    prefect.deploy(5, C)
    await restarted.begin()
    assert known(ledger) == {"flow/d2": B, "flow/d3": A, "flow/d4": A, "flow/d5": C}
    assert [each.consumer.held for each in ledger.reader.consumers.all()] == [False, True, False, False]
    writes = list(prefect.writes)
    await restarted.sync()
    assert prefect.writes == [*writes, "delete"]
    assert len(prefect.automations) == 4


async def test_the_look_after_a_restart_does_the_rest(
    prefect: FakePrefect, registry: Registry, restarted: Registry
) -> None:
    prefect.deploy(1, A)
    await registry.sync()
    await registry.sync()
    prefect.rows["automations"].clear()
    await restarted.begin()
    assert prefect.automations == []
    await restarted.sync()
    assert len(prefect.automations) == 1


async def test_what_deployments_without_a_schedule_make_is_known_at_once(
    prefect: FakePrefect, ledger: LedgerHere, registry: Registry, restarted: Registry
) -> None:
    prefect.deploy(1, A)
    await registry.sync()
    await registry.sync()
    producer = prefect.deploy(2, None, B)
    await restarted.begin()
    assert list(ledger.reader.consumers.unlisted()) == [producer]


@pytest.mark.parametrize("request_", ["POST /deployments/filter", "POST /automations/filter"])
async def test_a_failed_restart_is_repeated(
    prefect: FakePrefect, ledger: LedgerHere, registry: Registry, restarted: Registry, request_: str
) -> None:
    prefect.deploy(1, A)
    await registry.sync()
    await registry.sync()
    prefect.deploy(1, B)
    prefect.fails = [(request_, PrefectUnreachable("gone"))]
    with pytest.raises(PrefectUnreachable):
        await restarted.begin()
    await restarted.begin()
    assert known(ledger) == {"flow/d1": B}


async def test_what_a_new_version_shows_otherwise_is_updated_a_few_at_a_time(
    prefect: FakePrefect, registry: Registry, restarted: Registry
) -> None:
    number = 2 * RESHOWN_AT_ONCE + 1
    for each in range(1, number + 1):
        prefect.deploy(each, A)
    await registry.sync()
    await registry.sync()
    for each in prefect.automations:
        prefect.save("automations", {**each, "description": "of an earlier version"})
    prefect.deploy(number, B)
    prefect.writes.clear()
    # The update of the deployment that was changed does not wait, and the others do not delay a start.
    for updated in (RESHOWN_AT_ONCE + 1, 2 * RESHOWN_AT_ONCE + 1, 2 * RESHOWN_AT_ONCE + 1):
        await restarted.sync()
        assert prefect.writes == ["update"] * updated
    assert not [each for each in prefect.automations if each["description"] == "of an earlier version"]
