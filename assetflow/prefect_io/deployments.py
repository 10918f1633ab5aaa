"""Deployments as assetflow sees them: who is scheduled on what, told by the parameter schema that Prefect stores."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, cast
from uuid import UUID

from prefect.client.schemas.responses import DeploymentResponse

from assetflow.core.codec import FlowDeclaration, declaration_from_text
from assetflow.core.events import canonical_json
from assetflow.core.schedules import ConsumerOptions, Schedule, refuse_endless_waiting
from assetflow.errors import AssetflowError, InvalidSchedule
from assetflow.prefect_io.latest import PAGE, Changes, Latest
from assetflow.prefect_io.names import EVENTS_PARAMETER, OFF_TAG, SCHEMA_EXTENSION
from assetflow.prefect_io.rest import Json, PrefectApi


@dataclass(frozen=True)
class Deployed:
    """One deployment.

    Attributes:
        name: `flow/deployment`.
        text: the stored declaration as it stands; empty if the flow declares nothing.
        problem: why the schedule cannot be used, with the place and what to do.
        held: the deployment itself is paused (3.4).
        bare: Prefect has no parameter schema of the flow.
        inherited: a mark of what runs take over from the deployment when they are made.
    """

    id: UUID
    name: str
    flow_id: UUID
    updated: datetime
    held: bool = False
    text: str = ""
    declaration: FlowDeclaration | None = None
    problem: AssetflowError | None = None
    bare: bool = False
    inherited: str = ""

    @property
    def where(self) -> str:
        return f"deployment {self.name!r}"

    @property
    def options(self) -> ConsumerOptions:
        return self.declaration.options if self.declaration is not None else ConsumerOptions()

    @property
    def schedule(self) -> Schedule:
        return self.options.schedule

    @property
    def is_scheduled(self) -> bool:
        """Whether updates of assets, or the clock, start it."""
        return self.schedule.starts_runs


def declaration_of(deployment: DeploymentResponse, *, where: str = "") -> FlowDeclaration | None:
    """What the flow of a deployment declares, as this deployment has it; none if the flow is not one of ours.

    The tag `assetflow:off` drops the schedule and leaves what the flow produces and reads.

    Raises:
        InvalidSchedule: the stored schema lost the schedule or holds a damaged one, or the schedule cannot work: the
            flow has a required parameter, or a roll-up waits for keys that cannot come.
    """
    text = declared_text(deployment, where=where)
    if text is None:
        return None
    declaration = declaration_from_text(text, where=where)
    if OFF_TAG in deployment.tags:
        return replace(declaration, options=ConsumerOptions())
    if declaration.options.schedule.starts_runs:
        refuse_endless_waiting(declaration.options.schedule)
        _refuse_required_parameters(deployment, where)
    return declaration


def declared_text(deployment: DeploymentResponse, *, where: str = "") -> str | None:
    """The stored text of a deployment's declaration; none if the flow is not one of ours.

    Raises:
        InvalidSchedule: the flow is one of ours, and the text is not there.
    """
    properties = cast("dict[str, Any]", (deployment.parameter_openapi_schema or {}).get("properties") or {})
    if EVENTS_PARAMETER not in properties:
        return None
    parameter = properties[EVENTS_PARAMETER]
    text = cast("Mapping[str, object]", parameter).get(SCHEMA_EXTENSION) if isinstance(parameter, Mapping) else None
    if isinstance(text, str):
        return text
    raise InvalidSchedule(
        f"its parameter schema in Prefect lost the asset schedule: `{EVENTS_PARAMETER}` has no `{SCHEMA_EXTENSION}`",
        where=where,
        fix="Deploy the flow again; if a tool rewrites parameter schemas on the way, it has to keep unknown keys",
    )


def _refuse_required_parameters(deployment: DeploymentResponse, where: str) -> None:
    schema = deployment.parameter_openapi_schema or {}
    required = [name for name in schema.get("required") or () if name not in deployment.parameters]
    if required:
        names = ", ".join(map(repr, required))
        raise InvalidSchedule(
            f"the flow cannot be started by its schedule: its parameter {names} has no value",
            where=where,
            fix="Give it a default in the flow, or a value under `parameters` of the deployment",
        )


def to_deployed(deployment: DeploymentResponse, flow_name: str) -> Deployed:
    """A deployment as Prefect tells of it, read; a schedule that cannot be used becomes its `problem`."""
    name = f"{flow_name}/{deployment.name}"
    deployed = Deployed(
        id=deployment.id,
        name=name,
        flow_id=deployment.flow_id,
        updated=deployment.updated or datetime.fromtimestamp(0, UTC),
        held=deployment.paused,
        bare=_is_bare(deployment.parameter_openapi_schema or {}),
        inherited=_inherited(deployment),
    )
    try:
        declaration = declaration_of(deployment, where=deployed.where)
        text = declared_text(deployment) or ""
    except AssetflowError as error:
        return replace(deployed, problem=error)
    return replace(deployed, declaration=declaration, text=text)


def _inherited(deployment: DeploymentResponse) -> str:
    queue = (deployment.work_queue_name, str(deployment.work_queue_id))
    taken = (deployment.parameters, sorted(deployment.tags), deployment.version, *queue)
    return sha256(canonical_json(taken).encode()).hexdigest()[:16]


def _is_bare(schema: Mapping[str, object]) -> bool:
    """Whether this is no schema, or the one that the server puts where none was sent: that of a flow has a title."""
    return not schema.get("properties") and "title" not in schema


class Deployments:
    """The deployments of a Prefect server, and what changed among them since the last look."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api
        self._latest = Latest(api, "/deployments", DeploymentResponse.model_validate)
        self._flow_names: dict[UUID, str] = {}
        self._untold = Changes[DeploymentResponse]()

    async def changes(self) -> Changes[Deployed]:
        """What changed since the last call; everything at the first.

        Raises:
            PrefectUnreachable, PrefectRefused: nothing is lost, the next call tells it.
        """
        changes = await self._latest.changes()
        # What has been told is told once: it is kept here until the names of its flows are known.
        self._untold = Changes([*self._untold.changed, *changes.changed], [*self._untold.gone, *changes.gone])
        await self._read_flow_names({each.flow_id for each in self._untold.changed})
        told, self._untold = self._untold, Changes[DeploymentResponse]()
        deployed = [to_deployed(each, self._flow_names.get(each.flow_id, str(each.flow_id))) for each in told.changed]
        return Changes(deployed, told.gone)

    async def is_gone(self, deployment_id: UUID) -> bool:
        """Whether Prefect says, asked for this id, that there is no such deployment."""
        return await self._latest.find(deployment_id) is None

    async def _read_flow_names(self, flows: Collection[UUID]) -> None:
        unknown = [str(flow) for flow in flows if flow not in self._flow_names]
        for start in range(0, len(unknown), PAGE):
            body = {"flows": {"id": {"any_": unknown[start : start + PAGE]}}, "limit": PAGE}
            rows = cast("list[Json]", await self._api.post("/flows/filter", body) or [])
            self._flow_names.update({UUID(row["id"]): row["name"] for row in rows})
