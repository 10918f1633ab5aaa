"""Example 22: an update that comes from another environment."""

from pathlib import Path
from typing import Any

import httpx
import pytest

import assetflow
from assetflow import Asset
from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import events_of
from tests.integration.served_installation import KEY, served

pytestmark = [pytest.mark.long, pytest.mark.prefect]


def test_live(prefect_server: PrefectServer, tmp_path: Path) -> None:
    with served(prefect_server, tmp_path) as there, there.client() as api:
        uri = there.uri("s3://shop/orders")
        consumer = there.deploy("orders", Asset(uri))
        there.wait_for_consumers()
        event = assetflow.emit(uri, {"rows": 3}, to=there.url, api_key=KEY)
        assetflow.emit(uri, {"rows": 3}, id=event.id, to=there.url, api_key=KEY)
        run = there.run_of(consumer)
        assert [(each["id"], each["extra"]) for each in events_of(run)] == [(str(event.id), {"rows": 3})]
        told = there.until(lambda: _explained(api, run["id"]))
        assert told is not None
        assert (told["run"]["flow_run_id"], told["completed_by"]) == (run["id"], str(event.id))
        assert len(there.runs(consumer)) == 1


def _explained(api: httpx.Client, run: str) -> dict[str, Any] | None:
    answer = api.get(f"/api/v1/runs/{run}")
    return answer.json() if answer.status_code == 200 else None
