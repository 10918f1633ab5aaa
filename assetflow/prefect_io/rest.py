"""Prefect's REST API for the evaluator: asynchronous, JSON in and out, failures of three kinds only.

Addresses, keys and TLS are those of Prefect's own client, which would import Prefect and repeat requests by itself, so
that a launch is silently delayed by a minute. The caller decides what to do after `PrefectUnreachable` (the same
request may succeed later), `PrefectRefused` (it never will) and `Unsendable` (the request cannot be written).
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar

import httpx

from assetflow.core.values.redaction import without_passwords
from assetflow.errors import PrefectNotFound, PrefectRefused, PrefectUnauthorized, PrefectUnreachable, Unsendable
from assetflow.patience import AskAgain
from assetflow.prefect_io import connection
from assetflow.prefect_io.answers import no_answer, read_answer
from assetflow.prefect_io.connection import read_connection

Json = Mapping[str, Any]
Answer = TypeVar("Answer")

SECONDS_TO_ANSWER = 15.0
_JSON = {"Content-Type": "application/json"}
# Six attempts that time out take 90 s. A server that asks for a longer pause is left to the caller.
WHEN_BUSY = AskAgain(seconds=120, times=5, first_pause=0.125)
# More than Prefect's own limit of 16: requests that hang must not keep all others waiting for a connection.
_LIMITS = httpx.Limits(max_connections=64, max_keepalive_connections=8, keepalive_expiry=25)
_ENCODE = (
    "Write http://host:4200/api, with user:password@ before the host; "
    "in a password, %40 for @, %2F for /, %3A for : and %23 for #"
)


class PrefectApi:
    """The API of the Prefect server in the settings. Open it with `prefect_api()`.

    Attributes:
        url: the address for requests and messages, without user and password.
        connect_url: the address with them, for the event stream.
    """

    def __init__(self, url: str, client: httpx.AsyncClient) -> None:
        self.connect_url = url.rstrip("/")
        self.url = without_passwords(self.connect_url)
        self._client = client

    async def post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Any:
        """Send a POST and return the JSON of the answer, or `None` if it is empty.

        Raises:
            PrefectUnauthorized: the server does not accept the key or the password.
            PrefectUnreachable: no answer, or one that may change later (429, 5xx).
            PrefectRefused: an answer that will not change (404, 409, 422).
            Unsendable: the body cannot be written as JSON; nothing was sent.
        """
        return await self._send("POST", path, body, headers=headers)

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        """Send a GET and return the JSON of the answer, or `None` if the object does not exist.

        Raises:
            PrefectUnreachable, PrefectRefused: as `post`.
        """
        try:
            return await self._send("GET", path, params=dict(params or {}))
        except PrefectNotFound:
            return None

    async def patch(self, path: str, body: object) -> None:
        """Change an object.

        Raises:
            PrefectUnreachable, PrefectRefused: as `post`.
        """
        await self._send("PATCH", path, body)

    async def put(self, path: str, body: object) -> None:
        """Replace an object.

        Raises:
            PrefectUnreachable, PrefectRefused: as `post`.
        """
        await self._send("PUT", path, body)

    async def delete(self, path: str) -> None:
        """Delete an object, unless it is already gone.

        Raises:
            PrefectUnreachable, PrefectRefused: as `post`.
        """
        with suppress(PrefectNotFound):
            await self._send("DELETE", path)

    async def is_prefect(self) -> bool:
        """Return True if a Prefect server answers at this address now, and not a proxy in front of it."""
        return await self._answer_at("/health") is True or isinstance(await self._answer_at("/admin/version"), str)

    async def _answer_at(self, path: str) -> object:
        with suppress(PrefectUnreachable, PrefectRefused):
            return await self.get(path)
        return None

    async def _send(
        self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None, **given: Any
    ) -> Any:
        request = f"{method} {path}"
        if body is not None:
            given |= {"content": _written(body, request), "headers": {**_JSON, **(headers or {})}}
        try:
            response = await self._client.request(method, f"{self.url}{path}", **given)
            if connection.demands_token(response):
                answer = await self._client.get(f"{self.url}{connection.PATH}", params=connection.token_params())
                self._client.headers.update(connection.token_headers(answer))
                response = await self._client.request(method, f"{self.url}{path}", **given)
        except (httpx.RequestError, OSError) as error:
            raise no_answer(error, self.url) from error
        return read_answer(response, request, self.url)


def check_address() -> None:
    """Check that the settings have the address of a Prefect server.

    Raises:
        PrefectUnreachable: no address is set, or it is not an address.
    """
    address = read_connection().url
    if not address:
        raise PrefectUnreachable(
            "there is no Prefect server to talk to: PREFECT_API_URL is not set",
            fix="Start one (`prefect server start`) and set PREFECT_API_URL, or use `assetflow dev`, which does both",
        )
    if not address.startswith(("http://", "https://")):
        raise PrefectUnreachable(
            f"PREFECT_API_URL is not an address: {address.rpartition('@')[2]!r}",
            fix="Write http://127.0.0.1:4200/api, or https://…",
        )
    try:
        httpx.URL(address)
    except httpx.InvalidURL:
        # Do not chain the error: its text may show a part of a password.
        raise PrefectUnreachable("PREFECT_API_URL cannot be read as an address", fix=_ENCODE) from None


async def patiently(ask: Callable[[], Awaitable[Answer]], *, within: float = math.inf) -> Answer:
    """Return the answer of `ask`, which is called again while Prefect is busy, or away for some seconds.

    For calls that nothing repeats, such as a user's click or `--once`, and for a page in the middle of a list.

    Parameters:
        ask: sends the request; it has to be safe to repeat.
        within: the seconds after which it is not called again.

    Raises:
        PrefectUnauthorized, PrefectRefused: as `post`, at once.
        PrefectUnreachable: as `post`, after the last attempt.
    """
    attempts = replace(WHEN_BUSY, seconds=min(within, WHEN_BUSY.seconds)).start()
    while True:
        try:
            return await ask()
        except PrefectUnauthorized:
            raise
        except PrefectUnreachable as error:
            pause = attempts.pause(error.retry_after)
            if pause is None:
                raise
        await asyncio.sleep(pause)


@asynccontextmanager
async def prefect_api() -> AsyncGenerator[PrefectApi]:
    """Open Prefect's API for the block, at the address of PREFECT_API_URL or of the active Prefect profile.

    Raises:
        PrefectUnreachable: no address is set, or it is not an address.
    """
    check_address()
    to = read_connection()
    async with httpx.AsyncClient(
        auth=to.user,
        headers=dict(to.headers),
        verify=to.tls(),
        timeout=SECONDS_TO_ANSWER,
        limits=_LIMITS,
        follow_redirects=True,
    ) as client:
        yield PrefectApi(to.url, client)


def _written(body: object, request: str) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Unsendable(f"{request} cannot be sent: {error}") from error
