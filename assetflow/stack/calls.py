"""The stack's calls to its Prefect server: create a work pool, start a deployment, list runs and recordings."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, cast
from uuid import UUID

from pydantic import AliasPath, Field, TypeAdapter

from assetflow.errors import StackFailed, TimedOut
from assetflow.prefect_io.rest import TaskApi
from assetflow.worker import POOL_TYPE

ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
PAGE = 200
POLL_SECONDS = 0.3
SECONDS_TO_ANSWER = 30.0
# Each flow run keeps two websockets open, and a plain Prefect server on SQLite lets 100 connections in at a time.
RUNS_AT_ONCE = 40
# A Prefect server on SQLite is sometimes busy, and then answers 503; a waiting writer may hold it up for SQLite's own
# time limit of 60 s.
PATIENCE_SECONDS = 180.0
Json = Mapping[str, object]


@dataclass(frozen=True)
class FlowRun:
    """The parts of a flow run that the demo shows, as Prefect sends them; times in UTC.

    Attributes:
        due: when it is to start.
    """

    id: UUID
    name: str
    deployment_id: UUID | None
    state: Annotated[str, Field(validation_alias="state_name")]
    state_type: str
    created: datetime
    started: Annotated[datetime | None, Field(validation_alias="start_time")]
    ended: Annotated[datetime | None, Field(validation_alias="end_time")]
    due: Annotated[datetime | None, Field(validation_alias="expected_start_time")] = None
    decision: Annotated[UUID | None, Field(validation_alias=AliasPath("labels", "assetflow.decision"))] = None

    @property
    def has_ended(self) -> bool:
        return self.state_type in ENDED

    @property
    def is_for_later(self) -> bool:
        return self.state_type == "SCHEDULED" and self.due is not None and self.due > datetime.now(UTC)


_RUNS = TypeAdapter(list[FlowRun])


class PrefectCalls(TaskApi):
    """A few calls of Prefect's REST API on one server.

    Raises (all methods):
        PrefectUnreachable: the server does not answer, even after `patience` seconds of retries.
        PrefectRefused: the server answers with an error that a retry does not change.
    """

    def __init__(self, api_url: str, *, patience: float = PATIENCE_SECONDS) -> None:
        super().__init__(api_url, timeout=SECONDS_TO_ANSWER, patience=patience)

    def make_pool(self, name: str) -> None:
        """Create a work pool for warm workers, unless it exists, with a limit that a server on SQLite can bear.

        Its worker fills in the job template.

        Raises:
            PrefectUnauthorized: also if the name is one of Prefect's own.
        """
        # A name that Prefect refuses may not be part of a path.
        if not self.post("/work_pools/filter", {"work_pools": {"name": {"any_": [name]}}}):
            self.post("/work_pools/", {"name": name, "type": POOL_TYPE, "concurrency_limit": RUNS_AT_ONCE})

    def start(self, deployment: str, **parameters: object) -> UUID:
        """Start a run of a deployment, named `flow/deployment`, as the Run button does."""
        from assetflow.operations.runs_by_hand import RunWanted, run_request

        flow, name = deployment.split("/")
        found = cast(Json, self.get(f"/deployments/name/{flow}/{name}"))
        path, body = run_request(UUID(str(found["id"])), RunWanted(parameters))
        run = cast(Json, self.post(path, body))
        return UUID(str(run["id"]))

    def deployments(self) -> dict[tuple[str, str], str]:
        """Return the names of all deployments as flow/deployment, by entrypoint and deployment name.

        Of a flow that has another name now, the newest deployment counts.
        """
        # Somebody may deploy meanwhile: a flow is made before its deployments, so ask for these first.
        deployments = sorted(self._pages("/deployments/filter", {}), key=lambda each: str(each["created"]))
        flows = {flow["id"]: flow["name"] for flow in self._pages("/flows/filter", {})}
        return {
            (str(each["entrypoint"]), str(each["name"])): f"{flows[each['flow_id']]}/{each['name']}"
            for each in deployments
            if each["flow_id"] in flows
        }

    def flow_runs(self) -> list[FlowRun]:
        """Return all flow runs but those that are scheduled for later, oldest first."""
        found = _RUNS.validate_python([*self._pages("/flow_runs/filter", {})])
        return sorted((each for each in found if not each.is_for_later), key=lambda run: run.created)

    def recordings(self) -> list[frozenset[UUID]]:
        """Return, for each recording of updates that is kept as an artifact, the ids of which the ledger has one."""
        from assetflow.prefect_io.recordings import ids_in_artifact

        found = self._pages("/artifacts/filter", {"artifacts": {"type": {"any_": ["assetflow-update"]}}})
        return [ids[1] for artifact in found if (ids := ids_in_artifact(artifact)) is not None]

    def wait_for_run(self, run: UUID, seconds: float) -> None:
        """Wait until a flow run has completed.

        Raises:
            StackFailed: the run has ended otherwise.
            TimedOut: the run has not ended in that time.
        """
        found = self.wait_for_end(run, seconds)
        if found["state_type"] != "COMPLETED":
            said = cast("dict[str, object]", found.get("state") or {}).get("message") or "without a message"
            raise StackFailed(
                f"flow run {found['name']} ended as {found['state_name']}: {said}",
                fix="Read what it said in worker.log, beside the other logs of the stack",
            )

    def wait_for_end(self, run: UUID, seconds: float) -> Json:
        """Wait until a flow run has ended, and return it.

        Raises:
            TimedOut: the run has not ended in that time.
        """
        end = time.monotonic() + seconds
        while (found := cast(Json, self.get(f"/flow_runs/{run}")))["state_type"] not in ENDED:
            if time.monotonic() > end:
                raise TimedOut(f"flow run {run} has not ended after {seconds:.0f} s", fix="Read its logs in Prefect")
            time.sleep(POLL_SECONDS)
        return found

    def _pages(self, path: str, body: dict[str, object]) -> Iterator[Json]:
        offset = 0
        while True:
            page = cast("list[Json]", self.post(path, body | {"limit": PAGE, "offset": offset}))
            yield from page
            if len(page) < PAGE:
                return
            offset += PAGE


def runs_of(runs: Iterable[FlowRun], decision: UUID) -> list[FlowRun]:
    """Return the runs that a decision led to: exactly one, if all is well. Contract 4.6."""
    return [run for run in runs if run.decision == decision]
