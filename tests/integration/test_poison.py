"""An update that Prefect could not carry never reaches its flow runs, whichever way it comes in."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from assetflow import Asset
from tests.integration.installation import Installation, events_of

pytestmark = [pytest.mark.long, pytest.mark.prefect]

DEEP = json.loads("[" * 300 + "]" * 300)
POISON: dict[str, object] = {
    "integer": 2**64,
    "deep": DEEP,
    "surrogate": "caf\udce9",
    "number": float("nan"),
    "nul": "a\0b",
}


def artifact(uri: str, **changed: object) -> dict[str, Any]:
    """A hand-made artifact with one update of a URI."""
    event = {"id": str(uuid4()), "uri": uri, "occurred": datetime.now(UTC).isoformat()} | changed
    return {"type": "assetflow-update", "data": json.dumps({"recording": str(uuid4()), "events": [event]})}


@pytest.mark.rule("2.7")
def test_what_an_update_may_not_hold_is_refused_and_the_rest_goes_on(at_work: Installation) -> None:
    """Hand-made artifacts with each poison, in the extra and around it; then an update that starts its run."""
    uri = at_work.uri("poisoned")
    deployment = at_work.deploy("reader", Asset(uri))
    at_work.wait_for_consumers()
    for value in POISON.values():
        at_work.post("/artifacts/", artifact(uri, extra={"x": value}))
    at_work.post("/artifacts/", artifact(f"{uri}\0"))
    at_work.post("/artifacts/", artifact(uri, id={"no": "id"}))
    along = {"kind": POISON, "flow_run": {"id": str(uuid4()), "parameters": POISON}}
    at_work.post("/artifacts/", artifact(uri, metrics={"rows": float("nan"), "files": 3}, origin=along))

    run = at_work.run_of(deployment)
    (event,) = events_of(run)
    assert event["metrics"] == {"files": 3}
    assert event["origin"]["flow_run"]["parameters"]["integer"] == str(2**64)
    with at_work.reader() as ledger:
        refused = at_work.until(lambda: found if len(found := ledger.events.refused()) == len(POISON) + 2 else [])
    told = " ".join(each.reason for each in refused)
    assert "Error" not in told
    for words in ("extra.x is an integer beyond 64 bits", "50 levels", "U+DCE9", "NaN", "NUL", "U+0000", "not a UUID"):
        assert words in told

    scheduled = at_work.post("/deployments/get_scheduled_flow_runs", {"deployment_ids": [deployment]})
    assert [each["id"] for each in scheduled] == [run["id"]]
