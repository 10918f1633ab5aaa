import asyncio
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from prefect import Flow
from prefect.client.orchestration import get_client

import assetflow
from assetflow.core.wire.deployments import CURSOR, RefusedDeployment
from assetflow.errors import InvalidSchedule
from assetflow.evaluator.consumers.registry import Registry
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger import Ledger
from assetflow.prefect_io.rest import prefect_api
from tests.cli.conftest import Call
from tests.cli.shop import ORDERS
from tests.environment.prefect_server import PrefectServer


def refuse(ledger: Ledger, name: str, number: int) -> None:
    where = f"deployment {name!r} (flows/x.py:core)"
    error = InvalidSchedule("it makes nothing", where=where, fix="Add one", rule="8.1")
    refused = RefusedDeployment.of(UUID(int=number), name, error, "text")
    ledger.writer.set_cursor(CURSOR, [refused.to_row()])


def test_8_1_what_is_refused_is_listed_with_file_flow_and_rule(ledger: Ledger, call: Call) -> None:
    assert call("consumers", "refused").code == 0
    refuse(ledger, "core/lake", 5)
    words = "refused: deployment 'core/lake' (flows/x.py:core): it makes nothing. Add one. Contract 8.1"
    assert words in call("consumers", "ls").out
    listed = call("consumers", "refused")
    assert (listed.code, listed.out.strip()) == (1, words)
    assert [each["rule"] for each in call("consumers", "refused", "--json").json] == ["8.1"]
    for named in ("core", "core/lake"):
        assert "core/lake is refused: it makes nothing" in call("explain", named).err


@assetflow.flow(schedule=ORDERS)
def scheduled() -> None: ...


def deployed(flow: object, name: str) -> UUID:
    deployment = cast("Flow[Any, Any]", flow).to_deployment(name)
    return cast(UUID, cast(Any, deployment).apply())


async def bring_in_step(ledger: Ledger) -> None:
    async with LedgerThread(ledger.place) as thread, prefect_api() as api:
        await Registry(api, thread).sync()


async def deleted(deployment: UUID) -> None:
    async with get_client() as client:
        await client.delete_deployment(deployment)


@pytest.mark.prefect
def test_wait_and_the_switch_on_a_server(ledger: Ledger, prefect_here: PrefectServer, call: Call) -> None:
    assert prefect_here.api_url
    name = f"scheduled/{uuid4().hex[:8]}"
    deployment = deployed(scheduled, name.partition("/")[2])
    late = call("consumers", "wait", name, "--timeout", "0.1")
    assert late.code == 2
    assert name in late.err
    asyncio.run(bring_in_step(ledger))
    assert call("consumers", "wait", name).code == 0
    assert call("consumers", "pause", name).code == 0
    asyncio.run(bring_in_step(ledger))
    (record,) = [each for each in ledger.reader.consumers.all() if each.consumer.name == name]
    assert record.consumer.paused
    assert call("consumers", "resume", "scheduled").out == f"resumed {name}\n"
    asyncio.run(deleted(deployment))
    asyncio.run(bring_in_step(ledger))
    gone = call("consumers", "pause", "scheduld")
    assert gone.code == 2
    assert "no consumer is called 'scheduld'" in gone.err
    assert "Traceback" not in gone.err
