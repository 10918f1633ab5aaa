"""A Prefect in memory, as the registry uses it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from assetflow.core.values.assets import Asset
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.evaluator.consumers.registry import Registry
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.prefect_io.names import EVENTS_PARAMETER, SCHEMA_EXTENSION

A, B, C = (Asset(f"s3://lake/{letter}") for letter in "abc")
START = datetime(2026, 11, 20, tzinfo=UTC)
FLOW = str(uuid4())


def declaration(schedule: object, *produces: Asset) -> FlowDeclaration:
    return FlowDeclaration(ConsumerOptions(to_schedule(schedule)), produces=produces)


class FakePrefect:
    """Deployments and automations in memory; `fails` has the errors of the next requests, by method and path."""

    url = "http://prefect.invalid/api"
    connect_url = url

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, dict[str, Any]]] = {"deployments": {}, "automations": {}, "flow_runs": {}}
        self.fails: list[tuple[str, Exception]] = []
        self.writes: list[str] = []
        self.asked: list[str] = []
        self._clock = 0

    def deploy(self, number: int, schedule: object, *produces: Asset, **given: Any) -> UUID:
        text = declaration_to_text(declaration(schedule, *produces))
        schema = {"title": "Parameters", "properties": {EVENTS_PARAMETER: {SCHEMA_EXTENSION: text}}}
        made = UUID(int=number)
        row = {"id": str(made), "name": f"d{number}", "flow_id": FLOW, "parameter_openapi_schema": schema, **given}
        self.save("deployments", row)
        return made

    def save(self, kind: str, row: dict[str, Any]) -> None:
        self._clock += 1
        self.rows[kind][row["id"]] = {**row, "updated": (START + timedelta(seconds=self._clock)).isoformat()}

    @property
    def automations(self) -> list[dict[str, Any]]:
        return list(self.rows["automations"].values())

    def _fail(self, method: str, path: str) -> None:
        self.asked.append(f"{method} {path}")
        request = f"{method} {path}" if method == "POST" else method
        for place, (failing, error) in enumerate(self.fails):
            if failing == request:
                del self.fails[place]
                raise error

    async def post(self, path: str, body: Any) -> Any:
        self._fail("POST", path)
        _, kind, what = path.split("/")
        if kind == "flows":
            return [{"id": FLOW, "name": "flow"}]
        if what == "count":
            return len(self.rows[kind])
        if what == "filter":
            listed = sorted(self.rows[kind].values(), key=lambda each: each["updated"], reverse=True)
            return listed[body["offset"] : body["offset"] + body["limit"]]
        row = {**body, "id": str(uuid4())}
        self.writes.append("create")
        self.save(kind, row)
        return row

    async def get(self, path: str) -> Any:
        self._fail("GET", path)
        _, kind, number = path.split("/")
        return self.rows[kind].get(number)

    async def put(self, path: str, body: Any) -> None:
        self._fail("PUT", path)
        self.writes.append("update")
        number = path.rpartition("/")[2]
        self.save("automations", {**self.rows["automations"][number], **body})

    async def delete(self, path: str) -> None:
        self._fail("DELETE", path)
        self.writes.append("delete")
        self.rows["automations"].pop(path.rpartition("/")[2], None)


def registry_of(prefect: FakePrefect, ledger: LedgerThread) -> Registry:
    return Registry(prefect, ledger)  # type: ignore[arg-type]


def known(ledger: LedgerThread) -> dict[str, object]:
    """The conditions of the consumers."""
    return {each.consumer.name: each.consumer.schedule.condition for each in ledger.reader.consumers.all()}
