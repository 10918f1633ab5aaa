"""Prefect's REST API for code that runs inside tasks: synchronous, patient with a busy server, clear about the rest."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self
from uuid import uuid4

import httpx
from prefect.client.orchestration import get_client
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_SERVER_ANALYTICS_ENABLED,
    PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS,
    get_current_settings,
    temporary_settings,
)

from assetflow.errors import PrefectRefused, PrefectUnreachable
from assetflow.patience import Patience, is_busy
from assetflow.prefect_io.credentials import request_headers

DEFAULT_PATIENCE = 30.0
# Prefect gives its temporary server 20 s, in which a slow machine does not even make the tables of a new database.
_OWN_SERVER_STARTS = 120
_SHOWN = 500


class TaskApi:
    """Calls to one Prefect server. A context manager; safe to share between threads.

    Parameters:
        url: address of the API, ending in `/api`.
        headers: sent with each request.
        timeout: seconds that one request may take.
        patience: seconds for which a call is repeated while the server is busy, away or failing (429, 5xx, time-outs,
            refused connections), with growing pauses or those that it asks for.
        verify: check the server's certificate: true, false, or a file of authorities.
        sleep, clock: time, to be replaced in tests.
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
        self.url = url.rstrip("/")
        self.patience = patience
        self._sleep = sleep
        self._clock = clock
        self._timeout = timeout
        # Loading the authorities takes longer than a request; plain HTTP has no use for them.
        tls = _tls(verify) if self.url.startswith("https") else False
        self._client = httpx.Client(headers=dict(headers or {}), verify=tls, follow_redirects=True)

    @classmethod
    def connect(cls, *, patience: float = DEFAULT_PATIENCE) -> TaskApi:
        """The server that Prefect's settings name, with their key, headers, certificate and time limit.

        Without an address in the settings it is the temporary server that Prefect itself uses then.

        Raises:
            PrefectUnreachable: there is no address, and Prefect may not start a server, or the one it starts does not
                answer within two minutes (or PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS, if that is more).
        """
        api = get_current_settings().api
        verify: bool | str = not api.tls_insecure_skip_verify
        if verify and api.ssl_cert_file:
            verify = str(api.ssl_cert_file)
        url = PREFECT_API_URL.value() or _own_server()
        return cls(url, headers=request_headers(), timeout=float(api.request_timeout), patience=patience, verify=verify)

    def get(self, path: str) -> object:
        """The JSON of a resource."""
        return self._call("GET", path, None, self.patience).json()

    def post(self, path: str, body: object, *, patience: float | None = None) -> object:
        """Send JSON; the JSON of the answer, none for an empty one.

        Parameters:
            patience: seconds, instead of the connection's.

        Raises:
            PrefectUnreachable: no answer, or none but "busy", within the patience.
            PrefectRefused: an error that a repetition does not change.
        """
        response = self._call("POST", path, body, self.patience if patience is None else patience)
        return response.json() if response.content else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def _call(self, method: str, path: str, body: object, patience: float) -> httpx.Response:
        left = Patience(patience, sleep=self._sleep, clock=self._clock)
        while True:
            asked: float | None = None
            try:
                response = self._send(method, path, body, left)
                if not is_busy(response.status_code):
                    return self._accepted(response, method, path)
                problem, cause = f"answers {response.status_code} ({_text(response)})", None
                asked = _retry_after(response)
            except httpx.TransportError as error:
                problem, cause = f"does not answer: {error or type(error).__name__}", error
            if not left.pause(asked):
                raise PrefectUnreachable(
                    f"Prefect's API {problem}, for {patience:g} s",
                    where=f"{method} {self.url}{path}",
                    fix="Check that the server runs and that PREFECT_API_URL is its address",
                ) from cause

    def _send(self, method: str, path: str, body: object, patience: Patience) -> httpx.Response:
        """One request, never longer than the patience lasts."""
        timeout = max(0.1, min(self._timeout, patience.left))
        response = self._client.request(method, f"{self.url}{path}", json=body, timeout=timeout)
        if response.status_code == 403 and "CSRF" in response.text:
            self._fetch_csrf_token(timeout)
            response = self._client.request(method, f"{self.url}{path}", json=body, timeout=timeout)
        return response

    def _fetch_csrf_token(self, timeout: float) -> None:
        client = str(uuid4())
        answer = self._client.get(f"{self.url}/csrf-token", params={"client": client}, timeout=timeout)
        if answer.is_success:
            self._client.headers.update({"Prefect-Csrf-Token": answer.json()["token"], "Prefect-Csrf-Client": client})

    def _accepted(self, response: httpx.Response, method: str, path: str) -> httpx.Response:
        where = f"{method} {self.url}{path}"
        if not response.is_success:
            key = response.status_code in (401, 403)
            raise PrefectRefused(
                f"Prefect's API answers {response.status_code}: {_text(response)}",
                where=where,
                fix="Check PREFECT_API_KEY or PREFECT_API_AUTH_STRING" if key else "",
            )
        if response.content and "json" not in response.headers.get("content-type", ""):
            raise PrefectRefused(
                f"the answer is no JSON: {_text(response)}",
                where=where,
                fix="PREFECT_API_URL must be the address of the API, as in http://127.0.0.1:4200/api",
            )
        return response


def _tls(verify: bool | str) -> bool | ssl.SSLContext:
    return ssl.create_default_context(cafile=verify) if isinstance(verify, str) else verify


def _own_server() -> str:
    name_one = "Set PREFECT_API_URL, as in http://127.0.0.1:4200/api"
    starts = max(_OWN_SERVER_STARTS, PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS.value())
    patient = temporary_settings(updates={PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS: starts})
    # Its report of itself would meet our first request on a new database, and show a traceback when it loses.
    silent = temporary_settings(updates={PREFECT_SERVER_ANALYTICS_ENABLED: False})
    try:
        with patient, silent:
            return str(get_client(sync_client=True).api_url)
    except ValueError as error:
        raise PrefectUnreachable("no Prefect server is named", fix=name_one) from error
    except (RuntimeError, httpx.HTTPError) as error:
        raise PrefectUnreachable(
            "no Prefect server is named, and the one that Prefect starts itself does not answer: "
            f"{error or type(error).__name__}",
            fix=f"Start one with `prefect server start`. {name_one}",
        ) from error


def _retry_after(response: httpx.Response) -> float | None:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.replace(".", "", 1).isdigit() else None


def _text(response: httpx.Response) -> str:
    return " ".join(response.text.split())[:_SHOWN] or "empty"
