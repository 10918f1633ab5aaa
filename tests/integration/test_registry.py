"""What is deployed, the consumers and the automations stay in step, on a real Prefect server."""

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID, uuid4

import httpx
import pytest
import pytest_asyncio
from prefect import Flow

import assetflow
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.errors import InvalidSchedule, PrefectUnreachable
from assetflow.evaluator.consumers.registry import Registry
from assetflow.prefect_io.names import ASSET_UPDATED, EVENTS_PARAMETER, SCHEDULE_SATISFIED, SCHEMA_EXTENSION
from assetflow.prefect_io.rest import PrefectApi, prefect_api
from tests.environment.prefect_server import PrefectServer
from tests.environment.waiting import until_async
from tests.evaluator.ledgers import LedgerHere, ledger_here

pytestmark = [pytest.mark.long, pytest.mark.prefect]

ORDERS = Asset("s3://shop/raw/orders")
CUSTOMERS = Asset("s3://shop/raw/customers")


class World:
    """A registry on a server, and the means to deploy without the code of a flow."""

    def __init__(self, api: PrefectApi, ledger: LedgerHere, http: httpx.Client) -> None:
        self.api = api
        self.http = http
        self.ledger = ledger
        self.registry = Registry(api, self.ledger)
        self.made: list[UUID] = []

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What Prefect answers the test itself."""
        answer = self.http.request(method, path, json=body).raise_for_status()
        return answer.json() if answer.content else None

    def related(self, deployment: UUID) -> list[dict[str, Any]]:
        """The automations of a deployment."""
        return self.ask("GET", f"/automations/related-to/prefect.deployment.{deployment}")

    def post_event(self, name: str, resource: str) -> None:
        event = {"event": name, "id": str(uuid4()), "occurred": datetime.now(UTC).isoformat()}
        resource_json = {"prefect.resource.id": resource}
        self.ask("POST", "/events", [event | {"resource": resource_json, "related": [], "payload": {}}])

    def runs(self, deployment: UUID) -> int:
        return self.ask("POST", "/flow_runs/count", {"deployments": {"id": {"any_": [str(deployment)]}}})

    async def deploy(self, name: str, schedule: object, **given: object) -> UUID:
        text = declaration_to_text(FlowDeclaration(ConsumerOptions(to_schedule(schedule))))
        parameter = {"title": EVENTS_PARAMETER, "default": None, SCHEMA_EXTENSION: text}
        schema = {"title": "Parameters", "type": "object", "properties": {EVENTS_PARAMETER: parameter}}
        return await self.deploy_schema(name, {**schema, "required": []}, **given)

    async def deploy_schema(self, name: str, schema: object, **given: object) -> UUID:
        flow_name, _, deployment = name.partition("/")
        flow = self.ask("POST", "/flows/", {"name": flow_name})
        body = {"name": deployment, "flow_id": flow["id"], "parameter_openapi_schema": schema, **given}
        made = UUID((self.ask("POST", "/deployments/", body))["id"])
        self.made.append(made)
        return made

    async def sync(self) -> list[str]:
        """The steps of one look, those of this world's deployments."""
        self.registry.report.steps.clear()
        await until_async(self._synced)
        return [each.what for each in self.registry.report.steps]

    async def _synced(self) -> bool:
        """Whether a look went through; a busy SQLite answers 503."""
        try:
            await self.registry.sync()
        except PrefectUnreachable:
            return False
        return not any(isinstance(each, PrefectUnreachable) for each in self.registry.report.problems.values())

    async def automation(self, deployment: UUID) -> dict[str, Any]:
        rows = self.related(deployment)
        assert len(rows) == 1
        return rows[0]

    async def switch(self, deployment: UUID, enabled: bool) -> None:
        automation = await self.automation(deployment)
        self.ask("PATCH", f"/automations/{automation['id']}", {"enabled": enabled})

    async def has_consumer(self, deployment: UUID) -> bool:
        return any(each.consumer.deployment_id == deployment for each in self.ledger.reader.consumers.all())

    async def consumer(self, deployment: UUID) -> Consumer:
        (found,) = [each for each in self.ledger.reader.consumers.all() if each.consumer.deployment_id == deployment]
        return found.consumer


@pytest_asyncio.fixture
async def world(prefect_here: PrefectServer) -> AsyncIterator[World]:
    with ledger_here() as ledger, prefect_here.http() as http:
        async with prefect_api() as api:
            made = World(api, ledger, http)
            await made.registry.sync()
            yield made
            for deployment in made.made:
                http.delete(f"/deployments/{deployment}")
            await made.sync()


def unique(name: str) -> str:
    return f"{name}-{uuid4().hex[:6]}/main"


@pytest.mark.rule("3.4", "3.6")
async def test_consumer_and_automation_follow_their_deployment_and_its_switch(world: World) -> None:
    name = unique("report")
    deployment = await world.deploy(name, ORDERS & CUSTOMERS)
    assert await world.sync() == ["deployed", "shown"]
    automation, consumer = await world.automation(deployment), await world.consumer(deployment)
    assert automation["name"] == f"{name} runs when s3://…/orders AND s3://…/customers were updated"
    assert automation["enabled"]
    assert ORDERS.uri in str(automation["trigger"])
    assert CUSTOMERS.uri in automation["description"]
    assert (consumer.name, consumer.options.schedule.condition) == (name, ORDERS & CUSTOMERS)
    assert await world.sync() == []
    await world.switch(deployment, False)
    assert await world.sync() == ["paused"]
    assert (await world.consumer(deployment)).paused
    assert await world.deploy(name, ORDERS | CUSTOMERS) == deployment
    assert await world.sync() == ["changed", "reshown"]
    world.ask("DELETE", f"/automations/{(await world.automation(deployment))['id']}")
    assert await world.sync() == ["shown"]
    assert not (await world.automation(deployment))["enabled"]
    assert (await world.consumer(deployment)).paused
    await world.switch(deployment, True)
    assert await world.sync() == ["resumed"]
    for paused, step in ((True, "held"), (False, "released")):
        world.ask("PATCH", f"/deployments/{deployment}", {"paused": paused})
        assert await world.sync() == [step]
    world.ask("DELETE", f"/deployments/{deployment}")
    assert await world.sync() == ["removed", "hidden"]
    assert not await world.has_consumer(deployment)
    assert world.related(deployment) == []


@pytest.mark.rule("4.4")
async def test_a_schedule_that_got_lost_leaves_the_consumer_and_says_so(world: World) -> None:
    name = unique("lost")
    deployment = await world.deploy(name, ORDERS)
    await world.sync()
    lost = {"type": "object", "properties": {EVENTS_PARAMETER: {"title": EVENTS_PARAMETER}}}
    await world.deploy_schema(name, lost)
    assert await world.sync() == []
    problem = world.registry.report.problems[deployment]
    assert isinstance(problem, InvalidSchedule)
    assert name in str(problem)
    assert await world.has_consumer(deployment)
    await world.deploy_schema(name, None)
    assert await world.sync() == []
    assert "lost" in str(world.registry.report.problems[deployment])
    await world.deploy(name, ORDERS)
    assert await world.sync() == []
    assert deployment not in world.registry.report.problems


@assetflow.task(outlets=[CUSTOMERS])
def load_customers() -> None: ...


@assetflow.flow(schedule=ORDERS)
def real_report() -> None:
    load_customers()


async def deploy_flow(world: World, flow: object, name: str, **given: Any) -> UUID:
    """What `flow.deploy` and `prefect deploy` do, without a work pool."""
    deployment = await cast("Flow[Any, Any]", flow).ato_deployment(name, **given)
    made = await deployment.aapply()
    world.made.append(made)
    return made


async def test_triggers_of_a_users_own_are_left_alone(world: World) -> None:
    own = assetflow.deployment_triggers(CUSTOMERS)
    deployment = await deploy_flow(world, real_report, "own-triggers", triggers=own)
    await world.sync()
    await world.sync()
    assert len(world.related(deployment)) == 2


async def test_a_shown_condition_starts_nothing(world: World) -> None:
    mark = uuid4().hex
    shown, decided = Asset(f"s3://{mark}/shown"), await world.deploy(unique("marker"), Asset("x"))
    deployment = await world.deploy(unique("shown"), shown | CUSTOMERS)
    await world.sync()
    world.post_event(ASSET_UPDATED, shown.uri)
    # Prefect works events off in order: what follows has been decided, so that was decided too.
    await until_async(lambda: posted_and_run(world, SCHEDULE_SATISFIED, f"prefect.deployment.{decided}", decided))
    assert world.runs(deployment) == 0


async def posted_and_run(world: World, event: str, resource: str, deployment: UUID) -> bool:
    before = world.runs(deployment)
    world.post_event(event, resource)
    with suppress(TimeoutError):
        return await until_async(lambda: world.runs(deployment) != before, seconds=5)
    return False
