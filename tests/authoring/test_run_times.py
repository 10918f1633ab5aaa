"""What the flow run around the code tells an update: its data interval (contract 7.3) and its deployment."""

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect._internal.schemas.fields import CreatedBy
from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext

from assetflow.authoring import origin
from assetflow.authoring.origin import run_times
from assetflow.core.time.timetables import Timetable
from assetflow.core.wire.run_context import RunContext, run_context_to_json
from assetflow.prefect_io.rest import TaskApi
from assetflow.timetables import CronTriggerTimetable, PartitionedAtRuntime

TWO = datetime(2026, 1, 1, 14, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURLY = CronTriggerTimetable("@hourly")
SCHEDULE, OTHER = uuid4(), uuid4()


class Every:
    """A schedule of the deployment with times at multiples of a step."""

    def __init__(self, step: timedelta, number: UUID = SCHEDULE) -> None:
        self.step, self.id = step, number

    def last_until(self, moment: datetime) -> datetime:
        return moment - (moment - datetime(2026, 1, 1, tzinfo=UTC)) % self.step

    def before(self, time: datetime) -> datetime:
        return time - self.step

    def has(self, time: datetime) -> bool:
        return self.last_until(time) == time


def interval(
    schedules: Sequence[Any], timetable: Timetable | None = None, **run: Any
) -> tuple[datetime | None, datetime | None]:
    values: dict[str, Any] = {"flow_id": uuid4(), "deployment_id": uuid4(), "expected_start_time": TWO}
    times = run_times(FlowRun(**(values | run)), timetable, lambda: schedules)
    assert times.scheduled == TWO
    return times.start, times.end


def by_schedule(number: UUID = SCHEDULE) -> dict[str, Any]:
    return {"auto_scheduled": True, "created_by": CreatedBy(id=number, type="SCHEDULE", display_value="x")}


BOTH = [Every(HOUR), Every(HOUR * 7, OTHER)]


def test_a_run_of_a_schedule_has_its_previous_and_its_own_time() -> None:
    assert interval([Every(HOUR)], **by_schedule()) == (TWO - HOUR, TWO)
    assert interval(BOTH, **by_schedule()) == (TWO - HOUR, TWO)
    assert interval(BOTH, **by_schedule(OTHER)) == (TWO - 7 * HOUR, TWO)
    assert interval(BOTH, HOURLY, **by_schedule(OTHER)) == (TWO - 7 * HOUR, TWO)
    assert interval([Every(HOUR)], start_time=TWO + 5 * HOUR, **by_schedule()) == (TWO - HOUR, TWO)


@pytest.mark.rule("7.3")
@pytest.mark.parametrize(("start", "end"), [(TWO, TWO), (TWO + HOUR / 2, TWO), (TWO + HOUR, TWO + HOUR), (None, TWO)])
def test_a_run_by_hand_has_the_last_complete_interval(start: datetime | None, end: datetime) -> None:
    assert interval([Every(HOUR)], start_time=start) == (end - HOUR, end)
    assert interval([], HOURLY, start_time=start) == (end - HOUR, end)
    assert interval([Every(HOUR)], PartitionedAtRuntime(), start_time=start) == (end - HOUR, end)
    person = CreatedBy(id=uuid4(), type="USER", display_value="jane")
    assert interval([Every(HOUR)], start_time=start, created_by=person) == (end - HOUR, end)


def test_other_runs_have_no_interval() -> None:
    nothing = (None, None)
    assert interval([]) == nothing
    assert interval(BOTH) == nothing
    assert interval([Every(HOUR)], HOURLY) == nothing
    assert interval([Every(HOUR)], deployment_id=None) == nothing
    decided = run_context_to_json(RunContext(uuid4(), "report/x"))
    assert interval([Every(HOUR)], context=decided) == nothing
    automation = CreatedBy(id=uuid4(), type="AUTOMATION", display_value="x")
    assert interval([Every(HOUR)], created_by=automation) == nothing


@pytest.mark.parametrize("below", [0, 1], ids=["in the run", "in a flow that it calls"])
def test_a_run_of_a_decision_knows_the_name_of_its_deployment(monkeypatch: pytest.MonkeyPatch, below: int) -> None:
    monkeypatch.setattr(TaskApi, "connect", lambda **_: pytest.fail("Prefect was asked"))
    context = run_context_to_json(RunContext(uuid4(), "report/nightly"))
    started = FlowRun(flow_id=uuid4(), deployment_id=uuid4(), context=context)
    runs = [started, *(FlowRun(flow_id=uuid4()) for _ in range(below))]
    with ExitStack() as stack:
        for run in runs:
            stack.enter_context(FlowRunContext.model_construct(flow_run=run, flow=None, parameters={}))
        found = origin.current_origin("task").flow_run
    assert found is not None
    assert (found.id, found.deployment_id) == (runs[-1].id, started.deployment_id)
    assert found.deployment_name == "nightly"
