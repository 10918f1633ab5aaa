"""The buttons that hide an asset, and show it again."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import RedirectResponse

from assetflow.api.backend import TheBackend
from assetflow.operations import hiding
from assetflow.web.forms import TheForm
from assetflow.web.pages import url

router = APIRouter()


@router.post("/asset/hide")
def hide_asset(backend: TheBackend, form: TheForm) -> RedirectResponse:
    """Hide an asset, and show its page."""
    return RedirectResponse(url("/asset", asset=hiding.hide(backend, form.text("asset"), by="the Assets view")), 303)


@router.post("/asset/unhide")
def unhide_asset(backend: TheBackend, form: TheForm) -> RedirectResponse:
    """Show an asset again, and show its page."""
    return RedirectResponse(url("/asset", asset=hiding.unhide(backend, form.text("asset"))), 303)
