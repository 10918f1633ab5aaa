"""A scenario carried out live: deployments, events posted to Prefect, switches of automations, a real evaluator."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

import httpx

from assetflow.core.simulate.steps import EventStep, Task
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.outcome import TaskOutcome
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.errors import AssetflowError
from assetflow.evaluator.process.evaluator import Evaluator
from assetflow.ledger import Reader
from assetflow.prefect_io.names import ASSET_UPDATED, EVENTS_PARAMETER, SCHEMA_EXTENSION
from assetflow.prefect_io.recordings import recording_to_artifact, recording_to_prefect_events
from assetflow.testing.background import BackgroundEvaluator
from tests.environment.prefect_server import PrefectServer
from tests.environment.waiting import until
from tests.integration.installation import events_of

SECONDS = 30.0
DEPLOYMENT = "main"


class Stage:
    """One ledger, one evaluator, and the deployments of one scenario.

    Attributes:
        steps: id of each posted event, and the step that posted it.
    """

    def __init__(self, http: httpx.Client, evaluator: BackgroundEvaluator, reader: Reader) -> None:
        self.reader = reader
        self.steps: dict[UUID, int] = {}
        self._http = http
        self._evaluator = evaluator
        self._mark = uuid4()
        self._flows: dict[str, str] = {}
        self._deployments: dict[str, str] = {}
        self._runs_before: dict[str, list[dict[str, Any]]] = {}

    # Consumers

    def deploy(
        self, consumer: str, options: ConsumerOptions, declares: tuple[Asset, ...] = (), *, paused: bool
    ) -> None:
        """Deploy a flow with this schedule, which makes and reads what it declares.

        `paused` counts for a new consumer only.
        """
        is_new = consumer not in self._deployments
        if consumer not in self._flows:
            self._flows[consumer] = self._post("/flows/", {"name": f"{consumer} {self._mark}"})["id"]
        data = options.data
        makes = tuple(each for each in declares if each.token in {output.asset for output in data.outputs})
        reads = tuple(each for each in declares if each.token in data.inlets)
        text = declaration_to_text(FlowDeclaration(options, makes, reads, data.outputs))
        parameter = {"title": EVENTS_PARAMETER, "default": None, SCHEMA_EXTENSION: text}
        schema = {"type": "object", "properties": {EVENTS_PARAMETER: parameter}, "required": []}
        body = {"name": DEPLOYMENT, "flow_id": self._flows[consumer], "parameter_openapi_schema": schema}
        self._deployments[consumer] = self._post("/deployments/", body)["id"]
        self.learn()
        if is_new and paused:
            self.switch(consumer, enabled=False)

    def switch(self, consumer: str, *, enabled: bool) -> None:
        """The switch of the automation that shows the consumer, as a person moves it in Prefect."""
        if consumer not in self._deployments:
            return
        (automation,) = self._ask("GET", f"/automations/related-to/prefect.deployment.{self._deployments[consumer]}")
        self._ask("PATCH", f"/automations/{automation['id']}", {"enabled": enabled})
        self.learn()

    def remove(self, consumer: str) -> None:
        if consumer in self._deployments:
            # A decision whose deployment is gone before its run is made leads to none (4.6).
            self.settle()
            # With a deployment Prefect deletes its runs that have not begun.
            self._runs_before[consumer] = self._runs(consumer)
            self._ask("DELETE", f"/deployments/{self._deployments.pop(consumer)}")
            self.learn()

    def run_by_hand(self, consumer: str) -> None:
        if consumer in self._deployments:
            self._post(f"/deployments/{self._deployments[consumer]}/create_flow_run", {})

    def finish(self, consumer: str) -> None:
        """All runs of the consumer have ended."""
        self.settle()
        for run in self._runs(consumer):
            state = {"state": {"type": "COMPLETED", "name": "Completed"}, "force": True}
            self._post(f"/flow_runs/{run['id']}/set_state", state)
        number = self._number(consumer)
        self._until(lambda: all(each.consumer != number for each in self.reader.decisions.running()))

    def retry(self, consumer: str) -> None:
        """Somebody retries the last run of the consumer in Prefect."""
        run = self._runs(consumer)[-1]["id"]
        self._post(f"/flow_runs/{run}/set_state", {"state": {"type": "SCHEDULED", "name": "Scheduled"}, "force": True})
        self._until(lambda: [str(each.flow_run_id) for each in self.reader.decisions.running()] == [run])

    # Updates

    def post_event(self, step: int, source: dict[str, Any], action: EventStep) -> None:
        """The update as an outsider posts it, who has nothing but HTTP."""
        number = self._id(action.id if action.id is not None else f"step {step}")
        given = source["event"]
        asset = {"uri": given} if isinstance(given, str) else given
        resource = {"prefect.resource.id": asset.get("uri", asset.get("name"))}
        if "name" in asset:
            resource["prefect.resource.name"] = asset["name"]
        payload = {"version": 1, "extra": action.extra or {}, "aliases": list(action.aliases)}
        event = {"event": ASSET_UPDATED, "resource": resource, "payload": payload, "related": []}
        self._post("/events", [{"id": str(number), "occurred": datetime.now(UTC).isoformat(), **event}])
        self.steps.setdefault(number, step)
        self._until(lambda: self.reader.events.known([number]))

    def end_task(self, step: int, task: Task) -> None:
        """What a task leaves when it ends: the artifact and the events of its recording."""
        try:
            events = self._events_of(step, task)
        except AssetflowError:
            return
        if events:
            recording = Recording(self._id(f"recording {step}"), events)
            self._post("/artifacts/", recording_to_artifact(recording))
            self._post("/events", recording_to_prefect_events(recording))
            numbers = [event.id for event in events]
            self.steps |= dict.fromkeys(numbers, step)
            self._until(lambda: len(self.reader.events.known(numbers)) == len(numbers))

    def _events_of(self, step: int, task: Task) -> tuple[AssetEvent, ...]:
        outlets = [outlet() for outlet in task.outlets]
        said = [(entry, entry.asset()) for entry in task.emit]
        named = {each.name: each.uri for each in [*outlets, *(a for _, a in said)][::-1] if isinstance(each, Asset)}
        outcome = TaskOutcome(outlets, lambda name: self.reader.assets.owner_of(name) or named.get(name))
        for entry, asset in said if task.state == "completed" else ():
            extra: Any = entry.extra
            if entry.alias is None:
                outcome.say(asset, extra)
            else:
                outcome.add(AssetAlias(entry.alias), asset, extra)
        now, task_run = datetime.now(UTC), self._id(f"task {step}")
        return tuple(
            AssetEvent(
                id=update.event_id(task_run),
                asset=update.asset,
                occurred=now,
                origin=Origin("task"),
                extra=update.extra,
                aliases=update.aliases,
            )
            for update in (outcome.updates(None) if task.state == "completed" else ())
        )

    # The operator

    def remove_queued(self, consumer: str | None, asset: Asset | None) -> None:
        number = None if consumer is None else self._number(consumer)
        now = datetime.now(UTC)

        async def remove(evaluator: Evaluator) -> None:  # noqa: ARG001
            from assetflow.ledger import Ledger

            with Ledger.open(self.reader.place) as ledger:
                ledger.writer.queues.remove(number, uri=None if asset is None else asset.uri, now=now)

        self._evaluator.call(remove, SECONDS)

    # What came of it

    def learn(self) -> None:
        """Return when the evaluator has seen what is deployed and how the switches are."""
        self._evaluator.call(lambda evaluator: evaluator.registry.sync(), SECONDS)

    def settle(self) -> None:
        self._evaluator.call(lambda evaluator: evaluator.settled(), SECONDS)

    def runs(self) -> dict[str, list[list[dict[str, Any]]]]:
        """For each consumer the runs that Prefect has or had, oldest decision first, with what each was handed over."""
        return {
            consumer: [
                [self._told(event) for event in events_of(run)]
                for run in self._runs(consumer)
                if "assetflow" in run["context"]
            ]
            for consumer in self._flows
        }

    def queued(self) -> dict[str, list[dict[str, Any]]]:
        """What waits at the end for the consumers that are there."""
        found: dict[str, list[dict[str, Any]]] = {}
        for consumer in self._deployments:
            number = self._number(consumer)
            for event in () if number is None else self.reader.queues.events(number):
                extra = {"extra": dict(event.extra)} if event.extra else {}
                aliases = {"aliases": sorted(event.aliases)} if event.aliases else {}
                told = {"asset": event.uri, "step": self.steps[event.id], **extra, **aliases}
                found.setdefault(consumer, []).append(told)
        return found

    def close(self) -> None:
        for consumer in list(self._deployments):
            self._ask("DELETE", f"/deployments/{self._deployments.pop(consumer)}")
        self.learn()

    def _told(self, event: dict[str, Any]) -> dict[str, Any]:
        told = {"asset": event["uri"], "step": self.steps[UUID(event["id"])]}
        return told | {key: event[key] for key in ("extra", "aliases") if event.get(key)}

    def _runs(self, consumer: str) -> list[dict[str, Any]]:
        """All runs of the flow that Prefect has or had, in the order of their decisions; those by hand first."""
        body = {"flows": {"id": {"any_": [self._flows[consumer]]}}}
        found = {run["id"]: run for run in self._runs_before.get(consumer, [])}
        found |= {run["id"]: run for run in self._post("/flow_runs/filter", body)}
        order = {str(each.flow_run_id): each.number for each in self.reader.decisions.find(limit=10_000)}
        return sorted(found.values(), key=lambda run: order.get(run["id"], 0))

    def _number(self, consumer: str) -> int | None:
        deployment = self._deployments.get(consumer)
        known = [each.consumer for each in self.reader.consumers.all()]
        return next((each.id for each in known if str(each.deployment_id) == deployment), None)

    def _id(self, name: str) -> UUID:
        return uuid5(self._mark, name)

    def _post(self, path: str, body: Any) -> Any:
        return self._ask("POST", path, body)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._http.request(method, path, json=body).raise_for_status()
        return answer.json() if answer.content else None

    def _until(self, condition: Callable[[], object]) -> None:
        until(condition, seconds=SECONDS)


@contextmanager
def stage(server: PrefectServer, place: Path | str) -> Iterator[Stage]:
    """A stage with an empty ledger, a file or an address; what it deploys is deleted at the end."""
    with server.http() as http, BackgroundEvaluator(place) as evaluator, Reader.open(place) as reader:
        made = Stage(http, evaluator, reader)
        try:
            yield made
        finally:
            made.close()
