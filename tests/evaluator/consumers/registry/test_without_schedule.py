"""Deployments without a schedule stand in the data graph of the ledger (chapter 8, Words)."""

from datetime import timedelta
from uuid import UUID

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.prefect_io.names import EVENTS_PARAMETER, OFF_TAG, SCHEMA_EXTENSION
from tests.evaluator.consumers.registry.fake_prefect import FLOW, A, B, C, FakePrefect, known, registry_of
from tests.evaluator.ledgers import LedgerHere
from tests.ledger.write.test_kept import kept

CORE, BOARD = 1, 2


def deploy(prefect: FakePrefect, number: int, declaration: FlowDeclaration | None, **given: object) -> UUID:
    made, properties = UUID(int=number), dict[str, object]()
    if declaration is not None:
        properties = {EVENTS_PARAMETER: {SCHEMA_EXTENSION: declaration_to_text(declaration)}}
    schema = {"title": "Parameters", "properties": properties}
    row = {"id": str(made), "name": f"d{number}", "flow_id": FLOW, "parameter_openapi_schema": schema}
    prefect.save("deployments", {**row, **given})
    return made


def chain(prefect: FakePrefect, schedule: object = None, **given: object) -> UUID:
    """Deploy A → B → C: the flow in between as given, and an Eager one below."""
    core = FlowDeclaration(ConsumerOptions(to_schedule(schedule)), (B,), (A,))
    deploy(prefect, BOARD, kept([B], [C]))
    return deploy(prefect, CORE, core, **given)


def maker(ledger: LedgerHere) -> str:
    return ledger.reader.freshness.status(B.uri, None, ledger.now()).producer or ""


async def test_a_flow_that_is_assetflows_no_more_leaves_the_graph(prefect: FakePrefect, ledger: LedgerHere) -> None:
    chain(prefect)
    registry = registry_of(prefect, ledger)
    await registry.sync()
    deploy(prefect, CORE, None)
    await registry.sync()
    assert maker(ledger) == ""


@pytest.mark.parametrize("freshness", [None, FreshnessPolicy(timedelta(hours=1))], ids=["plain", "policy"])
async def test_a_schedule_that_comes_and_goes_leaves_it_in_the_graph(
    prefect: FakePrefect, ledger: LedgerHere, freshness: FreshnessPolicy | None
) -> None:
    registry = registry_of(prefect, ledger)
    made = Asset(B.uri, freshness=freshness)
    off = (A, [OFF_TAG], False)
    for schedule, tags, starts in ((None, [], False), (A, [], True), off, (A, [], True), (None, [], False), off):
        deploy(prefect, BOARD, kept([B], [C]))
        deploy(prefect, CORE, FlowDeclaration(ConsumerOptions(to_schedule(schedule)), (made,), (A,)), tags=tags)
        await registry.sync()
        assert maker(ledger) == "flow/d1"
        conditions = known(ledger)
        assert conditions.get("flow/d1") == (A if starts else None)
        assert ("flow/d1" in conditions) == (starts or freshness is not None)
        assert len(prefect.automations) == 1 + starts


async def test_8_10_a_circle_through_it_is_its_deployments_problem(prefect: FakePrefect, ledger: LedgerHere) -> None:
    deploy(prefect, BOARD, kept([B], [C]))
    registry = registry_of(prefect, ledger)
    await registry.sync()
    core = deploy(prefect, CORE, FlowDeclaration(ConsumerOptions(), (B,), (C,)))
    await registry.sync()
    assert registry.report.problems[core].rule == "8.10"
    del prefect.rows["deployments"][str(UUID(int=BOARD))]
    await registry.sync()
    assert registry.report.problems == {}
    assert len(ledger.reader.lineage.declared()) == 2
