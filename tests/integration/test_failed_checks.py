"""An evaluator tells Prefect of failed checks, once whatever dies. Contract 12.6."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, CheckResult, Origin, Recording
from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation

pytestmark = [pytest.mark.long, pytest.mark.prefect]


@pytest.fixture
def here(prefect_server: PrefectServer, tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(prefect_server, tmp_path)
    yield installation
    installation.close()


def told(here: Installation, uri: str) -> list[dict[str, Any]]:
    wanted = {"event": {"name": ["assetflow.check.failed"]}, "resource": {"id": [uri]}}
    return here.post("/events/filter", {"filter": wanted})["events"]


def test_rule_12_6_each_failed_check_is_one_event_though_the_evaluator_is_killed(here: Installation) -> None:
    asset = Asset(f"s3://checks/{here.mark}")
    failed = CheckResult("sane", "error", False, "sane", found=2)
    made = AssetEvent(uuid4(), asset, datetime.now(UTC), Origin("task"), checks=(failed,))
    here.start()
    here.task_recorded(Recording(uuid4(), (made,)))
    here.task_recorded(Recording(uuid4(), held_back=(replace(made, id=uuid4()),)))
    here.until(lambda: len(told(here, asset.uri)) == 2 or None)
    events = told(here, asset.uri)
    here.kill()
    here.settle()
    assert {each["id"] for each in told(here, asset.uri)} == {each["id"] for each in events}
    assert sorted(each["payload"]["held_back"] for each in events) == [False, True]
