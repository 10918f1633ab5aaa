"""How a flow run stands in Prefect now: its state with the message, and the end of its log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast
from uuid import UUID

from assetflow.core.values.addresses import without_passwords
from assetflow.prefect_io.open_runs import run_end, state_message
from assetflow.prefect_io.rest import Json, PrefectApi

# The lines of its log that explain a failure: about a traceback, and what stands before it.
LINES = 60
# Prefect's levels are those of Python's logging.
_WARNING, _ERROR = 30, 40


@dataclass(frozen=True)
class LogLine:
    """A line of a run's log, without passwords in addresses."""

    at: datetime
    level: int
    text: str

    @property
    def style(self) -> str:
        """How much the line matters: `error`, `warning` or ""."""
        return "error" if self.level >= _ERROR else "warning" if self.level >= _WARNING else ""


@dataclass(frozen=True)
class RunInPrefect:
    """A flow run as Prefect knows it.

    Attributes:
        state, message: the name of its newest state, and what Prefect or the flow said with it.
        has_failed: it ended, and did not complete: it failed or crashed.
        deployment_id: the deployment whose run it is; `None` if it has none.
        log: the end of its log, the oldest line first.
    """

    name: str
    state: str
    message: str
    has_failed: bool
    deployment_id: UUID | None
    log: Sequence[LogLine]


async def run_in_prefect(api: PrefectApi, run: UUID) -> RunInPrefect | None:
    """Return how a run stands, with the end of its log; `None` if Prefect does not know it.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    found = cast("Json | None", await api.get(f"/flow_runs/{run}"))
    if found is None:
        return None
    wanted = {"logs": {"flow_run_id": {"any_": [str(run)]}}, "sort": "TIMESTAMP_DESC", "limit": LINES}
    lines = cast("list[Json]", await api.post("/logs/filter", wanted))
    state = cast(Json, found.get("state") or {})
    deployment = found.get("deployment_id")
    end = run_end(str(found.get("state_type", "")), str(found.get("state_name", "")))
    return RunInPrefect(
        name=str(found.get("name", "")),
        state=str(found.get("state_name") or ""),
        message=without_passwords(state_message(state)),
        has_failed=end is not None and end.outcome in ("failed", "crashed"),
        deployment_id=None if deployment is None else UUID(str(deployment)),
        log=[_line(each) for each in reversed(lines)],
    )


def _line(data: Json) -> LogLine:
    text = without_passwords(str(data.get("message", "")))
    return LogLine(datetime.fromisoformat(str(data["timestamp"])), int(cast(int, data.get("level") or 0)), text)
