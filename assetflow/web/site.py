"""API and pages in one application, behind one guard."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles

from assetflow.api.app import create_app
from assetflow.api.backend import Backend
from assetflow.api.security import Access
from assetflow.web import activity, asset, assets, consumer, consumers, event, live, login, partitions, run, state
from assetflow.web.front import Front
from assetflow.web.live import Live
from assetflow.web.login import Sessions, with_login
from assetflow.web.pages import Pages

STATIC = Path(__file__).parent / "static"

ROUTERS = tuple(
    module.router
    for module in (login, live, state, assets, asset, partitions, event, consumers, consumer, run, activity)
)


def create_site(backend: Backend, access: Access | None = None) -> FastAPI:
    """The API on a ledger, with the pages.

    `app.state.live.stop()` ends the streams of open pages, so that the server can end.

    Parameters:
        access: who may call; without it this machine only, and without a key.
    """
    access = access or Access()
    sessions = Sessions(access.key)
    app = create_app(backend, with_login(access, sessions))
    app.state.live = Live(backend)
    app.state.pages = pages = Pages(backend, sessions)
    app.add_middleware(Front, pages=pages)
    for router in ROUTERS:
        app.include_router(router, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")

    @app.get("/", include_in_schema=False)
    def start() -> RedirectResponse:  # pyright: ignore[reportUnusedFunction]
        return RedirectResponse("/assets", 303)

    return app
