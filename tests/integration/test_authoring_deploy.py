"""A flow's declaration arrives with its deployment, whichever way it is deployed."""

from typing import Any

import pytest

from assetflow.authoring.flows import AssetFlow
from assetflow.core.wire.declarations import declaration_from_text
from tests.environment.prefect_server import PrefectServer
from tests.integration.flows_to_deploy import consumer, only_customers, partitioned

pytestmark = [pytest.mark.long, pytest.mark.prefect]


def deployment(server: PrefectServer, name: str) -> dict[str, Any]:
    with server.http() as http:
        return http.get(f"/deployments/name/{name}").raise_for_status().json()


def property_of(schema: dict[str, Any]) -> dict[str, Any]:
    return schema["properties"]["triggering_asset_events"]


@pytest.mark.parametrize("made", [consumer, only_customers, partitioned], ids=lambda made: made.name)
async def test_a_served_flow_stores_the_declaration(prefect_here: PrefectServer, made: AssetFlow[..., Any]) -> None:
    runner_deployment = await made.ato_deployment("served")
    await runner_deployment.aapply()
    stored = deployment(prefect_here, f"{made.name}/served")["parameter_openapi_schema"]
    assert declaration_from_text(property_of(stored)["x-assetflow"]) == made.declaration
    assert ("partition_key" in stored["properties"]) == made.has_partition_key
    assert not stored.get("required")
    if made is consumer:
        assert stored["properties"]["limit"]["description"] == "how many"
