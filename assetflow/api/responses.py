"""Answers: JSON in ASCII, so that any text of a user can be sent, and an ETag with each that was read."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from hashlib import blake2b
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute


class Json(JSONResponse):
    """One JSON document. What is not ASCII is escaped: a lone surrogate in a user's extra has no UTF-8."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class EtagRoute(APIRoute):
    """A route whose answers to GET have an ETag, and are not sent again to whoever has them (304)."""

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
