"""The middleware of the pages: it adds security headers, and shows problem documents as pages."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assetflow.api.problems import MEDIA_TYPE
from assetflow.api.security import ALWAYS, FOR_MACHINES, HOOKS
from assetflow.web.forms import StaleForm, in_words
from assetflow.web.login import LOGIN
from assetflow.web.pages import Pages, url

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
            await self._page(Request(scope), problem)(scope, receive, answer.secured)

    def _page(self, request: Request, problem: Mapping[str, Any]) -> Response:
        status = int(problem["status"])
        if status == 401 and request.url.path != LOGIN:
            return _to_login(request)
        if status == 422 and str(problem.get("where", "")).startswith("path."):
            # An address that no page can have was mistyped, or cut when it was copied.
            status, problem = 404, {"status": 404, "detail": f"There is no page {request.url.path}"}
        return self._pages.bare(request, "problem.html", status=status, problem=problem)


def _to_login(request: Request) -> Response:
    """Redirect to the login page, which leads back to this page."""
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if "hx-request" in request.headers or request.method != "GET":
        return Response(status_code=401, headers={"hx-redirect": LOGIN})
    return RedirectResponse(url(LOGIN, next=path), 303)


class _Answer:
    """A `send` that adds headers, and holds back a problem document instead of sending it."""

    def __init__(self, send: Send) -> None:
        self._send = send
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

    async def secured(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)


_STATUS = 422


def add_stale_forms(app: FastAPI, pages: Pages) -> None:
    """Show the page that sends an old form again, with what was typed. A key is asked for anew."""

    @app.exception_handler(StaleForm)
    def _show(request: Request, error: StaleForm) -> Response:  # pyright: ignore[reportUnusedFunction]
        refused = in_words(error)
        if request.url.path == LOGIN:
            return pages.bare(
                request, "login.html", status=_STATUS, next_page="/", refused="Enter the API key once more."
            )
        action = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return pages.bare(
            request, "stale_form.html", status=_STATUS, fields=error.fields, action=action, refused=refused
        )
