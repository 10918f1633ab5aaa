"""The flows of this repository, unchanged, on every Spark that a setting can name; and a cluster that loses workers."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from tests.environment.prefect_server import PrefectServer
from tests.environment.spark_cluster import SparkCluster, connect_server, kill, spark_cluster
from tests.environment.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.prefect, pytest.mark.timeout(400)]

FOLDER = Path(__file__).parent
SMALL = {"spark.executor.memory": "600m", "spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1"}
Settings = dict[str, str]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def on_connect(tmp_path: Path) -> Iterator[Settings]:
    with connect_server(tmp_path) as url:
        yield {"ASSETFLOW_SPARK_REMOTE": url}


@pytest.mark.long
@pytest.mark.parametrize("engine", ["standalone", "local-cluster", "connect"])
def test_the_flows_run_unchanged(
    engine: str,
    request: pytest.FixtureRequest,
    child: Callable[..., Any],
    tmp_path: Path,
    prefect_server: PrefectServer,
) -> None:
    conf = {"ASSETFLOW_SPARK_CONF": json.dumps(SMALL)}
    if engine == "standalone":
        settings = {"ASSETFLOW_SPARK_MASTER": request.getfixturevalue("cluster").master_url} | conf
    elif engine == "local-cluster":
        settings = {"ASSETFLOW_SPARK_MASTER": "local-cluster[2,1,1024]"} | conf
    else:
        settings = request.getfixturevalue("on_connect")
    # The demo runs all of them, on a Connect server.
    which = "lake" if engine == "standalone" else "tutorial"
    found = child("flows_child.py", which, **prefect_server.env, **settings, FLOWS_LAKE=str(tmp_path / "lake"))
    assert found == {
        "master": settings.get("ASSETFLOW_SPARK_MASTER", "local[2]"),
        "by city": {"London": 200.0, "New York": 40.0},
        **({"hours": 71, "rows": [3322, 26115]} if which == "lake" else {}),
    }


@pytest.mark.long
def test_a_cluster_that_loses_workers(cluster: SparkCluster, tmp_path: Path, prefect_server: PrefectServer) -> None:
    """One worker less: the job ends right. None left: it fails whole at its time limit, and nothing is recorded."""
    lake, hold, reached = tmp_path / "lake", tmp_path / "hold", tmp_path / "reached"
    hold.touch()
    settings = {"ASSETFLOW_SPARK_MASTER": cluster.master_url, "ASSETFLOW_SPARK_CONF": json.dumps(SMALL)}
    command = [sys.executable, str(FOLDER / "lossy_child.py"), f"file://{lake}", str(hold), str(reached)]
    env = prefect_server.env | settings | {"PYTHONPATH": str(FOLDER.parents[1])}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as child:
        until(reached.exists)
        kill(cluster.workers[0])
        cluster.fill_up()
        hold.unlink()
        until(reached.read_text)
        assert ids(lake) == [0, 1, 2, 3]
        reached.unlink()
        hold.touch()
        until(reached.exists)
        for worker in cluster.workers:
            kill(worker)
        told, _ = child.communicate(timeout=120)
    cluster.fill_up()
    assert json.loads(told.splitlines()[-1]) == ["Completed", "TimedOut"]
    assert ids(lake) == [0, 1, 2, 3]
    assert len(updates_of(prefect_server, f"file://{lake}")) == 1


def ids(lake: Path) -> list[int]:
    return sorted(pyarrow.parquet.read_table(lake).column("id").to_pylist())


def updates_of(server: PrefectServer, uri: str) -> list[dict[str, Any]]:
    body = {"artifacts": {"type": {"any_": ["assetflow-update"]}}}
    with server.http() as http:
        found = http.post("/artifacts/filter", json=body).raise_for_status().json()
    return [each for each in found if uri in each["data"]]
