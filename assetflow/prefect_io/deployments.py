"""Deployments with their schedules, which assetflow stores in the parameter schema that Prefect keeps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from uuid import UUID, uuid4

from assetflow.core.values.events import canonical_json
from assetflow.core.values.schedules import ConsumerOptions, refuse_endless_waiting
from assetflow.core.wire import FlowDeclaration, declaration_from_text, declaration_to_text
from assetflow.core.wire.deployments import Deployed, DeployedChanges, ShownAutomation
from assetflow.errors import AssetflowError, InvalidFlow, InvalidSchedule
from assetflow.prefect_io.names import EVENTS_PARAMETER, OFF_TAG, SCHEMA_EXTENSION
from assetflow.prefect_io.rest import Json, PrefectApi

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas.responses import DeploymentResponse

FIRST_PAGE = 20
PAGE = 200
LOOKS_UNTIL_ALL = 120


T = TypeVar("T", "DeploymentResponse", ShownAutomation)


class ChangeFeed(Generic[T]):
    """Reads the objects below one path of the API, latest changes first.

    If nothing has changed, a call costs two small requests: the first page, and the number of objects. Now and then a
    call reads everything, in case two changes became visible in the wrong order.

    Parameters:
        api: Prefect's API.
        path: the path above `/filter` and `/count`, such as `/deployments`.
        read: makes an object from its JSON.
        chosen: the API's filter for the objects.
    """

    def __init__(self, api: PrefectApi, path: str, read: Callable[[Json], T], chosen: Json | None = None) -> None:
        self._api = api
        self._path = path
        self._parse = read
        self._chosen = dict(chosen or {})
        self._stamps: dict[UUID, datetime | None] = {}
        self._looks = 0

    async def changes(self) -> DeployedChanges[T]:
        """Return the changes since the last call; the first call returns everything.

        An object counts as deleted only when Prefect says so for its id: a list without it may have been cut short.

        Raises:
            PrefectUnreachable, PrefectRefused: no change is lost, the next call returns it.
        """
        everything = not self._stamps or self._looks >= LOOKS_UNTIL_ALL
        found, complete = await self._read(everything)
        if not complete:
            number = await self._api.post(f"{self._path}/count", self._chosen)
            if number != len(self._stamps.keys() | found.keys()):
                found, complete = await self._read(everything=True)
        gone: list[UUID] = []
        if complete:
            for each in sorted(self._stamps.keys() - found.keys()):
                entry = await self.find(each)
                if entry is None:
                    gone.append(each)
                else:
                    found[each] = entry
        return self._take(found, gone, complete)

    async def changed_since(self, moment: datetime) -> list[T]:
        """Return the objects that changed after `moment`, latest change first. `changes` returns them too.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        found: list[T] = []
        while True:
            limit = PAGE if found else FIRST_PAGE
            page = await self._page(limit, len(found))
            found += page
            if len(page) < limit or any(each.updated is not None and each.updated < moment for each in page):
                return [each for each in found if each.updated is None or each.updated >= moment]

    async def find(self, number: UUID) -> T | None:
        """Return the object with this id, or `None` if Prefect does not know it."""
        row = await self._api.get(f"{self._path}/{number}")
        return None if row is None else self._parse(row)

    def _take(self, found: dict[UUID, T], gone: list[UUID], complete: bool) -> DeployedChanges[T]:
        changed = [entry for entry in found.values() if self._is_changed(entry)]
        self._stamps.update({entry.id: entry.updated for entry in changed})
        for each in gone:
            self._stamps.pop(each, None)
        self._looks = 0 if complete else self._looks + 1
        # The changes were read latest first.
        return DeployedChanges(changed[::-1], gone)

    def _is_changed(self, entry: T) -> bool:
        return entry.id not in self._stamps or self._stamps[entry.id] != entry.updated

    async def _read(self, everything: bool) -> tuple[dict[UUID, T], bool]:
        """Return the latest objects by id, back to the last known change, and True if these are all objects."""
        found: dict[UUID, T] = {}
        while True:
            limit = PAGE if everything or found else FIRST_PAGE
            page = await self._page(limit, len(found))
            found.update({entry.id: entry for entry in page if entry.id not in found})
            if len(page) < limit:
                return found, True
            if not everything and not any(map(self._is_changed, page)):
                return found, False

    async def _page(self, limit: int, offset: int) -> list[T]:
        body = {"sort": "UPDATED_DESC", "limit": limit, "offset": offset, **self._chosen}
        rows = cast("list[Json]", await self._api.post(f"{self._path}/filter", body) or [])
        return [self._parse(row) for row in rows]


# A newer server may send others, or values that this version of Prefect does not know.
_READ = (
    *("id", "created", "updated", "name", "flow_id", "entrypoint", "paused", "parameter_openapi_schema"),
    *("parameters", "tags", "version", "work_queue_name", "work_queue_id"),
)


_CANCELS: dict[str, Any] = {"collision_strategy": "CANCEL_NEW"}


def _response(row: Json) -> DeploymentResponse:
    from prefect.client.schemas.responses import DeploymentResponse

    taken = {name: row[name] for name in _READ if name in row}
    options = cast("Mapping[str, object]", row.get("concurrency_options") or {})
    if options.get("collision_strategy") == _CANCELS["collision_strategy"]:
        taken["concurrency_options"] = _CANCELS
    return DeploymentResponse.model_validate(taken)


def declaration_of(deployment: DeploymentResponse, *, where: str = "") -> FlowDeclaration | None:
    """Return the declaration of a deployment's flow, or `None` if it is not a flow of assetflow.

    The tag `assetflow:off` on the deployment drops the schedule, and keeps what the flow produces and reads.

    Raises:
        InvalidSchedule: the stored schema has lost or damaged the schedule, or the schedule cannot work: the flow has a
            required parameter, a roll-up waits for keys that cannot come, or Prefect would cancel new runs (4.7).
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
    if declaration.options.takes_updates:
        _refuse_cancelling(deployment, where)
    return declaration


def declared_text(deployment: DeploymentResponse, *, where: str = "") -> str | None:
    """Return the stored text of a deployment's declaration, or `None` if it is not a flow of assetflow.

    Raises:
        InvalidSchedule: it is a flow of assetflow, and the text is missing.
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


def _refuse_cancelling(deployment: DeploymentResponse, where: str) -> None:
    from prefect.client.schemas.objects import ConcurrencyLimitStrategy

    options = deployment.concurrency_options
    if options is not None and options.collision_strategy == ConcurrencyLimitStrategy.CANCEL_NEW:
        raise InvalidSchedule(
            "Prefect would cancel runs whose updates are consumed: the collision strategy of its concurrency limit is "
            "CANCEL_NEW",
            where=where,
            rule="4.7",
            fix="Write @flow(..., coalesce=True), and give the deployment the strategy ENQUEUE, or no limit",
        )


def to_deployed(deployment: DeploymentResponse, flow_name: str) -> Deployed:
    """Read a deployment from Prefect's answer. An error in its schedule becomes its `problem`."""
    name = f"{flow_name}/{deployment.name}"
    schema = deployment.parameter_openapi_schema or {}
    deployed = Deployed(
        id=deployment.id,
        name=name,
        flow_id=deployment.flow_id,
        updated=deployment.updated or datetime.fromtimestamp(0, UTC),
        entrypoint=deployment.entrypoint or "",
        created=deployment.created,
        held=deployment.paused,
        # A schema that is missing, or the server's default: the schema of a flow has a title.
        bare=not schema.get("properties") and "title" not in schema,
        inherited=_inherited(deployment),
        parameters=canonical_json(deployment.parameters),
    )
    try:
        declaration = declaration_of(deployment, where=deployed.where)
        text = declared_text(deployment) or ""
    except AssetflowError as error:
        return replace(deployed, problem=error)
    if declaration is not None and OFF_TAG in deployment.tags:
        text = declaration_to_text(declaration)
    return replace(deployed, declaration=declaration, text=text)


def planned(flow: Flow[..., Any], name: str, entrypoint: str, given: Mapping[str, object]) -> Deployed:
    """Return a deployment of a flow as Prefect would have it after `prefect deploy`.

    Parameters:
        given: what `prefect.yaml` says of it.

    Raises:
        InvalidFlow: Prefect would not take these values.
    """
    from prefect.utilities.callables import parameter_schema

    row: Json = {"id": uuid4(), "flow_id": uuid4(), "name": name, "entrypoint": entrypoint}
    row |= {each: given[each] for each in ("parameters", "tags") if given.get(each)}
    limit = given.get("concurrency_limit")
    row["concurrency_options"] = limit if isinstance(limit, Mapping) else None
    row["parameter_openapi_schema"] = parameter_schema(flow).model_dump_for_openapi()
    try:
        return to_deployed(_response(row), flow.name)
    except ValueError as error:
        said = str(error).partition("For further")[0]
        raise InvalidFlow(f"Prefect does not take its deployment {name}: {said}", fix="Correct prefect.yaml") from error


def _inherited(deployment: DeploymentResponse) -> str:
    queue = (deployment.work_queue_name, str(deployment.work_queue_id))
    taken = (deployment.parameters, sorted(deployment.tags), deployment.version, *queue)
    return sha256(canonical_json(taken).encode()).hexdigest()[:16]


class Deployments:
    """The deployments of a Prefect server, and their changes since the last call."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api
        self._latest = ChangeFeed(api, "/deployments", _response)
        self._flow_names: dict[UUID, str] = {}
        self._named_later = DeployedChanges["DeploymentResponse"]()

    async def changes(self) -> DeployedChanges[Deployed]:
        """Return the changes since the last call; the first call returns everything.

        Raises:
            PrefectUnreachable, PrefectRefused: no change is lost, the next call returns it.
        """
        changes = await self._latest.changes()
        # The feed reports each change once: keep it here until the names of its flows are known.
        self._named_later = DeployedChanges(
            [*self._named_later.changed, *changes.changed], [*self._named_later.gone, *changes.gone]
        )
        await self._read_flow_names({each.flow_id for each in self._named_later.changed})
        known, self._named_later = self._named_later, DeployedChanges["DeploymentResponse"]()
        deployed = [to_deployed(each, self._flow_names.get(each.flow_id, str(each.flow_id))) for each in known.changed]
        return DeployedChanges(deployed, known.gone)

    async def is_gone(self, deployment_id: UUID) -> bool:
        """Return True if Prefect, asked for this id, answers that the deployment does not exist."""
        return await self._latest.find(deployment_id) is None

    async def _read_flow_names(self, flows: Collection[UUID]) -> None:
        unknown = [str(flow) for flow in flows if flow not in self._flow_names]
        for start in range(0, len(unknown), PAGE):
            body = {"flows": {"id": {"any_": unknown[start : start + PAGE]}}, "limit": PAGE}
            rows = cast("list[Json]", await self._api.post("/flows/filter", body) or [])
            self._flow_names.update({UUID(row["id"]): row["name"] for row in rows})
