"""Show what an action or a deploy would lead to."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request, Response

from assetflow.api.requests import TheReader
from assetflow.core.compare import CURSOR, ShownDiff
from assetflow.core.shapes import from_json
from assetflow.core.values.words import Sign
from assetflow.errors import AssetflowError
from assetflow.operations.what_if import Preview
from assetflow.web.pages import Pages, ThePages, in_words

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


router = APIRouter()

_SIGNS: dict[str, Sign] = {
    "added": "good",
    "changed": "outdated",
    "renamed": "outdated",
    "removed": "bad",
    "refused": "bad",
    "unread": "bad",
    "runs": "busy",
    "lost": "stale",
    "replayed": "off",
}


@router.get("/diff")
def show_diff(request: Request, pages: ThePages, reader: TheReader) -> Response:
    """Show the comparison that was kept last, or how to keep one."""
    kept = reader.cursor(CURSOR)
    found = None if kept is None else from_json(ShownDiff, kept)
    return pages.show(request, "diff.html", found=found, signs=_SIGNS)
