"""Create the flow runs of timetables, Scheduled ahead of their time, each once under the id of its tick."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

from assetflow.core.rules.timers import tick_id
from assetflow.core.time.timetables import Tick
from assetflow.core.values.consumers import Automation, Consumer
from assetflow.core.wire import RunContext, run_context_to_json
from assetflow.prefect_io.flow_runs import FlowRuns
from assetflow.prefect_io.names import (
    CONSUMER_LABEL,
    KEY_PARAMETER,
    PARTITION_KEY_LABEL,
    PREFECT_TIME_TAG,
    TICK_LABEL,
    TIME_TAG,
)
from assetflow.prefect_io.rest import Json, PrefectApi

DELETED_AT_ONCE = 50
# The part of a filter by name: a run that waits for its retry has the same type.
_NOT_TAKEN = {"state": {"type": {"any_": ["SCHEDULED"]}, "name": {"any_": ["Scheduled", "Late"]}}}


class TimeRuns:
    """The runs of timetables on a Prefect server."""

    def __init__(self, api: PrefectApi, runs: FlowRuns) -> None:
        self._api = api
        self._runs = runs

    async def create(self, consumer: Consumer, tick: Tick, automation: Automation | None) -> UUID:
        """Create the run of a tick, or find the one that exists, and return its id.

        Raises:
            PrefectUnreachable: the run may have been created; a retry is safe.
            PrefectRefused: the deployment is gone, or cannot run as it is.
        """
        return await self._runs.make(consumer.deployment_id, time_run_request(consumer, tick), automation)

    async def withdraw(self, deployment_id: UUID, now: datetime) -> int:
        """Delete the runs of later times that no worker has taken, and return their number.

        Raises:
            PrefectUnreachable, PrefectRefused: some may be left; a retry is safe.
        """
        return await self._delete(_of_times(deployment_id, after_=now) | _NOT_TAKEN)

    async def skip_missed(self, deployment_id: UUID, now: datetime) -> int:
        """Delete the runs that no worker has taken and whose next time has passed, and return their number.

        Raises:
            PrefectUnreachable, PrefectRefused: some may be left; a retry is safe.
        """
        passed = {"flow_runs": _of_times(deployment_id, before_=now), "sort": "EXPECTED_START_TIME_DESC", "limit": 1}
        latest = cast("list[Json]", await self._api.post("/flow_runs/filter", passed))
        if not latest:
            return 0
        before = datetime.fromisoformat(str(latest[0]["expected_start_time"])) - timedelta(microseconds=1)
        return await self._delete(_of_times(deployment_id, before_=before) | _NOT_TAKEN)

    async def _delete(self, runs: Json) -> int:
        deleted, wanted = 0, {"flow_runs": runs, "limit": DELETED_AT_ONCE}
        while True:
            # Prefect finds and deletes them in one transaction, so that it does not delete a run that a worker took.
            answer = cast(Json, await self._api.post("/flow_runs/bulk_delete", wanted))
            found = len(answer["deleted"])
            deleted += found
            if found < DELETED_AT_ONCE:
                return deleted


def time_run_request(consumer: Consumer, tick: Tick) -> dict[str, Any]:
    """Return the body of create_flow_run for a tick."""
    timetable = consumer.schedule.timetable
    assert timetable is not None, "only consumers with a timetable have ticks"
    number, time = tick_id(consumer.deployment_id, tick.time), _text(tick.time)
    before = timetable.previous_before(tick.time)
    context = RunContext(
        decision=None,
        consumer=consumer.name,
        partition_key=tick.partition_key,
        tick=tick.time,
        previous_tick=None if before is None else before.time,
    )
    labels = {CONSUMER_LABEL: consumer.name, TICK_LABEL: time}
    request: dict[str, Any] = {
        "name": f"{tick.partition_key or time}-{str(number)[:6]}",
        "idempotency_key": str(number),
        "context": run_context_to_json(context),
        "labels": labels,
        "tags": ["assetflow", TIME_TAG, PREFECT_TIME_TAG],
        "state": {
            "type": "SCHEDULED",
            "name": "Scheduled",
            "message": f"Runs {timetable.describe()}: this one at {time}",
            "state_details": {"scheduled_time": tick.time.astimezone(UTC).isoformat()},
        },
    }
    if tick.partition_key is not None:
        labels[PARTITION_KEY_LABEL] = tick.partition_key
        # A flow whose timetable gives keys has this parameter, where a user sees the key, or gives another one.
        request["parameters"] = {KEY_PARAMETER: tick.partition_key}
    return request


def _of_times(deployment_id: UUID, **between: datetime) -> dict[str, Any]:
    return {
        "deployment_id": {"any_": [str(deployment_id)]},
        "tags": {"all_": [TIME_TAG]},
        "expected_start_time": {name: moment.astimezone(UTC).isoformat() for name, moment in between.items()},
    }


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
