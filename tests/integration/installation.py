"""A Prefect server with deployments, and an evaluator as a process of its own that can be killed."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Reader
from assetflow.prefect_io.recordings import recording_to_artifact, recording_to_prefect_events
from tests.environment.posting import posted_update
from tests.environment.prefect_server import PrefectServer
from tests.environment.waiting import until

T = TypeVar("T")

SECONDS = 45.0


class Installation:
    """One ledger on one server. URIs and names that it makes are its own, whatever else the server holds."""

    def __init__(self, server: PrefectServer, home: Path) -> None:
        self.server = server
        self.home = home
        self.mark = uuid4().hex[:8]
        self.http = server.http()
        self.deployments: dict[str, str] = {}
        self.settings: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def uri(self, name: str) -> str:
        return f"{name}-{self.mark}"

    def deploy(self, name: str, schedule: object, *, produces: tuple[Asset, ...] = (), **options: Any) -> str:
        """A deployment with this schedule; its id."""
        return self.deploy_declared(name, FlowDeclaration(ConsumerOptions(to_schedule(schedule), **options), produces))

    def deploy_declared(self, name: str, declaration: FlowDeclaration) -> str:
        """A deployment with this declaration, or the same one with another; its id."""
        text = declaration_to_text(declaration)
        parameter = {"x-assetflow": text, "default": None, "title": "triggering_asset_events"}
        body = {
            "name": name,
            "flow_id": self.post("/flows/", {"name": f"consumer-{self.mark}"})["id"],
            "enforce_parameter_schema": True,
            "parameter_openapi_schema": {"type": "object", "properties": {"triggering_asset_events": parameter}},
        }
        number = self.post("/deployments/", body)["id"]
        self.deployments[number] = f"consumer-{self.mark}/{name}"
        return number

    def rename(self) -> None:
        """Other names than before, for the next test on the same evaluator."""
        self.mark = uuid4().hex[:8]

    def remove_deployments(self) -> None:
        for deployment in self.deployments:
            self.http.delete(f"/deployments/{deployment}")
        self.deployments.clear()

    def wait_for_consumers(self) -> None:
        """Return when the evaluator knows what is deployed, and Prefect shows it."""
        with self.reader() as ledger:
            self.until(lambda: set(self.deployments.values()) <= _shown(ledger))

    def start(
        self, *arguments: str, crash_at: str = "", ready: bool = True, python: Path | str = sys.executable
    ) -> subprocess.Popen[bytes]:
        """`assetflow evaluator start` in the environment of a Python, and return when it is ready."""
        env = self.server.env | {"ASSETFLOW_HOME": str(self.home), "ASSETFLOW_CRASH_AT": crash_at} | self.settings
        command = [str(python), "-m", "assetflow", "evaluator", "start", "--take-over", *arguments]
        with (self.home / "evaluator.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.home, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        if ready:
            self.until(self._is_ready)
        return self._process

    def begin(self, *arguments: str, **given: Any) -> subprocess.Popen[bytes]:
        """Start an evaluator, and return when it knows what is deployed."""
        process = self.start(*arguments, **given)
        self.wait_for_consumers()
        return process

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def crashed(self) -> None:
        """Return when the evaluator has killed itself."""
        assert self._process is not None
        assert self._process.wait(SECONDS) == -9

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(20)
        self.remove_deployments()
        self.http.close()

    def update(self, uri: str, *, id: UUID | None = None, **payload: Any) -> None:  # noqa: A002 (Prefect's word)
        """An update, posted to Prefect by somebody who has nothing but HTTP."""
        self.post("/events", [posted_update(uri, datetime.now(UTC), **payload) | {"id": str(id or uuid4())}])

    def task_recorded(self, recording: Recording, *, events: bool = True) -> None:
        """What a task leaves: the artifact, and then, if the websocket is to tell of it, the events."""
        self.post("/artifacts/", recording_to_artifact(recording))
        if events:
            self.post("/events", recording_to_prefect_events(recording))

    def runs(self, deployment: str) -> list[dict[str, Any]]:
        """The runs of a deployment, oldest first."""
        body = {"flow_runs": {"deployment_id": {"any_": [deployment]}}, "sort": "EXPECTED_START_TIME_ASC"}
        return self.post("/flow_runs/filter", body)

    def run_of(self, deployment: str) -> dict[str, Any]:
        """The one run of a deployment, as soon as it is there."""
        self.until(lambda: self.runs(deployment))
        (run,) = self.runs(deployment)
        return run

    def notes(self, run: str) -> list[dict[str, Any]]:
        """What the page of a run says of why it ran."""
        wanted = {"flow_run_id": {"any_": [run]}, "type": {"any_": ["markdown"]}}
        return self.post("/artifacts/filter", {"artifacts": wanted})

    def settle(self, *arguments: str, seconds: float = SECONDS) -> None:
        """Work off what is left, with an evaluator that ends when nothing waits."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(20)
        assert self.start("--once", *arguments, ready=False).wait(seconds) == 0, self.log

    def post(self, path: str, body: Any) -> Any:
        answer = self.http.post(path, json=body).raise_for_status()
        return answer.json() if answer.content else None

    @property
    def log(self) -> str:
        return (self.home / "evaluator.log").read_text()

    def reader(self) -> Reader:
        return Reader.open(self.home / "ledger.db")

    def until(self, condition: Callable[[], T | None], seconds: float = SECONDS) -> T:
        return until(condition, seconds=seconds, told=lambda: f"the evaluator says:\n{self.log}")

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log
        return (self.home / "evaluator.json").exists()


def recording(*uris: str, keys: Iterable[str | None] = (None,)) -> Recording:
    """A task's updates of these assets, for each key."""
    now = datetime.now(UTC)
    pairs = [(uri, key) for uri in uris for key in keys]
    events = (AssetEvent(uuid4(), Asset(uri), now, Origin("task"), partition_key=key) for uri, key in pairs)
    return Recording(uuid4(), tuple(events))


def _shown(ledger: Reader) -> set[str]:
    return {each.consumer.name for each in ledger.consumers.all() if each.automation_id is not None}


def events_of(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a run consumed, from its context."""
    events = run["context"]["assetflow"]["events"]
    return json.loads(events) if events else []
