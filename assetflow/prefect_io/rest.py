"""Prefect's REST API, asynchronous for the evaluator, synchronous for tasks: JSON, and failures of three kinds only.

Addresses, keys and TLS are those of Prefect's own client, which would import Prefect and repeat requests by itself, so
that a launch is silently delayed by a minute. The evaluator decides what to do after `PrefectUnreachable` (the same
request may succeed later), `PrefectRefused` (it never will) and `Unsendable` (the request cannot be written). A task
repeats a request while the server is busy or away.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from typing import Any, Self, TypeVar, cast

import httpx

from assetflow.core.values.addresses import without_passwords
from assetflow.errors import (
    PrefectNotFound,
    PrefectRefused,
    PrefectUnauthorized,
    PrefectUnreachable,
    PrefectUnset,
    Unsendable,
)
from assetflow.prefect_io.connection import (
    AskAgain,
    Attempts,
    Connection,
    id_of,
    no_answer,
    read_answer,
    read_connection,
    unreadable,
)
from assetflow.prefect_io.names import LEDGER_VARIABLE

Json = Mapping[str, Any]
Answer = TypeVar("Answer")

SECONDS_TO_ANSWER = 15.0
_JSON = {"Content-Type": "application/json"}
DEFAULT_PATIENCE = 30.0
# Prefect allows its temporary server 20 s, too little for a slow machine to create the tables of a new database.
_OWN_SERVER_STARTS = 120
# Six attempts that time out take 90 s. A server that asks for a longer pause is left to the caller.
WHEN_BUSY = AskAgain(seconds=120, times=5, first_pause=0.125)
# More than Prefect's own limit of 16: requests that hang must not keep all others waiting for a connection.
_LIMITS = httpx.Limits(max_connections=64, max_keepalive_connections=8, keepalive_expiry=25)
_ENCODE = (
    "Write http://host:4200/api, with user:password@ before the host; "
    "in a password, %40 for @, %2F for /, %3A for : and %23 for #"
)


class _Api:
    """What both clients of one Prefect server have in common.

    Attributes:
        url: the address for requests and messages, without user and password.
    """

    def __init__(self, url: str) -> None:
        self.url = without_passwords(url.rstrip("/"))

    @contextmanager
    def _answered(self) -> Generator[None]:
        try:
            yield
        except (httpx.RequestError, OSError) as error:
            raise no_answer(error, self.url) from error


class PrefectApi(_Api):
    """The API of the Prefect server in the settings. Open it with `prefect_api()`.

    Attributes:
        connect_url: the address with user and password, for the event stream.
    """

    def __init__(self, url: str, client: httpx.AsyncClient) -> None:
        super().__init__(url)
        self.connect_url = url.rstrip("/")
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
        with self._answered():
            given |= _written(body, method, path, headers)
            response = await self._client.request(method, f"{self.url}{path}", **given)
        return read_answer(response, f"{method} {path}", self.url)


def check_address() -> None:
    """Check that the settings have the address of a Prefect server.

    Raises:
        PrefectUnset: no address is set, or it is not an address.
    """
    address = read_connection().url
    if not address:
        raise PrefectUnset(
            "there is no Prefect server to talk to: PREFECT_API_URL is not set",
            fix="Start one (`prefect server start`) and set PREFECT_API_URL, or use `assetflow dev`, which does both",
        )
    if not address.startswith(("http://", "https://")):
        raise PrefectUnset(
            f"PREFECT_API_URL is not an address: {address.rpartition('@')[2]!r}",
            fix="Write http://127.0.0.1:4200/api, or https://…",
        )
    try:
        httpx.URL(address)
    except httpx.InvalidURL:
        # Do not chain the error: its text may show a part of a password.
        raise PrefectUnset("PREFECT_API_URL cannot be read as an address", fix=_ENCODE) from None


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
    async with httpx.AsyncClient(**to.for_clients(), timeout=SECONDS_TO_ANSWER, limits=_LIMITS) as client:
        yield PrefectApi(to.url, client)


def _written(body: object, method: str, path: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what a client sends with a request that has this body; nothing for `None`."""
    if body is None:
        return {}
    try:
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Unsendable(f"{method} {path} cannot be sent: {error}") from error
    return {"content": content, "headers": {**_JSON, **(headers or {})}}


class TaskApi(_Api):
    """Calls to one Prefect server. A context manager; safe to share between threads.

    Parameters:
        url: address of the API, ending in `/api`.
        headers: sent with each request.
        timeout: seconds that one request may take.
        patience: seconds for which a call is repeated while the server is busy or away, with growing pauses or those
            that it asks for.
        verify: True to check the server's certificate, False not to, or a file of authorities to check it with.
        sleep, clock: the time functions, which tests replace.

    Attributes:
        is_over: called before each request; once it returns True, nothing is sent any more.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        patience: float = DEFAULT_PATIENCE,
        verify: bool | str = True,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(url)
        self.patience = patience
        self.is_over: Callable[[], bool] = lambda: False
        self._sleep = sleep
        self._clock = clock
        self._timeout = timeout
        self._client = httpx.Client(**Connection(url, headers or {}, verify=verify).for_clients())

    @classmethod
    def connect(cls, *, patience: float = DEFAULT_PATIENCE) -> TaskApi:
        """Connect to the server in Prefect's settings, with their key, headers, certificate and time limit.

        Without an address in the settings, connect to the temporary server that Prefect itself uses in that case.

        Raises:
            PrefectUnreachable: no address is set, and Prefect may not start a server, or its server does not answer
                within two minutes (or PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS, if that is more).
        """
        to = read_connection()
        url = to.url or _own_server()
        return cls(url, headers=to.headers, timeout=to.timeout, patience=patience, verify=to.verify)

    def get(self, path: str) -> object:
        """Return the JSON of a resource.

        Raises:
            PrefectNotFound: it does not exist.
            PrefectUnreachable, PrefectRefused: as `post`.
        """
        return self._call("GET", path, None, self.patience)

    def post(self, path: str, body: object, *, patience: float | None = None) -> object:
        """Send JSON and return the JSON of the answer, or `None` if it is empty.

        Parameters:
            patience: the seconds for retries, instead of the connection's.

        Raises:
            PrefectUnauthorized: the server does not accept the key or the password.
            PrefectUnreachable: the server did not answer, or was busy, for the whole time.
            PrefectRefused: the server answered with an error that a retry does not change.
        """
        return self._call("POST", path, body, self.patience if patience is None else patience)

    def create(self, path: str, body: object) -> Mapping[str, object]:
        """Create a resource and return it as Prefect has stored it.

        An answer without an id is not Prefect's, so that it does not count: what has to be durable may not be stored.

        Raises:
            PrefectUnauthorized, PrefectUnreachable, PrefectRefused: as `post`.
        """
        return self._call("POST", path, body, self.patience, check=id_of)

    def delete(self, path: str) -> None:
        """Delete a resource, unless it is gone already.

        Raises:
            PrefectUnreachable, PrefectRefused: as `post`.
        """
        with suppress(PrefectNotFound):
            self._call("DELETE", path, None, self.patience)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(
        self, method: str, path: str, body: object, patience: float, check: Callable[[object], object] | None = None
    ) -> Any:
        attempts = AskAgain(patience).start(self._clock)
        while True:
            try:
                answer = self._send(method, path, body, attempts)
                if check is not None:
                    check(answer)
                return answer
            except PrefectUnauthorized:
                raise
            except PrefectUnreachable as error:
                pause = attempts.pause(error.retry_after)
                if pause is None:
                    message = f"{error.message} (tried for {patience:g} s)"
                    failure = PrefectUnreachable(message, where=error.where, fix=error.fix)
                    failure.is_busy = error.is_busy
                    raise failure from error
            self._sleep(pause)

    def _send(self, method: str, path: str, body: object, attempts: Attempts) -> Any:
        """Send one request, for at most the time that is left, and return the JSON of the answer."""
        if self.is_over():
            raise Unsendable(f"{method} {path} is not sent: the attempt of the task is over")
        timeout = max(0.1, min(self._timeout, attempts.left))
        with self._answered():
            response = self._client.request(
                method, f"{self.url}{path}", timeout=timeout, **_written(body, method, path)
            )
        return read_answer(response, f"{method} {path}", self.url)


def _own_server() -> str:
    from prefect.client.orchestration import get_client
    from prefect.settings import (
        PREFECT_SERVER_ANALYTICS_ENABLED,
        PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS,
        temporary_settings,
    )

    name_one = "Set PREFECT_API_URL, as in http://127.0.0.1:4200/api"
    starts = max(_OWN_SERVER_STARTS, PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS.value())
    patient = temporary_settings(updates={PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS: starts})
    # Its telemetry would compete with our first request on a new database, and log a traceback if it loses.
    silent = temporary_settings(updates={PREFECT_SERVER_ANALYTICS_ENABLED: False})
    try:
        with patient, silent:
            return str(get_client(sync_client=True).api_url)
    except ValueError as error:
        raise PrefectUnset("no Prefect server is set", fix=name_one) from error
    except (RuntimeError, httpx.HTTPError) as error:
        raise PrefectUnreachable(
            "no Prefect server is set, and the temporary one that Prefect starts does not answer: "
            f"{str(error) or type(error).__name__}",
            fix=f"Start one with `prefect server start`. {name_one}",
        ) from error


BY_NAME = f"/variables/name/{LEDGER_VARIABLE}"
SECONDS_FOR_A_VALUE = 1.0
SECONDS_WHILE_BUSY = 10.0
# The cursor that holds the id of the ledger that has taken Prefect over from this one.
TAKEN_OVER = "taken-over"


def deciding_ledger() -> str | None:
    """Return the id of the ledger that decides for the Prefect in the settings, or `None` if Prefect knows none.

    A busy Prefect is asked for longer than one that is away.

    Raises:
        PrefectUnreachable, PrefectRefused: nobody knows which ledger decides.
    """
    try:
        return _asked(SECONDS_FOR_A_VALUE)
    except PrefectUnreachable as error:
        if not error.is_busy:
            raise
    return _asked(SECONDS_WHILE_BUSY)


def _asked(patience: float) -> str | None:
    with TaskApi.connect(patience=patience) as api:
        try:
            variable = cast("Mapping[str, object]", api.get(BY_NAME))
            return str(variable["value"])
        except PrefectNotFound:
            return None
        except (KeyError, TypeError) as error:
            raise unreadable(error, api.url) from error


# The field of a Secret block, and those that blocks for databases and brokers have.
_FIELDS = ("value", "url", "connection_string")


async def read_url_block(api: PrefectApi, name: str) -> str | None:
    """Return the URL that a block holds, or `None` if there is no such block, or no URL in it.

    Parameters:
        name: the slug of the block's type and the block's name, such as `secret/orders-queue`.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    kind, _, own = name.partition("/")
    try:
        found = await api.get(f"/block_types/slug/{kind}/block_documents/name/{own}", {"include_secrets": "true"})
    except PrefectNotFound:
        return None
    data = cast("Mapping[str, Mapping[str, object]]", found or {}).get("data", {})
    return next((value for field in _FIELDS if isinstance(value := data.get(field), str)), None)
