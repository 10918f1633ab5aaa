"""Create the application that serves the API and the pages, behind one guard."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware

from assetflow.api.app import create_app
from assetflow.api.requests import Backend
from assetflow.api.security import Access
from assetflow.web import (
    activity,
    asset,
    assets,
    backfill_form,
    backfills,
    consumer,
    consumers,
    diff,
    docs,
    graph,
    live,
    login,
    overview,
    partitions,
    run,
    runs,
    search,
    trouble_banner,
)
from assetflow.web.live import Live
from assetflow.web.login import Sessions, with_login
from assetflow.web.middleware import PageMiddleware, add_stale_forms
from assetflow.web.pages import Pages
from assetflow.web.prefect_runs import LateRuns, RunStates
from assetflow.web.static_files import MarkedFiles

ROUTERS = tuple(
    module.router
    for module in (
        login,
        live,
        trouble_banner,
        overview,
        assets,
        asset,
        graph,
        partitions,
        backfill_form,
        backfills,
        runs,
        run,
        consumers,
        consumer,
        diff,
        docs,
        activity,
        search,
    )
)


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
    for router in ROUTERS:
        app.include_router(router, include_in_schema=False)
    app.mount("/static", MarkedFiles(), name="static")

    return app
