"""Prefect's own asset events, in and out, on a real server: each update counts once. Contract 2.9, 2.10."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceTaskRun
from assetflow.ledger.records import EventFilter
from assetflow.prefect_io.automations import deployment_triggers
from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation

pytestmark = [pytest.mark.long, pytest.mark.prefect]

PLAIN = Path(__file__).with_name("materializing.py")


@pytest.fixture(scope="module")
def here(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An evaluator that tells Prefect of updates in its own words."""
    installation = Installation(prefect_server, tmp_path_factory.mktemp("evaluator"))
    installation.settings = {"ASSETFLOW_NATIVE_EVENTS": "true"}
    installation.start()
    yield installation
    installation.close()


def materialize(here: Installation, *arguments: str) -> int:
    """Run plain Prefect in a process of its own."""
    return subprocess.run([sys.executable, str(PLAIN), *arguments], env=here.server.env, check=False).returncode


def update(here: Installation, asset: Asset) -> None:
    """Leave what a task of assetflow leaves."""
    origin = Origin("task", SourceTaskRun(uuid4()))
    here.task_recorded(Recording(uuid4(), (AssetEvent(uuid4(), asset, datetime.now(UTC), origin),)))


def told(here: Installation, asset: Asset, *names: str) -> list[dict[str, Any]]:
    """The events of an asset in Prefect's log."""
    wanted = {"event": {"name": list(names)}, "resource": {"id": [asset.uri]}}
    return here.post("/events/filter", {"filter": wanted})["events"]


def automate(here: Installation, asset: Asset) -> str:
    """A deployment that Prefect runs by `deployment_triggers`; its id."""
    flow = here.post("/flows/", {"name": f"plain-{here.mark}"})["id"]
    name = asset.uri.rpartition("/")[2]
    deployment: str = here.post("/deployments/", {"name": name, "flow_id": flow})["id"]
    here.deployments[deployment] = f"plain-{here.mark}/{name}"
    (trigger,) = deployment_triggers(asset)
    action = {"type": "run-deployment", "source": "selected", "deployment_id": deployment}
    shown = trigger.model_dump(mode="json", exclude={"name", "job_variables", "parameters", "schedule_after"})
    here.post("/automations/", {"name": name, "trigger": shown, "actions": [action]})
    return deployment


def recorded(installation: Installation, *assets: Asset) -> list[list[AssetEvent]]:
    """The updates of each asset in the ledger of an installation."""
    with installation.reader() as ledger:
        return [list(ledger.events.find(EventFilter(uri=asset.uri))) for asset in assets]


@pytest.mark.rule("2.10")
def test_each_update_counts_once_in_both_directions(here: Installation, tmp_path: Path) -> None:
    began = datetime.now(UTC)
    assets = [Asset(f"s3://native/{name}-{here.mark}") for name in ("ours", "theirs", "posted")]
    ours, theirs, posted = assets
    consumers = [here.deploy(asset.uri.rpartition("/")[2], asset) for asset in assets]
    here.wait_for_consumers()
    triggered = [automate(here, asset) for asset in assets]
    update(here, ours)
    here.update(posted.uri)
    assert materialize(here, theirs.uri, ours.uri) == 0
    for deployment in (*consumers, *triggered):
        here.until(lambda deployment=deployment: here.runs(deployment))
    succeeded = "prefect.asset.materialization.succeeded"
    (copy,) = here.until(lambda: told(here, ours, succeeded))
    assert "assetflow.recording" in copy["resource"]
    (told_by_prefect,) = here.until(lambda: told(here, theirs, succeeded))
    assert "assetflow.recording" not in told_by_prefect["resource"]
    here.settle()
    assert [len(here.runs(each)) for each in (*consumers, *triggered)] == [1] * 6
    events = recorded(here, *assets)
    assert [len(found) for found in events] == [1, 1, 1]
    assert events[1][0].origin.by == "dbt"
    # Another installation on this server takes it over, and reads what this one posted.
    other = Installation(here.server, tmp_path)
    other.settle("--since", began.isoformat(), seconds=120)
    assert [[each.id for each in found] for found in recorded(other, *assets)] == [
        [each.id for each in found] for found in events
    ]
    assert [len(here.runs(each)) for each in (*consumers, *triggered)] == [1] * 6
    other.close()
