"""Flow runs as Prefect tells of them: their states, their ends, and those that wait for a worker."""

from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from assetflow.core.rules.ended_runs import RunChange, RunEnd, RunGoingOn
from assetflow.prefect_io.names import DECISION_LABEL, TICK_LABEL
from assetflow.prefect_io.open_runs import OpenRuns, open_run, run_change
from assetflow.prefect_io.rest import PrefectApi

RUN, DEPLOYMENT, DECISION = UUID(int=1), UUID(int=2), UUID(int=3)
AT = datetime(2026, 11, 23, 12, tzinfo=UTC)
CREATED, DUE, BEGAN = AT.replace(hour=9), AT.replace(hour=10), AT.replace(hour=11)


def state_event(resource: str, kind: str, name: str) -> dict[str, Any]:
    labels = {
        "prefect.state-type": kind,
        "prefect.state-name": name,
        "prefect.state-timestamp": AT.isoformat(),
        "prefect.run-count": "1",
    }
    return {
        "event": f"prefect.{resource}.{name}",
        "resource": {"prefect.resource.id": f"prefect.{resource}", **labels},
        "related": [{"prefect.resource.id": f"prefect.deployment.{DEPLOYMENT}", "prefect.resource.role": "deployment"}],
    }


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        ("PENDING", "Pending", RunChange(RUN, DEPLOYMENT)),
        ("RUNNING", "Running", RunChange(RUN, DEPLOYMENT, began=AT)),
        ("COMPLETED", "Skipped", RunChange(RUN, DEPLOYMENT, end=RunEnd("Skipped", "completed", AT))),
        ("CRASHED", "Crashed", RunChange(RUN, DEPLOYMENT, end=RunEnd("Crashed", "crashed", AT))),
        ("FAILED", "TimedOut", RunChange(RUN, DEPLOYMENT, end=RunEnd("TimedOut", "failed", AT))),
        ("FAILED", "Bad rows", RunChange(RUN, DEPLOYMENT, end=RunEnd("Failed", "failed", AT))),
        ("SCHEDULED", "Late", None),
        ("PAUSED", "Paused", None),
    ],
)
def test_8_6_an_event_tells_of_a_begin_or_an_end(kind: str, name: str, change: RunChange | None) -> None:
    assert run_change(state_event(f"flow-run.{RUN}", kind, name)) == change


@pytest.mark.parametrize(
    ("before", "kind", "change"),
    [
        ("FAILED", "SCHEDULED", RunChange(RUN, DEPLOYMENT, retried=AT)),
        ("CRASHED", "PENDING", RunChange(RUN, DEPLOYMENT, retried=AT)),
        ("CANCELLED", "PAUSED", RunChange(RUN, DEPLOYMENT, retried=AT)),
        ("FAILED", "COMPLETED", RunChange(RUN, DEPLOYMENT, end=RunEnd("Any", "completed", AT), anew=True)),
        ("RUNNING", "SCHEDULED", None),
    ],
)
def test_4_7_an_event_tells_that_a_run_leaves_its_end_state(before: str, kind: str, change: RunChange | None) -> None:
    event = state_event(f"flow-run.{RUN}", kind, "Any")
    event["payload"] = {"intended": {"from": before, "to": kind}}
    assert run_change(event) == change


def answer(**given: Any) -> dict[str, Any]:
    return {
        "id": str(RUN),
        "deployment_id": str(DEPLOYMENT),
        "state_type": "PENDING",
        "created": CREATED.isoformat(),
        "expected_start_time": DUE.isoformat(),
        **given,
    }


BY_HAND = RunGoingOn(RUN, DEPLOYMENT, None, None, CREATED, by_time=False)


@pytest.mark.parametrize(
    ("given", "run"),
    [
        ({}, BY_HAND),
        ({"state_type": "PAUSED"}, BY_HAND),
        ({"parameters": {"partition_key": "k"}}, BY_HAND._replace(partition_key="k")),
        ({"parameters": {"partition_key": 7}}, BY_HAND),
        ({"state_type": "RUNNING", "start_time": BEGAN.isoformat()}, BY_HAND._replace(began=BEGAN)),
        ({"labels": {DECISION_LABEL: str(DECISION)}}, BY_HAND._replace(decision=DECISION)),
        ({"labels": {DECISION_LABEL: "?"}}, BY_HAND),
        ({"labels": {TICK_LABEL: "2026"}}, BY_HAND._replace(asked=DUE, by_time=True)),
        ({"auto_scheduled": True}, BY_HAND._replace(asked=DUE, by_time=True)),
        ({"state_type": "SCHEDULED"}, None),
        ({"state_type": "COMPLETED"}, None),
        ({"deployment_id": None}, None),
    ],
)
def test_8_6_a_run_goes_on_from_pending_to_its_end(given: dict[str, Any], run: RunGoingOn | None) -> None:
    assert open_run(answer(**given)) == run


class Events:
    """A Prefect server's stored events, each with the state before."""

    def __init__(self, *before: str) -> None:
        self.asked: list[Any] = []
        self._events = [
            state_event(f"flow-run.{UUID(int=number)}", "COMPLETED", "Completed")
            | {"id": str(uuid4()), "occurred": AT.isoformat(), "payload": {"intended": {"from": state}}}
            for number, state in enumerate(before, start=1)
        ]

    async def post(self, path: str, body: Any) -> Any:
        self.asked.append((path, body["filter"]["event"]["name"]))
        return {"events": self._events, "total": len(self._events), "next_page": None}


async def test_4_7_ends_that_took_the_place_of_another_one_are_in_the_log() -> None:
    events = Events("RUNNING", "FAILED")
    found = [each async for each in OpenRuns(cast(PrefectApi, events)).ended_anew(BEGAN)]
    assert found == [RunChange(UUID(int=2), DEPLOYMENT, end=RunEnd("Completed", "completed", AT), anew=True)]
    names = ["Completed", "Failed", "Cancelled", "Crashed"]
    assert events.asked == [("/events/filter", [f"prefect.flow-run.{name}" for name in names])]


class EndedRuns:
    """A Prefect server's flow runs that have ended: by the time of their first end, and one by its id."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def post(self, _path: str, body: Any) -> Any:
        self.asked.append(body["flow_runs"])
        state = {"id": str(uuid4()), "timestamp": AT.isoformat(), "message": "set by hand"}
        of = {"id": str(RUN if "id" in body["flow_runs"] else DECISION), "state_type": "COMPLETED"}
        return [answer(**of, state_name="Completed", state=state)]


async def test_4_8_a_run_that_ended_anew_is_asked_for_by_its_id() -> None:
    runs = EndedRuns()
    open_runs = OpenRuns(cast(PrefectApi, runs))
    assert [each.flow_run_id for each in await open_runs.ended(BEGAN)] == [DECISION]
    found = await open_runs.ended(BEGAN, [RUN])
    assert {each.flow_run_id for each in found} == {RUN, DECISION}
    assert [sorted(each) for each in runs.asked] == [["end_time", "state"], ["end_time", "state"], ["id", "state"]]
