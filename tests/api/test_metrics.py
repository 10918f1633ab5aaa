"""`/metrics`: what Prometheus reads is what the ledger says; `/health` and `/ready` where others look for them."""

import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import yaml
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families

from assetflow.api.app import create_app
from assetflow.api.requests import Backend
from assetflow.api.security import Access, Keys
from assetflow.ledger import Ledger
from assetflow.web import create_site
from tests.api.conftest import Api, MakeApi
from tests.api.serving import serving
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, deploy, event_id, update
from tests.ledger.read.test_ended_runs import ended

Numbers = dict[tuple[str, str], float]


def read(api: Api) -> Numbers:
    answer = api.get("/metrics").raise_for_status()
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, sample.labels.get("consumer") or sample.labels.get("watcher", "")): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


@asynccontextmanager
async def prefect_with_a_late_update() -> AsyncIterator[Any]:
    moment = (NOON + timedelta(minutes=4)).isoformat()
    late = {"id": str(event_id(99)), "event": "assetflow.asset.updated", "occurred": moment, "resource": {}}

    async def post(path: str, _body: object) -> Any:
        return [] if "artifacts" in path else {"events": [late], "next_page": None}

    yield SimpleNamespace(url="http://prefect/api", post=post)


def test_the_numbers_of_a_ledger(make_api: MakeApi, ledger: Ledger) -> None:
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS)
    deploy(ledger, "copy/nightly", ORDERS)
    update(ledger, ORDERS, 1)
    update(ledger, ORDERS, 2)
    (lost, _) = ledger.reader.decisions.find(consumer=2)
    ledger.writer.decisions.undeliverable(lost.id, "the deployment is gone", NOON)
    ledger.writer.events.refuse({}, "no update", None, "prefect", event_id(50), NOON)
    ledger.writer.ended_runs.add([ended(lost.deployment_id, 1)], NOON)
    now = NOON + timedelta(minutes=5)
    numbers = read(make_api(prefect=prefect_with_a_late_update, now=lambda: now))
    assert numbers["assetflow_events_recorded_total", ""] == 2
    assert numbers["assetflow_events_refused_total", ""] == 1
    assert numbers["assetflow_decisions_total", ""] == 2
    assert numbers["assetflow_decisions_undeliverable", ""] == 1
    assert numbers["assetflow_decisions_waiting", ""] == 1
    assert numbers["assetflow_decisions_oldest_waiting_seconds", ""] in (180, 240)
    assert numbers["assetflow_queued_events", "report/nightly"] == 2
    assert numbers["assetflow_queued_events", "copy/nightly"] == 0
    assert numbers["assetflow_failing", ""] == 1
    assert numbers["assetflow_runs_late", ""] == 0
    assert numbers["assetflow_evaluator_up", ""] == 0
    assert numbers["assetflow_prefect_up", ""] == 1
    assert numbers["assetflow_prefect_lag_updates", ""] == 1
    assert numbers["assetflow_prefect_lag_seconds", ""] == 60
    assert ("assetflow_launch_seconds_count", "") in numbers


@pytest.mark.parametrize("create", [create_app, create_site])
def test_health_needs_no_key_and_the_rest_does(ledger: Ledger, create: Callable[..., FastAPI]) -> None:
    """With pages too: a machine is told 401, not sent to the login."""
    with serving(create(Backend(ledger), Access(Keys("secret")))) as url, httpx.Client(base_url=url, timeout=60) as api:
        check_access(api)


def check_access(api: Api) -> None:
    assert api.get("/health").json() == {"status": "ok"}
    assert api.get("/ready").status_code == 401
    assert api.get("/metrics").status_code == 401
    shown = {"authorization": "Bearer secret"}
    assert api.get("/metrics", headers=shown).status_code == 200
    assert api.get("/ready", headers=shown).json() == api.get("/api/v1/ready", headers=shown).json()


MONITORING = Path(__file__).parents[2] / "deployments" / "monitoring"
BOARD = json.loads((MONITORING / "board.json").read_text())
RULES = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"][0]["rules"]
QUERIES = [each["expr"] for each in RULES] + [each["expr"] for panel in BOARD["panels"] for each in panel["targets"]]


def test_alerts_and_the_board_ask_for_metrics_that_there_are() -> None:
    page = (MONITORING.parents[1] / "docs" / "metrics.md").read_text()
    asked = {name.removesuffix("_bucket") for query in QUERIES for name in re.findall(r"assetflow_\w+", query)}
    assert asked <= set(re.findall(r"`(assetflow_\w+)", page))


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Debian's package prometheus")
@pytest.mark.parametrize("call", [("check", "rules", "alerts.yaml"), ("test", "rules", "alerts_test.yaml")])
def test_prometheus_takes_the_rules(call: tuple[str, ...]) -> None:
    done = subprocess.run(["promtool", *call], cwd=MONITORING, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
