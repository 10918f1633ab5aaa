"""A failure of Prefect or of the ledger loses no change, nor does a restart, and one deployment holds up no other."""

import asyncio
import logging
from typing import Any
from uuid import UUID

import pytest

from assetflow.core.values.assets import Asset
from assetflow.errors import LedgerLocked, PrefectRefused, PrefectUnreachable, StatementRefused
from assetflow.evaluator.consumers import registry as registry_module
from assetflow.evaluator.consumers.reconcile import RESHOWN_AT_ONCE
from assetflow.evaluator.consumers.registry import Registry
from tests.evaluator.consumers.registry.fake_prefect import A, B, C, FakePrefect, known
from tests.evaluator.ledgers import LedgerHere


def unreachable(*_: Any, **__: Any) -> Any:
    raise PrefectUnreachable("no websocket here")


@pytest.mark.parametrize("request_", ["POST /deployments/filter", "POST /flows/filter", "POST /automations/filter"])
async def test_a_failed_look_is_made_again(
    prefect: FakePrefect, ledger: LedgerHere, registry: Registry, request_: str
) -> None:
    prefect.deploy(1, A)
    prefect.fails = [(request_, PrefectUnreachable("gone"))]
    with pytest.raises(PrefectUnreachable):
        await registry.sync()
    await registry.sync()
    assert known(ledger) == {"flow/d1": A}
    assert len(prefect.automations) == 1


async def test_each_good_look_is_told(
    prefect: FakePrefect, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report ends a failure, in the log and in the status, as soon as a look succeeds."""
    monkeypatch.setattr(registry_module, "subscribe", unreachable)
    prefect.deploy(1, A)
    prefect.fails = [("POST /deployments/filter", PrefectUnreachable("gone"))]
    looks = asyncio.Event()
    with pytest.raises(PrefectUnreachable):
        await registry.run(looks.set)
    assert not looks.is_set()
    running = asyncio.create_task(registry.run(looks.set))
    async with asyncio.timeout(5):
        await looks.wait()
    running.cancel()


async def test_an_automation_that_cannot_be_created_now_is_created_later_and_the_others_now(
    prefect: FakePrefect, ledger: LedgerHere, registry: Registry
) -> None:
    first = prefect.deploy(1, A)
    prefect.deploy(2, B)
    prefect.fails = [("POST /automations/", PrefectUnreachable("500"))]

    await registry.sync()
    assert known(ledger) == {"flow/d1": A, "flow/d2": B}
    assert list(registry.report.problems) == [first]
    assert len(prefect.automations) == 1

    await registry.sync()
    assert len(prefect.automations) == 2
    assert registry.report.problems == {}


@pytest.mark.parametrize("error", [StatementRefused("odd"), KeyError("id"), UnicodeEncodeError("utf-8", "", 0, 1, "x")])
async def test_a_deployment_that_fails_for_any_reason_does_not_hold_up_the_others(
    prefect: FakePrefect, ledger: LedgerHere, registry: Registry, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    bad = prefect.deploy(1, A)
    prefect.deploy(2, B)
    ledger.refuses = lambda name, given: error if name == "deploy" and given[1] == bad else None
    for _ in range(3):
        await registry.sync()
    assert known(ledger) == {"flow/d2": B}
    assert list(registry.report.problems) == [bad]
    assert len([each for each in caplog.records if each.levelno >= logging.WARNING]) == 1
    ledger.refuses = lambda _name, _given: None
    await registry.sync()
    assert known(ledger) == {"flow/d1": A, "flow/d2": B}
    assert registry.report.problems == {}


async def test_prefect_that_is_down_is_not_asked_for_each_deployment(prefect: FakePrefect, registry: Registry) -> None:
    for number in range(1, 11):
        prefect.deploy(number, Asset(f"s3://lake/{number}"))
    await registry.sync()
    for number in range(1, 11):
        prefect.deploy(number, Asset(f"s3://lake/other/{number}"))
    prefect.fails = [("PUT", PrefectUnreachable("down"))] * 10
    with pytest.raises(PrefectUnreachable):
        await registry.sync()
    assert len(prefect.fails) == 7
    prefect.fails = []
    await registry.sync()
    assert all("other" in str(each["trigger"]) for each in prefect.automations)


async def test_a_refusal_of_prefect_is_logged_once_and_not_retried(
    prefect: FakePrefect, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    deployment = prefect.deploy(1, A)
    prefect.fails = [("POST /automations/", PrefectRefused("422: too large"))]
    await registry.sync()
    await registry.sync()
    assert "too large" in str(registry.report.problems[deployment])
    assert caplog.text.count("too large") == 1
    assert prefect.automations == []


async def test_a_locked_ledger_loses_no_change(prefect: FakePrefect, ledger: LedgerHere, registry: Registry) -> None:
    prefect.deploy(1, A)
    ledger.fails["deploy"] = [LedgerLocked("held by another process")]
    with pytest.raises(LedgerLocked):
        await registry.sync()
    await registry.sync()
    assert known(ledger) == {"flow/d1": A}


async def test_a_new_ledger_reads_everything(prefect: FakePrefect, ledger: LedgerHere, restarted: Registry) -> None:
    prefect.deploy(1, A)
    await restarted.begin()
    assert known(ledger) == {"flow/d1": A}
    assert prefect.writes == ["create"]


async def test_a_restart_reads_the_automations_that_changed(
    prefect: FakePrefect, ledger: LedgerHere, registry: Registry, restarted: Registry
) -> None:
    for number in range(1, 202):
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
    assert len(restarted.report.scheduled) == 201
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


async def test_the_look_after_a_restart_does_it_all(
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
