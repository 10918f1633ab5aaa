"""The token against forged requests (CSRF) that a Prefect server can demand with each write, for both clients."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from uuid import uuid4

import httpx

PATH = "/csrf-token"


def demands_token(response: httpx.Response) -> bool:
    """Return True if the server refuses a write because it has no valid token."""
    return response.status_code == HTTPStatus.FORBIDDEN and "CSRF" in response.text


def token_params() -> Mapping[str, str]:
    """Return the parameters of a GET of `PATH` that asks for a token."""
    return {"client": str(uuid4())}


def token_headers(answer: httpx.Response) -> Mapping[str, str]:
    """Return the headers that each later request has to bear, from the answer with the token; empty if it has none."""
    if not answer.is_success:
        return {}
    client = answer.request.url.params["client"]
    return {"Prefect-Csrf-Token": answer.json()["token"], "Prefect-Csrf-Client": client}
