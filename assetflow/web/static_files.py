"""Serve styles, scripts and vendored libraries, each at an address with a hash, so that browsers can cache them."""

from __future__ import annotations

import mimetypes
import os
from functools import cache
from hashlib import blake2b
from pathlib import Path
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

# Python does not know it.
mimetypes.add_type("font/woff2", ".woff2")

FOLDER = Path(__file__).parent / "static"
_FOREVER = "public, max-age=31536000, immutable"


def address_of(path: str) -> str:
    """Return the address of a file, with the hash of its content."""
    return f"/static/{path}?v={mark_of(FOLDER / path)}"


@cache
def mark_of(file: Path) -> str:
    """Return the hash of a file's content."""
    return blake2b(file.read_bytes(), digest_size=6).hexdigest()


class MarkedFiles(StaticFiles):
    """The files below `/static`. Browsers cache a file for ever if they ask for it with the right hash."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("v")
        # An address with another hash comes from a page of another version, which wants another content.
        if asked == [mark_of(Path(full_path))]:
            response.headers["cache-control"] = _FOREVER
        return response
