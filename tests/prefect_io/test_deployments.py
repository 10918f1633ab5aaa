"""What a deployment declares, and what changed among many of them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect.client.schemas.responses import DeploymentResponse

from assetflow.core.values.assets import Asset
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.errors import InvalidSchedule, PrefectUnreachable
from assetflow.prefect_io.deployments import Deployments, declaration_of
from assetflow.prefect_io.names import EVENTS_PARAMETER, SCHEMA_EXTENSION

ORDERS = Asset("s3://shop/orders")
DECLARATION = FlowDeclaration(ConsumerOptions(to_schedule(ORDERS)), produces=(Asset("s3://shop/report"),))
TEXT = declaration_to_text(DECLARATION)
FLOW = str(uuid4())
START = datetime(2026, 11, 20, tzinfo=UTC)


def schema(extension: object = TEXT, **more: Any) -> dict[str, Any]:
    return {
        "title": "Parameters",
        "type": "object",
        "properties": {EVENTS_PARAMETER: {"default": None, SCHEMA_EXTENSION: extension}},
        **more,
    }


def row(number: int = 1, updated: int = 0, **given: Any) -> dict[str, Any]:
    moment = (START + timedelta(seconds=updated)).isoformat()
    made = {"id": str(UUID(int=number)), "name": f"d{number}", "flow_id": FLOW, "created": moment, "updated": moment}
    return made | {"parameter_openapi_schema": schema()} | given


def deployment(**given: Any) -> DeploymentResponse:
    return DeploymentResponse.model_validate(row(**given))


@pytest.mark.parametrize("lost", [None, 7, {"version": 1}, "", "{", '{"version": 99}', '{"version": 1, "nodes": 3}'])
def test_a_schedule_that_got_lost_or_damaged_is_an_error_that_names_the_deployment(lost: object) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        declaration_of(deployment(parameter_openapi_schema=schema(lost)), where="deployment 'report/daily'")
    assert "deployment 'report/daily'" in str(caught.value)
    assert caught.value.fix


def test_a_required_parameter_needs_a_value_from_the_deployment() -> None:
    needs = schema(required=["day"])
    with pytest.raises(InvalidSchedule, match="'day'"):
        declaration_of(deployment(parameter_openapi_schema=needs))
    assert declaration_of(deployment(parameter_openapi_schema=needs, parameters={"day": "today"})) == DECLARATION


CANCELS = {"concurrency_options": {"collision_strategy": "CANCEL_NEW"}}


def test_rule_4_7_a_limit_that_cancels_runs_with_updates_is_a_problem() -> None:
    with pytest.raises(InvalidSchedule, match="CANCEL_NEW") as caught:
        declaration_of(deployment(**CANCELS))
    assert caught.value.rule == "4.7"
    assert "coalesce=True" in caught.value.fix
    assert declaration_of(deployment(concurrency_options={"collision_strategy": "ENQUEUE"})) == DECLARATION
    by_time = declaration_to_text(FlowDeclaration(ConsumerOptions(to_schedule("@daily"))))
    assert declaration_of(deployment(parameter_openapi_schema=schema(by_time), **CANCELS)) is not None


class FakeApi:
    """Deployments of a server, as JSON, and how often it was asked for what."""

    def __init__(self, *rows: Mapping[str, Any]) -> None:
        self.rows = {each["id"]: dict(each) for each in rows}
        self.asked: list[tuple[str, int]] = []
        self.hidden: set[str] = set()
        self.fails: list[str] = []

    async def post(self, path: str, body: Any) -> Any:
        if path in self.fails:
            self.fails.remove(path)
            raise PrefectUnreachable("no answer")
        if path == "/flows/filter":
            return [{"id": FLOW, "name": "report"}]
        if path.endswith("/count"):
            self.asked.append(("count", 1))
            return len(self.rows)
        listed = [each for each in self.rows.values() if each["id"] not in self.hidden]
        listed.sort(key=lambda each: each["updated"], reverse=True)
        page = listed[body["offset"] : body["offset"] + body["limit"]]
        self.asked.append(("page", len(page)))
        return page

    async def get(self, path: str) -> Any:
        self.asked.append(("get", 1))
        return self.rows.get(path.rpartition("/")[2])

    def put(self, *rows: Mapping[str, Any]) -> None:
        self.rows.update({each["id"]: dict(each) for each in rows})


def many(number: int) -> FakeApi:
    return FakeApi(*(row(each, updated=each) for each in range(1, number + 1)))


async def names(deployments: Deployments) -> tuple[list[str], list[int]]:
    changes = await deployments.changes()
    return [each.name for each in changes.changed], [each.int for each in changes.gone]


def deployments_of(api: FakeApi) -> Deployments:
    return Deployments(api)  # type: ignore[arg-type]


async def test_rule_4_7_a_limit_that_is_set_later_is_heard_of() -> None:
    api = many(1)
    deployments = deployments_of(api)
    problems = [each.problem for each in (await deployments.changes()).changed]
    for updated, given in ((10, CANCELS), (20, {"concurrency_options": {"collision_strategy": "ENQUEUE"}})):
        api.put(row(1, updated=updated, **given))
        problems += [each.problem for each in (await deployments.changes()).changed]
    assert [each and each.rule for each in problems] == [None, "4.7", None]


async def test_a_deployment_of_a_newer_server_hides_no_others() -> None:
    newer = {"status": "SLEEPING", "concurrency_options": {"collision_strategy": "LATER"}, "schedules": [{"x": 1}]}
    api = FakeApi(row(1), row(2, updated=1, **newer))
    assert await names(deployments_of(api)) == (["report/d1", "report/d2"], [])


async def test_gone_is_what_has_no_answer_of_its_own_not_what_a_list_lacks() -> None:
    api = many(300)
    deployments = deployments_of(api)
    await deployments.changes()
    api.hidden = {str(UUID(int=5))}
    del api.rows[str(UUID(int=7))]
    assert await names(deployments) == ([], [7])
    assert await names(deployments) == ([], [])
