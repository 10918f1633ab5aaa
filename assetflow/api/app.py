"""Create the FastAPI application: its routes, with the guard in front of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, cast

import anyio.to_thread
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from assetflow.api import v1, v2
from assetflow.api.problems import Problem, add_handlers
from assetflow.api.requests import ONLY_KNOWN, Backend, Json
from assetflow.api.security import Access, Guard, right_for

OPENAPI = "/api/openapi.json"
# One thread for each of the ledger's connections: more would wait for one, and block requests that need none.
THREADS = 12

_ABOUT = """
Assets, their events, and the flows that run on them.

`/api/v2` has Airflow's paths and shapes; a consumer `flow/deployment` is the Dag `flow.deployment`. `/api/v1` is
assetflow's own. Errors are problem documents (RFC 9457). With a key, every request but the health check has to show
one: `Authorization: Bearer <key>` or `X-API-Key: <key>`. Each operation names what its key has to allow: `read`, `emit`
or `operate`.
"""


def _operation_id(route: APIRoute) -> str:
    """Return the name of a route's function, with a prefix for Airflow's operations.

    Those of Airflow 2 begin with `airflow2_`. They are served at two places.
    """
    module = route.endpoint.__module__
    if not module.startswith(v2.__name__):
        return route.name
    if v2.queued_events.AIRFLOW_2 not in route.tags:
        return f"airflow_{route.name}"
    return f"airflow2_{route.name}" + ("_in_v2" if route.path_format.startswith("/api/v2") else "")


# FastAPI makes the models of a router's routes where it is included: once here, and not for each application.
_ROUTER = APIRouter(default_response_class=Json, generate_unique_id_function=_operation_id)
_ROUTER.include_router(v1.health.plain)
_ROUTER.include_router(v1.health.metrics_router)
_ROUTER.include_router(v1.events.hook_router)
_ROUTER.include_router(v1.router)
_ROUTER.include_router(v2.router)
_ROUTER.include_router(v2.airflow2, prefix="/api/v1", dependencies=ONLY_KNOWN)
_ROUTER.include_router(v2.airflow2, prefix="/api/v2")


def create_app(backend: Backend, access: Access | None = None) -> FastAPI:
    """Create the API of an installation. The guard also protects routes that are added later, such as pages.

    Parameters:
        backend: the installation that the routes work on.
        access: who may call; by default only this machine, without a key.
    """
    app = FastAPI(
        title="assetflow",
        version=version("assetflow"),
        description=_ABOUT,
        openapi_url=OPENAPI,
        docs_url=None,
        redoc_url=None,
        servers=[{"url": "/", "description": "This server"}],
        lifespan=_lifespan,
    )
    app.state.backend = backend
    app.state.access = access or Access()
    add_handlers(app)
    app.add_middleware(Guard, access=app.state.access)
    app.router.routes.extend(_ROUTER.routes)
    _document(app)
    return app


@asynccontextmanager
async def _lifespan(_app: FastAPI) -> AsyncGenerator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    yield


def _document(app: FastAPI) -> None:
    """Describe problem documents and keys in the OpenAPI document, instead of FastAPI's own errors."""
    described = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is not None:
            return app.openapi_schema
        document = described()
        components = document.setdefault("components", {})
        schemas = components.setdefault("schemas", {})
        model = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(model.pop("$defs", {}))
        schemas["Problem"] = model
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        components["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
        document["security"] = [{}, {"bearer": []}, {"header": []}]
        for path, operations in document["paths"].items():
            for method, operation in cast("dict[str, dict[str, Any]]", operations).items():
                _document_operation(operation)
                if not app.state.access.is_open(path):
                    right = right_for(method.upper(), path)
                    operation["security"] = [{}, {"bearer": [right]}, {"header": [right]}]
        app.openapi_schema = document
        return document

    app.openapi = openapi


def _document_operation(operation: dict[str, Any]) -> None:
    responses: dict[str, Any] = operation["responses"]
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    if "422" in responses:
        content = responses["422"].get("content", {})
        own = {kind: each for kind, each in content.items() if "HTTPValidationError" not in str(each)}
        responses["422"] = {"description": "A field is not valid", "content": own | problem}
