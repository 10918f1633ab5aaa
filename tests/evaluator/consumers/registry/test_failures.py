"""A failure of Prefect or of the ledger loses no change, nor does a restart, and one deployment holds up no other."""

import logging

import pytest

from assetflow.errors import PrefectUnreachable, StatementRefused
from assetflow.evaluator.consumers.registry import Registry
from tests.evaluator.consumers.registry.fake_prefect import A, B, C, FakePrefect, known
from tests.evaluator.ledgers import LedgerHere


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
