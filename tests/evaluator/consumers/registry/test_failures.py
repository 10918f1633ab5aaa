"""A failure of Prefect or of the ledger loses no change, and one deployment does not hold up the others."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from assetflow.core.values.assets import Asset
from assetflow.errors import LedgerLocked, PrefectRefused, PrefectUnreachable, StatementRefused
from assetflow.evaluator.consumers import registry as registry_module
from assetflow.evaluator.consumers.registry import Registry
from tests.evaluator.consumers.registry.fake_prefect import A, B, FakePrefect, known
from tests.evaluator.ledgers import LedgerHere


def unreachable(*_: Any, **__: Any) -> Any:
    raise PrefectUnreachable("no websocket here")


@pytest.mark.parametrize("request_", ["POST /deployments/filter", "POST /flows/filter", "POST /automations/filter"])
async def test_a_failed_look_is_repeated(
    prefect: FakePrefect, ledger: LedgerHere, registry: Registry, request_: str
) -> None:
    prefect.deploy(1, A)
    prefect.fails = [(request_, PrefectUnreachable("gone"))]
    with pytest.raises(PrefectUnreachable):
        await registry.sync()
    await registry.sync()
    assert known(ledger) == {"flow/d1": A}
    assert len(prefect.automations) == 1


async def test_each_successful_look_is_reported(
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
    prefect: FakePrefect,
    ledger: LedgerHere,
    registry: Registry,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
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


async def test_a_prefect_that_is_down_is_not_asked_for_each_deployment(
    prefect: FakePrefect, registry: Registry
) -> None:
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
