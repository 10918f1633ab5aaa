"""What the stack asks of its Prefect server: make the work pool, start a deployment, look at runs and recordings."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import cast
from uuid import UUID, uuid4

import httpx

from assetflow.errors import PrefectRefused, PrefectUnreachable, TimedOut

ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
PAGE = 200
POLL_SECONDS = 0.3
# A Prefect on SQLite is busy for moments; it answers 503 then.
PATIENCE_SECONDS = 60.0
BUSY = (429, 502, 503, 504)


@dataclass(frozen=True)
class FlowRun:
    """A flow run as far as the demo tells of it; times in UTC."""

    id: UUID
    name: str
    deployment_id: UUID | None
    state: str
    state_type: str
    decision: UUID | None
    created: datetime
    started: datetime | None
    ended: datetime | None

    @property
    def has_ended(self) -> bool:
        return self.state_type in ENDED


class PrefectCalls:
    """A few calls of Prefect's REST API on one server.

    Raises (all methods):
        PrefectUnreachable: the server does not answer, also not after a minute of asking again.
        PrefectRefused: it answers with an error that stays.
    """

    def __init__(self, api_url: str, *, patience: float = PATIENCE_SECONDS) -> None:
        self._client = httpx.Client(base_url=api_url, timeout=30)
        self._patience = patience

    def __enter__(self) -> PrefectCalls:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def make_pool(self, name: str) -> None:
        """Make a work pool for processes, unless it is there; its worker completes it."""
        try:
            self._ask("POST", "/work_pools/", {"name": name, "type": "process"})
        except PrefectRefused:
            self._ask("GET", f"/work_pools/{name}")

    def start(self, deployment: str, **parameters: object) -> UUID:
        """Start a run of a deployment, as pressing Run does; `deployment` is `flow/deployment`."""
        flow, name = deployment.split("/")
        found = self._ask("GET", f"/deployments/name/{flow}/{name}")
        # With a key, asking again after an answer that was lost starts nothing twice.
        body: dict[str, object] = {
            "state": {"type": "SCHEDULED"},
            "idempotency_key": str(uuid4()),
            "parameters": parameters,
        }
        run = self._ask("POST", f"/deployments/{found['id']}/create_flow_run", body)
        return UUID(str(run["id"]))

    def flow_runs(self) -> list[FlowRun]:
        """All flow runs, oldest first."""
        return sorted(map(_flow_run, self._pages("/flow_runs/filter", {})), key=lambda run: run.created)

    def recordings(self) -> set[UUID]:
        """The ids of all recordings that are kept as artifacts."""
        from assetflow.prefect_io.recordings import recording_from_artifact

        found = self._pages("/artifacts/filter", {"artifacts": {"type": {"any_": ["assetflow-update"]}}})
        return {recording_from_artifact(artifact).id for artifact in found}

    def wait_for_run(self, run: UUID, seconds: float) -> None:
        """Wait until a flow run has ended.

        Raises:
            TimedOut: it has not.
        """
        end = time.monotonic() + seconds
        while self._ask("GET", f"/flow_runs/{run}")["state_type"] not in ENDED:
            if time.monotonic() > end:
                raise TimedOut(f"flow run {run} has not ended after {seconds:.0f} s", fix="Look at its logs in Prefect")
            time.sleep(POLL_SECONDS)

    def _pages(self, path: str, body: dict[str, object]) -> Iterator[dict[str, object]]:
        offset = 0
        while True:
            page = cast("list[dict[str, object]]", self._ask("POST", path, body | {"limit": PAGE, "offset": offset}))
            yield from page
            if len(page) < PAGE:
                return
            offset += PAGE

    def _ask(self, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, object]:
        end = time.monotonic() + self._patience
        while True:
            try:
                return self._ask_once(method, path, body)
            except PrefectUnreachable:
                if time.monotonic() > end:
                    raise
            time.sleep(POLL_SECONDS)

    def _ask_once(self, method: str, path: str, body: dict[str, object] | None) -> dict[str, object]:
        where = str(self._client.base_url)
        try:
            answer = self._client.request(method, path, json=body)
        except httpx.TransportError as error:
            raise PrefectUnreachable(
                f"Prefect does not answer ({type(error).__name__})", where=where, fix="Read the server's log"
            ) from error
        if answer.status_code in BUSY:
            raise PrefectUnreachable(f"Prefect answers {answer.status_code} to {method} {path}", where=where)
        if not answer.is_success:
            raise PrefectRefused(f"Prefect answers {answer.status_code} to {method} {path}", where=where)
        return cast("dict[str, object]", answer.json())


def _flow_run(data: dict[str, object]) -> FlowRun:
    labels = cast("dict[str, object]", data.get("labels") or {})
    decision = labels.get("assetflow.decision")
    return FlowRun(
        id=UUID(str(data["id"])),
        name=str(data["name"]),
        deployment_id=UUID(str(data["deployment_id"])) if data.get("deployment_id") else None,
        state=str(data["state_name"]),
        state_type=str(data["state_type"]),
        decision=UUID(str(decision)) if decision else None,
        created=datetime.fromisoformat(str(data["created"])),
        started=_moment(data.get("start_time")),
        ended=_moment(data.get("end_time")),
    )


def _moment(value: object) -> datetime | None:
    return datetime.fromisoformat(str(value)) if value else None


def runs_of(runs: Iterable[FlowRun], decision: UUID) -> list[FlowRun]:
    """The runs that a decision led to; exactly one, if all is well (4.6)."""
    return [run for run in runs if run.decision == decision]
