"""Create the application that serves the API and the pages, behind one guard."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assetflow.api.app import create_app
from assetflow.api.connections import Strangers
from assetflow.api.problems import MEDIA_TYPE
from assetflow.api.requests import Backend, Json
from assetflow.api.security import (
    ALWAYS,
    BODY_BYTES,
    FOR_MACHINES,
    HOOKS,
    Access,
    is_same_origin,
    limited,
    with_headers,
)
from assetflow.errors import InvalidCall
from assetflow.web import (
    activity,
    asset,
    assets,
    backfills,
    consumer,
    docs,
    graph,
    live,
    login,
    overview,
    partitions,
    previews,
    runs,
    search,
    troubles,
)
from assetflow.web.live import LateRuns, Live, RunStates
from assetflow.web.login import LOGIN, LOGOUT, Sessions, ask_again, ask_for_key, typed_in, with_login
from assetflow.web.pages import TOKEN, MarkedFiles, Pages, StaleForm, read_fields, url

# Once in a process, as the routes of the API.
_ROUTER = APIRouter(default_response_class=Json, include_in_schema=False)
for part in (
    login,
    live,
    troubles,
    overview,
    assets,
    asset,
    graph,
    partitions,
    backfills,
    runs,
    consumer,
    previews,
    docs,
    activity,
    search,
):
    _ROUTER.include_router(part.router)


def create_site(backend: Backend, access: Access | None = None) -> FastAPI:
    """Create the application of an installation: the API with the pages.

    `app.state.live.stop()` ends the streams of open pages, so that the server can stop.

    Parameters:
        backend: the installation that the routes work on.
        access: who may call; by default only this machine, without a key.
    """
    access = access or Access()
    sessions = Sessions(access.keys, backend.ledger)
    app = create_app(backend, with_login(access, sessions))
    app.state.live = Live(backend)
    app.state.run_states = states = RunStates(backend)
    app.state.late_runs = LateRuns(backend)
    app.state.pages = pages = Pages(backend, sessions, states.shown)
    add_stale_forms(app, pages)
    app.add_middleware(PageMiddleware, pages=pages)
    # Outermost, so that it also compresses the pages that show problems; it does not compress streams.
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=6)
    app.router.routes.extend(_ROUTER.routes)
    app.mount("/static", MarkedFiles(), name="static")

    return app


logger = logging.getLogger("assetflow.web")

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_NO_PAGES = ("/api/", HOOKS)
_HEADERS = ALWAYS | {"content-security-policy": _POLICY, "cache-control": "private, no-cache"}
_UNEXPECTED = {"status": 500, "detail": "assetflow failed unexpectedly; its log has the full report"}


class PageMiddleware:
    """The outermost middleware. Where the API answers an error with a problem document, it shows a page instead."""

    def __init__(self, app: ASGIApp, pages: Pages) -> None:
        self._app = app
        self._pages = pages
        self._strangers = Strangers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(_NO_PAGES) or scope["path"] in FOR_MACHINES:
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        try:
            await self._app(scope, receive, answer)
            problem = answer.problem
        except Exception as error:
            if answer.started:
                raise
            logger.error("%s %s failed unexpectedly", scope["method"], scope["path"], exc_info=error)
            problem = _UNEXPECTED
        if problem is not None:
            logs_in = problem["status"] == 401 and scope["path"] != LOGIN
            page = await self._login(scope, receive) if logs_in else self._page(scope, problem)
            await page(scope, receive, answer.secured)

    async def _login(self, scope: Scope, receive: Receive) -> Response:
        """Ask for the API key first: the login leads back to this page, with what a form of ours has sent."""
        request = Request(scope)
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        if "hx-request" in request.headers:
            # The script of the page says so, and leaves open what is being typed.
            return Response(status_code=401)
        if request.method == "GET" or path == LOGOUT or not is_same_origin(request.headers):
            return RedirectResponse(url(LOGIN, next=path), 303)
        with suppress(HTTPException, InvalidCall), self._strangers.reading(receive) as read:
            fields = await read_fields(Request(scope, limited(read, BODY_BYTES)))
            fields.pop(TOKEN, None)
            return ask_for_key(request, self._pages, path, typed=fields, status=401)
        return RedirectResponse(url(LOGIN), 303)

    def _page(self, scope: Scope, problem: Mapping[str, Any]) -> Response:
        request, status, where = Request(scope), int(problem["status"]), str(problem.get("where", ""))
        if status == 405 and scope["method"] == "GET":
            # A browser asks for the address of an action when a user reloads its refusal: lead to the page above it.
            return RedirectResponse(scope["raw_path"].rpartition(b"/")[0].decode("latin-1") or "/", 303)
        if (status == 404 and "endpoint" not in scope) or (status == 422 and where.startswith("path.")):
            # An address that no page can have was mistyped, or cut when it was copied.
            status, problem = 404, {"status": 404, "detail": f"There is no page {request.url.path}"}
        elif where.startswith("query."):
            words = str(problem["detail"]).replace("query.", "in the address of this page, ", 1)
            problem = {**problem, "detail": words, "fix": "Mend the address, or begin at one of the pages at the side"}
        return self._pages.bare(request, "problem.html", status=status, problem=problem)


class _Answer:
    """A `send` that adds headers, and holds back a problem document instead of sending it."""

    def __init__(self, send: Send) -> None:
        self.secured = with_headers(send, _HEADERS)
        self._held: bytes | None = None
        self.started = False
        self.problem: Mapping[str, Any] | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if Headers(raw=message["headers"]).get("content-type", "").startswith(MEDIA_TYPE):
                self._held = b""
                return
            self.started = True
        if self._held is None:
            await self.secured(message)
            return
        held = self._held = self._held + message.get("body", b"")
        if not message.get("more_body", False):
            self.problem = json.loads(held)


_STATUS = 422


def add_stale_forms(app: FastAPI, pages: Pages) -> None:
    """Show the page that sends an old form again, with what was typed. A key is asked for anew."""

    @app.exception_handler(StaleForm)
    def _show(request: Request, error: StaleForm) -> Response:  # pyright: ignore[reportUnusedFunction]
        if request.url.path == LOGIN:
            typed, next_page = typed_in(error.fields), error.fields.get("next", "/")
            return ask_for_key(
                request, pages, next_page, typed=typed, refused="Enter the API key once more.", status=_STATUS
            )
        action = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return ask_again(request, pages, error.fields, action, status=_STATUS)
