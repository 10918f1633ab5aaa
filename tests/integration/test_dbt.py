"""The example of dbt beside Spark: landed files, dbt in its own environment, and a flow that runs on a dbt model."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assetflow.core.rules.ended_runs import EndedRun
from assetflow.ledger.records import EventFilter
from tests.environment.examples import ROOT
from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.spark, pytest.mark.timeout(600)]

MINUTES = 240.0
EXAMPLE = ROOT / "deployments" / "dbt"
SALES = "duckdb://warehouse/main/sales"


class Shop:
    """The example's flows, served beside an evaluator."""

    def __init__(self, server: PrefectServer, home: Path) -> None:
        self.here = Installation(server, home)
        self.here.start()
        uv = Path(shutil.which("uv") or ROOT / ".assetflow" / "tools" / "bin" / "uv")
        tools = {"PATH": f"{uv.parent}:{os.environ['PATH']}", "PREFECT_RUNNER_POLL_FREQUENCY": "1"}
        self.env = server.env | {"ASSETFLOW_HOME": str(home), "SHOP_HOME": str(home / "lake"), **tools}
        dbt = [str(uv), "run", "--frozen", "--isolated", "--only-group", "dbt", "python"]
        scripts = ([sys.executable, str(EXAMPLE / "shop.py")], [*dbt, str(EXAMPLE / "build.py")])
        self.serving = [subprocess.Popen(each, env=self.env, cwd=ROOT) for each in scripts]
        self.ids = {name: self.here.until(lambda name=name: self._deployed(name), MINUTES) for name in FLOWS}
        self.here.deployments = {number: f"{name}/dbt" for name, number in self.ids.items()}
        self.here.until(lambda: self._consumers() >= {"transform/dbt", "report/dbt"})

    def land(self, amount: float | None) -> None:
        self.here.post(f"/deployments/{self.ids['land']}/create_flow_run", {"parameters": {"amount": amount}})

    def states(self, name: str, count: int) -> list[str]:
        """The states in which so many runs of a flow have ended."""
        ended = {"COMPLETED", "FAILED", "CRASHED"}

        def found() -> list[str] | None:
            states = [run["state_type"] for run in self.here.runs(self.ids[name])]
            return states if len(states) >= count and ended.issuperset(states) else None

        return self.here.until(found, seconds=MINUTES)

    def failed_makers(self) -> list[EndedRun]:
        with self.here.reader() as ledger:
            return ledger.ended_runs.failed_makers([SALES])

    def explained(self) -> str:
        command = [sys.executable, "-m", "assetflow", "explain", "--asset", SALES]
        return subprocess.run(command, env=self.env, check=True, capture_output=True, text=True).stdout

    def close(self) -> None:
        try:
            for each in self.serving:
                each.terminate()
            for each in self.serving:
                each.wait(60)
        finally:
            self.here.close()

    def _deployed(self, name: str) -> str | None:
        answer = self.here.http.get(f"/deployments/name/{name}/dbt")
        return answer.json()["id"] if answer.is_success else None

    def _consumers(self) -> set[str]:
        with self.here.reader() as ledger:
            return {each.consumer.name for each in ledger.consumers.all()}


FLOWS = ("land", "transform", "build", "report")


@pytest.fixture
def shop(prefect_server: PrefectServer, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(prefect_server, tmp_path)
    yield made
    made.close()


def test_a_flow_runs_on_what_dbt_made_of_what_spark_landed_and_a_failed_dbt_test_is_a_failed_maker(shop: Shop) -> None:
    shop.land(120.0)
    assert [shop.states(name, 1) for name in FLOWS] == [["COMPLETED"]] * 4
    with shop.here.reader() as ledger:
        (event,) = ledger.events.find(EventFilter(uri=SALES))
    assert event.origin.by == "dbt"
    shop.land(None)
    assert shop.states("build", 2) == shop.states("transform", 2) == ["COMPLETED", "FAILED"]
    (failed,) = shop.here.until(shop.failed_makers, MINUTES)
    assert failed.flow == "build/dbt"
    assert "not_null_sales_amount" in failed.error
    assert "build/dbt failed at" in shop.explained()
    # dbt had made the model before its test failed.
    assert shop.states("report", 2) == ["COMPLETED"] * 2
