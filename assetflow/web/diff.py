"""The page of what a deploy would change, as `assetflow diff --page` has kept it. It runs no flows."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from assetflow.api.requests import TheReader
from assetflow.core.compare import CURSOR, ShownDiff
from assetflow.core.shapes import from_json
from assetflow.core.values.states import Sign
from assetflow.web.pages import ThePages

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
