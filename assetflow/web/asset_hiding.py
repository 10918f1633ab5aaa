"""The buttons that hide an asset, and show it again."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from assetflow.api.backend import Backend, TheBackend
from assetflow.api.requests import Text
from assetflow.errors import Conflict, LedgerForeign
from assetflow.operations import hiding
from assetflow.web.asset_contents import asset_page, find
from assetflow.web.forms import Form, TheForm, in_words
from assetflow.web.pages import Pages, ThePages, url

router = APIRouter()


@router.get("/asset/hide")
@router.get("/asset/unhide")
def leave_hiding(asset: Text = "") -> Response:
    """Redirect to the asset: a browser asks for this address when a user reloads a refused change."""
    return RedirectResponse(url("/asset", asset=asset) if asset else "/assets", 303)


@router.post("/asset/hide")
def hide_asset(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Hide an asset, and show its page."""
    return _change(request, pages, backend, form, lambda asset: hiding.hide(backend, asset, by="the Assets view"))


@router.post("/asset/unhide")
def unhide_asset(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Show an asset again, and show its page."""
    return _change(request, pages, backend, form, lambda asset: hiding.unhide(backend, asset))


def _change(request: Request, pages: Pages, backend: Backend, form: Form, change: Callable[[str], str]) -> Response:
    found = find(backend.ledger.reader, form.text("asset"))
    try:
        return RedirectResponse(url("/asset", asset=change(found.uri)), 303)
    except (Conflict, LedgerForeign) as error:
        refused = f"Nothing was changed. {in_words(error)}"
        return asset_page(request, pages, backend, found, status=409, refused=refused)
