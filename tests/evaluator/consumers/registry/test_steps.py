"""Consumers and automations follow the deployments."""

from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.freshness_schedules import Eager
from assetflow.evaluator.consumers.registry import AUTOMATIONS, Registry
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger import Ledger
from tests.evaluator.consumers.registry.fake_prefect import START, A, B, C, FakePrefect, known, registry_of
from tests.evaluator.fakes import recording
from tests.evaluator.ledgers import LedgerHere, ledger_here


async def test_the_automation_of_an_evaluator_that_died_is_adopted(prefect: FakePrefect, registry: Registry) -> None:
    prefect.deploy(1, A)
    await registry.sync()
    with ledger_here() as again:
        await registry_of(prefect, again).sync()
        (consumer,) = again.reader.consumers.all()
    assert prefect.writes == ["create"]
    assert str(consumer.automation_id) == prefect.automations[0]["id"]


async def test_a_resume_and_a_changed_schedule_lead_to_decisions(prefect: FakePrefect, tmp_path: Path) -> None:
    async with LedgerThread(tmp_path / "ledger.db") as consumers:
        ledger, registry = consumers.ledger, registry_of(prefect, consumers)
        deployment = prefect.deploy(1, A & B)
        prefect.deploy(2, None, C)
        await registry.sync()
        assert known(consumers) == {"flow/d1": A & B}
        assert [(edge.name, edge.value) for edge in ledger.reader.lineage.declared()] == [("flow/d2", C.uri)]
        assert {asset.uri for asset in ledger.reader.assets.all()} == {A.uri, B.uri, C.uri}
        await registry.sync()
        assert await consumers.cursor(AUTOMATIONS) == START + timedelta(seconds=3)
        record(ledger, A)
        prefect.deploy(1, A)
        await registry.sync()
        assert len(ledger.reader.decisions.find()) == 1
        prefect.deploy(1, A, paused=True)
        await registry.sync()
        record(ledger, A)
        assert len(ledger.reader.decisions.find()) == 1
        prefect.deploy(1, A, paused=False)
        await registry.sync()
        assert len(ledger.reader.decisions.find()) == 2
        del prefect.rows["deployments"][str(deployment)]
        await registry.sync()
        assert known(consumers) == {}


def record(ledger: Ledger, asset: Asset) -> None:
    event = AssetEvent(id=uuid4(), asset=asset, occurred=START, origin=Origin("api"))
    ledger.writer.events.record([Recording(uuid4(), (event,))], START)


@pytest.mark.parametrize("goes_on", [True, False])
async def test_8_6_the_first_reader_waits_for_a_run_of_its_maker_that_prefect_knows(
    prefect: FakePrefect, ledger: LedgerHere, registry: Registry, goes_on: bool
) -> None:
    maker = prefect.deploy(1, A, B)
    await registry.sync()
    ledger.record(recording(B.uri))
    if goes_on:
        times = {"created": START.isoformat(), "start_time": START.isoformat()}
        run = {"id": str(uuid4()), "deployment_id": str(maker), "state_type": "RUNNING", **times}
        prefect.save("flow_runs", run)
    prefect.deploy(2, Eager(B), C)
    await registry.sync()
    assert len(ledger.decisions) == (0 if goes_on else 1)
