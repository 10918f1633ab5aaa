"""Time in conditions on a real Prefect server: a wait that ends, and a deadline that automations can hear."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.timing import Deadline, Intake
from assetflow.prefect_io.names import DEADLINE_MISSED
from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation

pytestmark = [pytest.mark.long, pytest.mark.prefect]


@pytest.fixture
def here(prefect_here: PrefectServer, tmp_path: Path) -> Iterator[Installation]:
    made = Installation(prefect_here, tmp_path)
    yield made
    made.close()


def missed(here: Installation) -> list[dict[str, Any]]:
    now = datetime.now(UTC)
    body = {
        "filter": {
            "event": {"name": [DEADLINE_MISSED]},
            "occurred": {
                "since": (now - timedelta(hours=1)).isoformat(),
                "until": (now + timedelta(hours=1)).isoformat(),
            },
        },
        "limit": 50,
    }
    found = here.post("/events/filter", body)["events"]
    return [event for event in found if here.mark in event["resource"]["prefect.resource.name"]]


@pytest.mark.rule("9.8", "9.9")
def test_debounce_and_deadline(here: Installation) -> None:
    a, b = Asset(here.uri("a")), Asset(here.uri("b"))
    quiet = here.deploy("quiet", a, intake=Intake(debounce=timedelta(seconds=1)))
    late = here.deploy("late", a & b, deadline=Deadline(timedelta(seconds=1), then="run"))
    here.start()
    here.wait_for_consumers()
    here.update(a.uri)

    here.until(lambda: len(here.runs(quiet)) == 1 and len(here.runs(late)) == 1)

    assert here.runs(late)[0]["labels"]["assetflow.deadline"] == "true"
    here.until(lambda: len(missed(here)) == 1)
    (event,) = missed(here)
    assert event["payload"]["then"] == "run"
    assert event["payload"]["queued"] == 1
