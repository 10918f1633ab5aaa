"""An evaluator and flows of different versions on one Prefect server: this version, and the first that landed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.environment.fresh import ROOT, build_wheel, make_environment, write_locked
from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(600)]

PREVIOUS = "757f789"
FLOWS = """
from assetflow import Asset, Metadata, flow, task, triggering_asset_events

raw = Asset("s3://versions/{mark}/raw")


@task(outlets=[raw])
def load():
    yield Metadata(raw, {{"rows": 3}})


@flow
def produce():
    load()


@flow(schedule=raw, log_prints=True)
def report(triggering_asset_events=triggering_asset_events):
    print("consumed", [event.extra for event in triggering_asset_events[raw]])
"""


@dataclass(frozen=True)
class Version:
    """An environment with one version of assetflow."""

    bin: Path

    def run(self, at: Installation, *command: str) -> str:
        """Run one of the environment's programs in the installation's folder, and return what it prints."""
        program, *arguments = command
        env = os.environ | at.server.env | {"ASSETFLOW_HOME": str(at.home)}
        done = subprocess.run(
            [str(self.bin / program), *arguments], cwd=at.home, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Version:
    """The first version that landed, built from the repository's history."""
    home = tmp_path_factory.mktemp("previous")
    source = home / "source"
    source.mkdir()
    archive = subprocess.run(["git", "archive", PREVIOUS], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        # With this first word, a skip is a failure in CI, which clones the whole history.
        pytest.skip(f"needs the history of the repository back to {PREVIOUS}")
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive.stdout, check=True)
    write_locked(home / "constraints.txt")
    wheel = build_wheel(home / "dist", of=source)
    return Version(make_environment(home / "env", str(wheel), options=["--constraint", str(home / "constraints.txt")]))


@pytest.fixture
def here() -> Version:
    return Version(Path(sys.executable).parent)


@pytest.fixture
def at(prefect_server: PrefectServer, tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(prefect_server, tmp_path)
    (tmp_path / "flows.py").write_text(FLOWS.format(mark=installation.mark))
    yield installation
    installation.close()


def run_of_report(at: Installation, *, evaluator: Version, flows: Version) -> str:
    """Deploy and update by the flows' version, and return the report's run, which the evaluator creates."""
    name = f"test-{at.mark}"
    deploy = f"from flows import report; print(report.to_deployment({name!r}).apply())"
    at.start(python=evaluator.bin / "python")
    deployment = flows.run(at, "python", "-c", deploy).split()[-1]
    at.deployments[deployment] = f"report/{name}"
    at.until(lambda: f"report/{name}" in evaluator.run(at, "assetflow", "consumers", "ls", "--json"))
    flows.run(at, "python", "-c", "from flows import produce; produce()")
    return at.run_of(deployment)["id"]


def test_flows_of_this_version_read_what_an_earlier_evaluator_sends(
    at: Installation, previous: Version, here: Version
) -> None:
    run = run_of_report(at, evaluator=previous, flows=here)
    told = here.run(at, "prefect", "flow-run", "execute", run)
    assert "consumed [{'rows': 3}]" in told
    assert at.http.get(f"/flow_runs/{run}").json()["state"]["type"] == "COMPLETED"


def test_a_worker_that_is_too_old_says_what_to_do(at: Installation, previous: Version, here: Version) -> None:
    run = run_of_report(at, evaluator=here, flows=previous)
    assert at.http.get(f"/flow_runs/{run}").json()["context"]["assetflow"]["version"] == 2
    told = previous.run(at, "prefect", "flow-run", "execute", run)
    assert "Update assetflow" in told
    assert at.http.get(f"/flow_runs/{run}").json()["state"]["type"] in ("FAILED", "CRASHED")
