"""Show what an action would lead to, inside the dialog that asks for it."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import Request, Response

from assetflow.errors import AssetflowError
from assetflow.operations.what_if import Preview
from assetflow.web.forms import in_words
from assetflow.web.pages import Pages

MOST = 6


def show_preview(request: Request, pages: Pages, preview: Callable[[], Preview], title: str, nothing: str) -> Response:
    """Show what an action would lead to, or why it would be refused.

    Parameters:
        title: the heading: what the list below follows from.
        nothing: the sentence for an action that leads to nothing.
    """
    found, refused = None, ""
    try:
        found = preview()
    except AssetflowError as error:
        refused = in_words(error)
    return pages.show(
        request,
        "what_if.html",
        fragment="answer",
        preview=found,
        refused=refused,
        title=title,
        nothing=nothing,
        most=MOST,
    )
