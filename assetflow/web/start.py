"""The page at the root: what this is, and where to go."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

_START = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>assetflow</title>
<h1>assetflow</h1>
<p>Flows that run when their data was updated.</p>
<ul>
<li><a href="/api/v1/assets">Assets</a></li>
<li><a href="/api/v1/consumers">Consumers</a></li>
<li><a href="/api/v1/events">Events</a></li>
<li><a href="/api/v1/decisions">Decisions</a></li>
<li><a href="/api/v1/ready">Whether it works</a></li>
<li><a href="/api/openapi.json">The API, described (OpenAPI)</a></li>
</ul>
</html>
"""


def add_pages(app: FastAPI) -> None:
    """Add the pages to the application of the API."""

    @app.get("/", include_in_schema=False)
    def start() -> HTMLResponse:  # pyright: ignore[reportUnusedFunction]
        headers = {"content-security-policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"}
        return HTMLResponse(_START, headers=headers)
