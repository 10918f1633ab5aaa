"""Answer a form that was sent with an old token: what was typed is not lost, and can be sent again."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response

from assetflow.web.forms import StaleForm, in_words
from assetflow.web.login import LOGIN
from assetflow.web.pages import Pages

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
