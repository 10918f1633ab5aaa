"""How to reach Prefect's API: its address, and what goes with each request.

Importing Prefect takes more than a second of CPU time, which is too long for a command that asks it one thing. So, as
long as nothing has imported Prefect, its settings are read here if they are in the environment or in the active
profile. If there is anything else that Prefect may take them from, Prefect itself reads them.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import sys
import tomllib
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import httpx

from assetflow.core.values.addresses import without_passwords

_URL, _KEY, _AUTH_STRING = "PREFECT_API_URL", "PREFECT_API_KEY", "PREFECT_API_AUTH_STRING"
_HEADERS, _HOME = "PREFECT_CLIENT_CUSTOM_HEADERS", "PREFECT_HOME"
_READ_HERE = frozenset({_URL, _KEY, _AUTH_STRING, _HEADERS, _HOME})
# Settings with other names do not change how the API is reached.
_ABOUT_REACHING = (
    "PREFECT_API_",
    "PREFECT_CLIENT_",
    "PREFECT_CLOUD_",
    "PREFECT_PROFILE",
    "PREFECT_TEST",
    "PREFECT_UNIT_TEST",
)
_SECONDS_TO_ANSWER = 60.0


@dataclass(frozen=True)
class Connection:
    """Prefect's settings for its API.

    Attributes:
        url: the address, ending in `/api`; empty if none is set.
        headers: sent with each request; they may contain a secret.
        timeout: seconds that a request may take.
        verify: True to check the server's certificate, False not to, or a file of authorities to check it with.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)
    timeout: float = _SECONDS_TO_ANSWER
    verify: bool | str = True

    def for_clients(self) -> dict[str, Any]:
        """Return what both of httpx's clients are opened with."""
        given = {"auth": PrefectAuth(self), "headers": dict(self.headers), "verify": self.tls()}
        return given | {"follow_redirects": True}

    def tls(self) -> bool | ssl.SSLContext:
        """Return what httpx checks the server's certificate with."""
        if not self.url.startswith("https"):
            # Loading the authorities takes longer than a request, and plain HTTP does not need them.
            return False
        return ssl.create_default_context(cafile=self.verify) if isinstance(self.verify, str) else self.verify


def user_of(url: str) -> tuple[str, str] | None:
    """Return the user and the password in an address, or `None`. Clients log addresses, so they go in a header."""
    parts = urlsplit(url)
    return None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))


def read_connection() -> Connection:
    """Return the settings that Prefect's own client uses now."""
    plain = None if "prefect" in sys.modules else _plainly_set()
    return _from_prefect() if plain is None else plain


def _from_prefect() -> Connection:
    from prefect.settings import PREFECT_API_URL, get_current_settings

    api = get_current_settings().api
    verify: bool | str = not api.tls_insecure_skip_verify
    if verify and api.ssl_cert_file:
        verify = str(api.ssl_cert_file)
    return Connection(PREFECT_API_URL.value() or "", request_headers(), float(api.request_timeout), verify)


def _plainly_set() -> Connection | None:
    """Return the settings of the environment and the active profile, or `None` if Prefect has to read them."""
    try:
        if _is_configured_by_files(Path.cwd()):
            return None
        given = {name.upper(): value for name, value in os.environ.items()}
        given = _active_profile(given.get(_HOME)) | given
        others = [name for name in given if name.startswith(_ABOUT_REACHING) and name not in _READ_HERE]
        if others or not all(given.get(name, "-") for name in _READ_HERE):
            return None
        headers = json.loads(given.get(_HEADERS, "{}"))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if not given.get(_URL, "").startswith("http") or not _is_texts(headers):
        return None
    authorization = _authorization(given.get(_AUTH_STRING), given.get(_KEY))
    return Connection(given[_URL], headers | authorization, verify=os.environ.get("SSL_CERT_FILE") or True)


def _is_configured_by_files(folder: Path) -> bool:
    """Return True if Prefect may find settings in files of this folder."""
    project = folder / "pyproject.toml"
    return (
        (folder / ".env").exists()
        or (folder / "prefect.toml").exists()
        or (project.exists() and "[tool.prefect" in project.read_text(encoding="utf-8"))
    )


def _active_profile(home: str | None) -> dict[str, str]:
    """Return the settings of the profile that is active if the environment names none."""
    place = (Path(home).expanduser() if home else Path.home() / ".prefect") / "profiles.toml"
    if not place.exists():
        return {}
    content = tomllib.loads(place.read_text(encoding="utf-8"))
    profile = cast("dict[str, Any]", content["profiles"][content["active"]])
    return {name.upper(): value if isinstance(value, str) else json.dumps(value) for name, value in profile.items()}


def _authorization(auth_string: str | None, key: str | None) -> dict[str, str]:
    if auth_string is not None:
        return {"Authorization": f"Basic {_encoded(auth_string)}"}
    return {} if key is None else {"Authorization": f"Bearer {key}"}


def _is_texts(headers: object) -> bool:
    return isinstance(headers, dict) and all(
        isinstance(value, str) for value in cast("dict[str, object]", headers).values()
    )


def request_headers() -> dict[str, str]:
    """Return the headers for every request: those in Prefect's settings, and the authorization."""
    from prefect.settings import get_current_settings

    settings = get_current_settings()
    secrets = (settings.api.auth_string, settings.api.key)
    shown = (None if each is None else each.get_secret_value() for each in secrets)
    return dict(settings.client.custom_headers) | _authorization(*shown)


def event_stream_token() -> str | None:
    """Return the token for the first message on the event stream, or `None` if the settings have no credentials."""
    from prefect.settings import get_current_settings

    api = get_current_settings().api
    secret = api.auth_string or api.key
    return None if secret is None else secret.get_secret_value()


class PrefectAuth(httpx.Auth):
    """What the requests of a client bear: the user in the address, and the token that a server may demand.

    A server with protection against forged requests refuses a write without a token. The client then asks for one, and
    sends the request again.
    """

    requires_response_body = True

    def __init__(self, to: Connection) -> None:
        self._token_url = f"{without_passwords(to.url.rstrip('/'))}/csrf-token"
        user = user_of(to.url)
        self._headers = {} if user is None else {"Authorization": f"Basic {_encoded(':'.join(user))}"}

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send a request, once more with a token if the server demands one."""
        request.headers.update(self._headers)
        response = yield request
        if response.status_code != HTTPStatus.FORBIDDEN or "CSRF" not in response.text:
            return
        client = str(uuid4())
        answer = yield httpx.Request("GET", self._token_url, params={"client": client}, headers=self._headers)
        if answer.is_success:
            self._headers |= {"Prefect-Csrf-Token": answer.json()["token"], "Prefect-Csrf-Client": client}
            request.headers.update(self._headers)
        yield request


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
