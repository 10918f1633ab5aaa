"""The banner at the top of every page with the current troubles, which open pages load again."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from assetflow.web.troubles import troubles_of

router = APIRouter()


@router.get("/troubles")
def show_troubles(request: Request) -> Response:
    """Show the banner alone."""
    return request.app.state.pages.show(request, "troubles.html", troubles=troubles_of(request.app.state.backend))
