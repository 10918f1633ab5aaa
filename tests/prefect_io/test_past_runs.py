"""Decisions are read back from the flow runs that they led to."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
import respx

from assetflow.core.freshness.records import Asked
from assetflow.core.rules.adoption import Decided
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin
from assetflow.core.values.keeping import Cause
from assetflow.core.wire import RunContext, events_to_text, run_context_to_json
from assetflow.prefect_io.names import DEADLINE_LABEL, DECISION_LABEL, PREDECESSOR_LABEL
from assetflow.prefect_io.open_runs import past_decisions
from assetflow.prefect_io.rest import prefect_api
from tests.environment.prefect_settings import prefect_at

URL = "http://prefect.test/api"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=1)
EARLIER = NOON - timedelta(hours=6)
ASKED = Asked("eager", (Cause("data", "s3://shop/orders", "monday"),), {"s3://shop/report": "2"}, {"a": None})
DEPLOYMENT = UUID("00000000-0000-4000-8000-000000000001")


def event() -> AssetEvent:
    return AssetEvent(uuid4(), Asset("s3://shop/orders"), NOON, Origin("api"))


def named(decision: UUID | None) -> dict[str, str]:
    return {DECISION_LABEL: str(decision)}


def run(ours: RunContext, **changed: Any) -> dict[str, Any]:
    given = {"id": str(uuid4()), "deployment_id": str(DEPLOYMENT), "created": NOON.isoformat()}
    return {**given, "labels": named(ours.decision), "context": run_context_to_json(ours), **changed}


async def read() -> list[list[Decided]]:
    """The decisions of each reading of Prefect's runs."""
    respx.get(f"{URL}/csrf-token").respond(422, json={"detail": "CSRF protection is disabled."})
    with prefect_at(URL):
        async with prefect_api() as api:
            return [[each async for each in reading] for reading in past_decisions(api, NOON)]


@respx.mock
async def test_decisions_are_read_with_what_they_consumed() -> None:
    orders, small, large, kept, later, damaged, of_opening, cooled = event(), *(uuid4() for _ in range(7))
    artifact = uuid4()
    runs = [
        run(RunContext(small, "report/daily", "monday", (orders,))),
        run(RunContext(large, "report/daily", None, None, artifact)),
        run(RunContext(kept, "core/daily", asked=ASKED), start_time=LATER.isoformat()),
        run(RunContext(later, "core/daily", asked=ASKED), labels={**named(later), PREDECESSOR_LABEL: str(kept)}),
        run(RunContext(damaged, "core/daily", asked=ASKED), labels={**named(damaged), PREDECESSOR_LABEL: "?"}),
        run(
            RunContext(of_opening, "report/daily", None, (orders,), made=NOON, opening=EARLIER),
            labels={**named(of_opening), DEADLINE_LABEL: "true"},
            created=LATER.isoformat(),
            expected_start_time=EARLIER.isoformat(),
        ),
        run(RunContext(cooled, "report/daily", None, (orders,)), expected_start_time=LATER.isoformat()),
        run(RunContext(uuid4(), "report/daily", "a backfill consumes nothing", ())),
        run(RunContext(uuid4(), "of a deployment that is gone", None, (orders,)), deployment_id=None),
        run(RunContext(uuid4(), "damaged", None, (orders,)), context={"assetflow": 7}),
        run(RunContext(None, "time run"), labels={}),
    ]
    asked = respx.post(f"{URL}/flow_runs/filter").respond(200, json=runs)
    of_artifact = respx.get(f"{URL}/artifacts/{artifact}").respond(200, json={"data": events_to_text([orders])})
    found = await read()
    times: dict[str, Any] = {"created": NOON, "starts": NOON}
    opened: dict[str, Any] = {**times, "opening": EARLIER, "by_deadline": True, "created": LATER, "starts": LATER}
    assert found[0] == [
        Decided(small, DEPLOYMENT, "monday", frozenset([orders.id]), NOON, **times),
        Decided(large, DEPLOYMENT, None, frozenset([orders.id]), NOON, **times),
        Decided(kept, DEPLOYMENT, None, frozenset(), NOON, ASKED, began=LATER, **times),
        Decided(later, DEPLOYMENT, None, frozenset(), NOON, replace(ASKED, predecessor=kept), **times),
        Decided(damaged, DEPLOYMENT, None, frozenset(), NOON, ASKED, **times),
        Decided(of_opening, DEPLOYMENT, None, frozenset([orders.id]), NOON, **opened),
        Decided(cooled, DEPLOYMENT, None, frozenset([orders.id]), NOON, created=NOON, starts=LATER),
    ]
    assert found == [found[0]] * 3
    assert asked.call_count == 3
    assert of_artifact.call_count == 1


DAMAGED = ["{", "7", [7], [{"id": "?"}], {"events": []}]
ODD_CONTEXTS: list[dict[str, Any]] = [
    {"decision": "?"},
    {"artifact": 7},
    {"tick": "yesterday"},
    {"asked": 7},
    {"asked": {}},
    {"version": 99},
    {"artifact": None},
]


@respx.mock
async def test_a_run_whose_events_are_damaged_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    orders, good = event(), uuid4()
    artifacts = [uuid4() for _ in DAMAGED]
    contexts = [run_context_to_json(RunContext(uuid4(), "report/daily", None, None, each)) for each in artifacts]
    for changed in ODD_CONTEXTS:
        whole = run_context_to_json(RunContext(uuid4(), "report/daily", None, None, artifacts[0]))["assetflow"]
        contexts.append({"assetflow": {**cast("dict[str, Any]", whole), **changed}})
    runs = [run(RunContext(uuid4(), "report/daily"), context=each) for each in contexts]
    runs.append(run(RunContext(good, "report/daily", None, (orders,))))
    respx.post(f"{URL}/flow_runs/filter").respond(200, json=runs)
    for artifact, data in zip(artifacts, DAMAGED, strict=True):
        respx.get(f"{URL}/artifacts/{artifact}").respond(200, json={"data": data})
    found = await read()
    decided = Decided(good, DEPLOYMENT, None, frozenset([orders.id]), NOON, created=NOON, starts=NOON)
    assert found == [[decided]] * 3
    assert len(caplog.messages) == len(runs) - 2
