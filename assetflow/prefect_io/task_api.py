"""Prefect's REST API for code inside tasks: synchronous, with retries while the server is busy or away."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self

import httpx

from assetflow.core.values.redaction import without_passwords
from assetflow.errors import PrefectNotFound, PrefectUnauthorized, PrefectUnreachable, Unsendable
from assetflow.patience import AskAgain, Attempts
from assetflow.prefect_io import connection
from assetflow.prefect_io.answers import id_of, no_answer, read_answer
from assetflow.prefect_io.connection import Connection, read_connection

DEFAULT_PATIENCE = 30.0
# Prefect allows its temporary server 20 s, too little for a slow machine to create the tables of a new database.
_OWN_SERVER_STARTS = 120


class TaskApi:
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
        self.url = without_passwords(url.rstrip("/"))
        self.patience = patience
        self.is_over: Callable[[], bool] = lambda: False
        self._sleep = sleep
        self._clock = clock
        self._timeout = timeout
        to = Connection(url, headers or {}, verify=verify)
        self._client = httpx.Client(auth=to.user, headers=dict(to.headers), verify=to.tls(), follow_redirects=True)

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        send = partial(self._client.request, method, f"{self.url}{path}", json=body, timeout=timeout)
        try:
            response = send()
            if connection.demands_token(response):
                answer = self._client.get(
                    f"{self.url}{connection.PATH}", params=connection.token_params(), timeout=timeout
                )
                self._client.headers.update(connection.token_headers(answer))
                response = send()
        except (httpx.RequestError, OSError) as error:
            raise no_answer(error, self.url) from error
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
        raise PrefectUnreachable("no Prefect server is set", fix=name_one) from error
    except (RuntimeError, httpx.HTTPError) as error:
        raise PrefectUnreachable(
            "no Prefect server is set, and the temporary one that Prefect starts does not answer: "
            f"{str(error) or type(error).__name__}",
            fix=f"Start one with `prefect server start`. {name_one}",
        ) from error
