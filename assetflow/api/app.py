"""The application: the routes, before them the guard, behind them a ledger."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, cast

import anyio.to_thread
from fastapi import FastAPI

from assetflow.api import metrics, v1, v2
from assetflow.api.backend import Backend
from assetflow.api.problems import Problem, add_handlers
from assetflow.api.responses import Json
from assetflow.api.security import Access, Guard

OPENAPI = "/api/openapi.json"
# As many as the ledger has connections: more would wait for one, and hold up what needs none.
THREADS = 12

_ABOUT = """
Assets, their events, and the flows that run on them.

`/api/v2` has Airflow's paths and shapes; a consumer `flow/deployment` is the Dag `flow.deployment`. `/api/v1` is
assetflow's own. Errors are problem documents (RFC 9457). With a key, every request but the health check has to show it:
`Authorization: Bearer <key>` or `X-API-Key: <key>`.
"""


def create_app(backend: Backend, access: Access | None = None) -> FastAPI:
    """The API on a ledger. Other routes (pages) may be added to it; the guard stands before them too.

    Parameters:
        access: who may call; without it this machine only, and without a key.
    """
    app = FastAPI(
        title="assetflow",
        version=version("assetflow"),
        description=_ABOUT,
        openapi_url=OPENAPI,
        docs_url=None,
        redoc_url=None,
        default_response_class=Json,
        lifespan=_lifespan,
    )
    app.state.backend = backend
    app.state.access = access or Access()
    add_handlers(app)
    app.add_middleware(Guard, access=app.state.access)
    app.include_router(v1.health.plain)
    app.include_router(metrics.router)
    app.include_router(v1.router)
    app.include_router(v2.router)
    app.include_router(v2.airflow2, prefix="/api/v1")
    app.include_router(v2.airflow2, prefix="/api/v2")
    _document(app)
    return app


@asynccontextmanager
async def _lifespan(_app: FastAPI) -> AsyncGenerator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    yield


def _document(app: FastAPI) -> None:
    """The OpenAPI document: problems instead of FastAPI's own errors, and the ways to show the key."""
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
        for path in document["paths"].values():
            for operation in cast("dict[str, dict[str, Any]]", path).values():
                _document_operation(operation)
        app.openapi_schema = document
        return document

    app.openapi = openapi


def _document_operation(operation: dict[str, Any]) -> None:
    responses: dict[str, Any] = operation["responses"]
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    if "422" in responses:
        content = responses["422"].get("content", {})
        own = {kind: each for kind, each in content.items() if "HTTPValidationError" not in str(each)}
        responses["422"] = {"description": "A field is not as it has to be", "content": own | problem}
