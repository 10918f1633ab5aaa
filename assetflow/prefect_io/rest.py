"""Prefect's REST API for the evaluator: asynchronous, JSON in and out, failures of two kinds only.

Addresses, keys, CSRF tokens and TLS are those of Prefect's own client. Its retries are not: they would hold a launch
back for a minute without a word. Whoever calls decides how to go on after `PrefectUnreachable` (the same request may
work later) and `PrefectRefused` (it never will).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

import httpx
from prefect.client.orchestration import PrefectClient, get_client
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from assetflow.errors import PrefectRefused, PrefectUnreachable

Json = Mapping[str, Any]
Answer = TypeVar("Answer")

SECONDS_TO_ANSWER = 15.0
PAUSES_WHEN_BUSY = (0.1, 0.2, 0.5, 1.0, 2.0)
# Prefect's client would repeat these by itself, after a pause of two seconds at least.
_BUSY = frozenset({408, 429, 502, 503})
_NOT_FOR_GOOD = _BUSY | {425}


class PrefectApi:
    """Requests to the Prefect server that the environment names. Open it with `prefect_api()`."""

    def __init__(self, client: PrefectClient) -> None:
        self.client = client
        self.url = str(client.api_url).rstrip("/")

    async def post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Any:
        """The answer to a POST, as JSON; none when the answer is empty.

        Raises:
            PrefectUnreachable: no answer, or one that may be another later (429, 5xx, a key that is refused).
            PrefectRefused: an answer that stays what it is (404, 409, 422).
        """
        return _json(await self._send("POST", path, json=body, headers=dict(headers or {})))

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        """The answer to a GET, as JSON; none if Prefect has no such thing.

        Raises:
            PrefectUnreachable, PrefectRefused: as `post`.
        """
        return _json(await self._send("GET", path, missing_ok=True, params=dict(params or {})))

    async def patch(self, path: str, body: object) -> None:
        """Change a thing.

        Raises:
            PrefectUnreachable, PrefectRefused: as `post`.
        """
        await self._send("PATCH", path, json=body)

    async def put(self, path: str, body: object) -> None:
        """Replace a thing.

        Raises:
            PrefectUnreachable, PrefectRefused: as `post`.
        """
        await self._send("PUT", path, json=body)

    async def delete(self, path: str) -> None:
        """Delete a thing; one that is gone already is no error.

        Raises:
            PrefectUnreachable, PrefectRefused: as `post`.
        """
        await self._send("DELETE", path, missing_ok=True)

    async def _send(self, method: str, path: str, *, missing_ok: bool = False, **given: Any) -> httpx.Response:
        try:
            response = await self.client.request(cast(Any, method), cast(Any, path), **given)
        except PrefectUnreachable:
            raise
        except httpx.HTTPStatusError as error:
            response = error.response
        except (httpx.TransportError, OSError) as error:
            raise PrefectUnreachable(
                f"Prefect does not answer ({type(error).__name__})", where=self.url, fix="Is the Prefect server up?"
            ) from error
        if response.is_success or (missing_ok and response.status_code == 404):
            return response
        raise _failure(response, f"{method} {path}")


def check_address() -> None:
    """Make sure that the settings name a Prefect server.

    Raises:
        PrefectUnreachable: no address is set, or it is none.
    """
    address = PREFECT_API_URL.value()
    if not address:
        raise PrefectUnreachable(
            "there is no Prefect server to talk to: PREFECT_API_URL is not set",
            fix="Start one (`prefect server start`) and set PREFECT_API_URL, or use `assetflow dev`, which does both",
        )
    if not address.startswith(("http://", "https://")):
        raise PrefectUnreachable(
            f"PREFECT_API_URL is not an address: {address!r}", fix="Write http://127.0.0.1:4200/api, or https://…"
        )


async def patiently(ask: Callable[[], Awaitable[Answer]], *, within: float = math.inf) -> Answer:
    """The answer to what may be asked twice: asked for again when Prefect is busy, or away for some seconds.

    For what nobody repeats, a person's click or `--once`, and for the middle of a list, so that nobody begins anew.

    Parameters:
        within: seconds after which it is not asked for again.

    Raises:
        PrefectUnreachable, PrefectRefused: as `post`.
    """
    start = time.monotonic()
    for pause in PAUSES_WHEN_BUSY:
        try:
            return await ask()
        except PrefectUnreachable:
            if time.monotonic() - start + pause >= within:
                raise
            await asyncio.sleep(pause)
    return await ask()


@asynccontextmanager
async def prefect_api() -> AsyncGenerator[PrefectApi]:
    """Prefect's API within the block, at the address of the active Prefect profile or of PREFECT_API_URL.

    Raises:
        PrefectUnreachable: no address is set, or it is none.
    """
    check_address()
    with temporary_settings(updates={PREFECT_CLIENT_MAX_RETRIES: 0}):
        settings = {"timeout": SECONDS_TO_ANSWER, "event_hooks": {"response": [_give_up_when_busy]}}
        async with get_client(httpx_settings=settings) as client:
            yield PrefectApi(client)


async def _give_up_when_busy(response: httpx.Response) -> None:
    if response.status_code in _BUSY:
        await response.aread()
        raise _failure(response, f"{response.request.method} {response.request.url.path}")


def _json(response: httpx.Response) -> Any:
    if response.status_code == 404 or not response.content:
        return None
    try:
        return response.json()
    except ValueError as error:
        raise PrefectUnreachable(
            "something that is not Prefect answered", where=str(response.url), fix="Check PREFECT_API_URL"
        ) from error


def _failure(response: httpx.Response, request: str) -> PrefectRefused | PrefectUnreachable:
    status, detail = response.status_code, _detail(response)
    if status in (401, 403):
        return PrefectUnreachable(
            f"Prefect does not let us in ({status} for {request})", fix="Check PREFECT_API_KEY, PREFECT_API_AUTH_STRING"
        )
    # What has no detail was not written by Prefect but by something on the way, and says nothing about the request.
    if status >= 500 or status in _NOT_FOR_GOOD or detail is None:
        return PrefectUnreachable(f"Prefect answers {status} to {request}")
    return PrefectRefused(f"Prefect answers {status} to {request}: {detail}")


def _detail(response: httpx.Response) -> str | None:
    try:
        data = response.json()
    except ValueError:
        return None
    if not isinstance(data, Mapping):
        return None
    answer = cast(Json, data)
    detail = answer.get("detail", answer.get("exception_detail", answer.get("exception_message")))
    return None if detail is None else str(detail)[:1000]
