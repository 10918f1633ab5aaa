"""A flow's declaration arrives with its deployment, whichever way it is deployed."""

from pathlib import Path
from typing import Any

import pytest
from prefect.flows import safe_load_flow_from_entrypoint
from prefect.utilities.callables import parameter_schema

from assetflow.authoring.flows import AssetFlow
from assetflow.core.wire.declarations import declaration_from_text
from tests.environment.prefect_server import PrefectServer
from tests.integration.flows_to_deploy import consumer, only_customers, partitioned

pytestmark = [pytest.mark.long, pytest.mark.prefect]

ROOT = Path(__file__).parents[2]
ENTRYPOINT = "tests/integration/flows_to_deploy.py"


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


def test_a_flow_whose_file_cannot_be_imported_here_keeps_the_declaration(tmp_path: Path) -> None:
    text = (ROOT / ENTRYPOINT).read_text()
    source = text.replace("\nfrom assetflow import", "\nimport not_installed_here\nfrom assetflow import", 1)
    path = tmp_path / "broken_flows.py"
    path.write_text(source)
    loaded = safe_load_flow_from_entrypoint(f"{path}:consumer")
    assert loaded is not None
    stored = parameter_schema(loaded).model_dump()
    assert declaration_from_text(property_of(stored)["x-assetflow"]) == consumer.declaration
