"""Create the flow runs of timetables, Scheduled ahead of their time, each once under the id of its tick."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from assetflow.core.codec import RunContext, run_context_to_json
from assetflow.core.consumers import Automation, Consumer
from assetflow.core.time.timers import tick_id
from assetflow.core.time.timetables import Tick
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
        deleted = 0
        while True:
            # Prefect finds and deletes them in one transaction, so that it does not delete a run that a worker took.
            answer = cast(Json, await self._api.post("/flow_runs/bulk_delete", _upcoming(deployment_id, now)))
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


def _upcoming(deployment_id: UUID, now: datetime) -> dict[str, Any]:
    return {
        "flow_runs": {
            "deployment_id": {"any_": [str(deployment_id)]},
            "tags": {"all_": [TIME_TAG]},
            # Filter by name: a run that waits for its retry has the same type.
            "state": {"type": {"any_": ["SCHEDULED"]}, "name": {"any_": ["Scheduled"]}},
            "expected_start_time": {"after_": now.astimezone(UTC).isoformat()},
        },
        "limit": DELETED_AT_ONCE,
    }


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
