"""Responses: JSON in ASCII, which can carry any user's text, and ETags for GET requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from hashlib import blake2b
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute


class Json(JSONResponse):
    """A JSON document in ASCII, with all other characters escaped: a lone surrogate in an extra has no UTF-8 form."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class EtagRoute(APIRoute):
    """A route that answers GET with an ETag, and with 304 if the client already has the response."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def tagged(request: Request) -> Response:
            response = await answer(request)
            if request.method != "GET" or response.status_code != 200:
                return response
            tag = f'"{blake2b(bytes(response.body), digest_size=12).hexdigest()}"'
            known = [each.strip() for each in request.headers.get("if-none-match", "").split(",")]
            headers = {"etag": tag, "cache-control": "private, no-cache"}
            if tag in known or "*" in known:
                return Response(status_code=304, headers=headers)
            response.headers.update(headers)
            return response

        return tagged
