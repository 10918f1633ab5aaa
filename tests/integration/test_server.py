"""`assetflow server start` on a real Prefect server, with room for 256 open files."""

from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

import assetflow
from assetflow.core.values.assets import Asset
from tests.environment.prefect_server import PrefectServer
from tests.integration.served_installation import KEY, ServedInstallation, served

pytestmark = [pytest.mark.long, pytest.mark.prefect]


@pytest.fixture(scope="module")
def shared(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedInstallation]:
    with served(prefect_server, tmp_path_factory.mktemp("served"), files=256) as installation:
        yield installation


@pytest.fixture
def there(shared: ServedInstallation) -> Iterator[ServedInstallation]:
    shared.rename()
    yield shared
    shared.remove_deployments()


@pytest.fixture
def api(there: ServedInstallation) -> Iterator[httpx.Client]:
    with there.client() as client:
        yield client


def test_pause_resume_and_ready(there: ServedInstallation, api: httpx.Client) -> None:
    uri = there.uri("s3://shop/orders")
    consumer = there.deploy("orders", Asset(uri))
    there.wait_for_consumers()
    path = f"/api/v1/consumers/{there.deployments[consumer]}"
    json = {"content-type": "application/json"}
    assert api.get("/api/v1/ready").json()["status"] == "ready"
    assert api.post(f"{path}/pause", headers=json).json() == {"name": there.deployments[consumer], "paused": True}
    there.until(lambda: api.get(path).json()["state"] == "paused")
    assetflow.emit(uri, to=there.url, api_key=KEY)
    assert api.post(f"{path}/resume", headers=json).status_code == 200
    there.until(lambda: api.get(path).json()["state"] == "waiting")
    assert there.runs(consumer) == []


def deploy_maker(there: ServedInstallation) -> tuple[str, str]:
    """Deploy a flow that makes an asset; the asset's URI, and the deployment."""
    uri = there.uri("s3://shop/made")
    producer = there.deploy("maker", Asset(there.uri("x")), produces=(Asset(uri),))
    there.wait_for_consumers()
    return uri, producer


def test_the_same_request_again_starts_no_second_run(there: ServedInstallation, api: httpx.Client) -> None:
    uri, producer = deploy_maker(there)
    wanted = {"name": "by-hand", "partition_key": "2026-01-01"}
    paths = (f"/consumers/{there.deployments[producer]}/run", f"/assets/{quote(uri, safe='')}/materialize")
    answers = [api.post(f"/api/v1{path}", json=wanted).json() for path in paths for _ in range(2)]
    (run,) = there.runs(producer)
    assert {(each["flow_run_id"], each["flow_run_name"]) for each in answers} == {(run["id"], "by-hand")}
    assert run["context"]["assetflow"]["partition_key"] == "2026-01-01"
