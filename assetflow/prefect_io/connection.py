"""How to reach Prefect's API, what an answer of it means, and when a request is sent again: the same for every client.

Importing Prefect takes more than a second of CPU time, which is too long for a command that asks it one thing. So, as
long as nothing has imported Prefect, its settings are read here if they are in the environment or in the active
profile. If there is anything else that Prefect may take them from, Prefect itself reads them.

A proxy or a router may answer in Prefect's place for a while. Only an answer that Prefect itself can have given counts
as a refusal. After every other answer, the same request may succeed later.
"""

from __future__ import annotations

import base64
import json
import math
import os
import random
import ssl
import sys
import time
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit
from uuid import UUID, uuid4

import httpx

from assetflow.core.values.addresses import without_passwords
from assetflow.errors import PrefectNotFound, PrefectRefused, PrefectUnauthorized, PrefectUnreachable

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
# FastAPI's answer for an unknown path. For an unknown object, Prefect answers "… not found".
_NO_SUCH_PATH = "Not Found"
# The statuses with which a server says that it is overloaded.
_OVERLOADED = frozenset({429, 503})
_IS_API = (
    "Check that PREFECT_API_URL is the address of the API, as in http://127.0.0.1:4200/api, "
    "and what is between here and the Prefect server"
)
_DETAILS = ("detail", "exception_detail", "exception_message")
_SHOWN = 500


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


def read_answer(response: httpx.Response, request: str, address: str) -> Any:
    """Return the JSON of an answer, or `None` if the answer is empty.

    Parameters:
        response: the answer, read to its end.
        request: the request for messages, as in `POST /artifacts/`.
        address: the address of the API for messages, without a password.

    Raises:
        PrefectNotFound: Prefect does not know the object that the request names.
        PrefectRefused: Prefect refuses the request, and will refuse it again.
        PrefectUnauthorized: the key or the password is wrong or missing (401, 403).
        PrefectUnreachable: any other answer: a busy server, an error without a detail, a success that is not JSON.
            The same request may succeed later, after `retry_after` seconds if the server names a time.
    """
    if not response.is_success:
        raise _failure(response, request, address)
    try:
        return response.json() if response.content else None
    except ValueError as error:
        raise _not_prefect(response, request, address) from error


def id_of(answer: object) -> UUID:
    """Return the id of the object that Prefect has answered with.

    Raises:
        PrefectUnreachable: the answer has no id, so it does not come from Prefect.
    """
    try:
        return UUID(str(cast("Mapping[str, object]", answer)["id"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _no_object("its answer has no id") from error


def objects_of(answer: object) -> Sequence[Mapping[str, Any]]:
    """Return the objects that Prefect has listed.

    Raises:
        PrefectUnreachable: the answer is not a list of objects, so it does not come from Prefect.
    """
    if not isinstance(answer, list):
        raise _no_object("its answer is not a list")
    listed = cast("list[object]", answer)
    if not all(isinstance(each, Mapping) for each in listed):
        raise _no_object("its list is not one of objects")
    return cast("list[Mapping[str, Any]]", listed)


def no_answer(error: Exception, address: str) -> PrefectUnreachable:
    """Return the error for a request that got no answer: the connection was refused, was lost or timed out."""
    return PrefectUnreachable(
        f"Prefect does not answer: {str(error) or type(error).__name__}",
        where=address,
        fix="Check that the Prefect server is running (`prefect server start`) and that PREFECT_API_URL is its address",
    )


def unreadable(error: Exception, address: str) -> PrefectUnreachable:
    """Return the error for an answer that is JSON, but not in a form in which Prefect answers."""
    return PrefectUnreachable(
        f"something that is not Prefect's API answers: {type(error).__name__}: {error}", where=address, fix=_IS_API
    )


def unconfirmed(refusal: PrefectRefused) -> PrefectUnreachable:
    """Return the error for a refusal that comes from something on the way, as far as Prefect's other answers tell."""
    return PrefectUnreachable(f"{refusal.message}; Prefect itself does not confirm it")


def _failure(response: httpx.Response, request: str, address: str) -> PrefectRefused | PrefectUnreachable:
    status, detail = response.status_code, _detail(response)
    if status in UNAUTHORIZED:
        return PrefectUnauthorized(
            f"Prefect does not let us in ({status} for {request})",
            where=address,
            fix="Check PREFECT_API_KEY and PREFECT_API_AUTH_STRING",
        )
    if refuses(status) and detail == _NO_SUCH_PATH:
        return _not_prefect(response, request, address)
    problem = f"Prefect answers {status} to {request}: {detail or _text(response)}"
    if not refuses(status) or detail is None:
        failure = PrefectUnreachable(problem, where=address)
        failure.retry_after = retry_after(response.headers)
        failure.is_busy = status in _OVERLOADED
        return failure
    return PrefectNotFound(problem) if status == HTTPStatus.NOT_FOUND else PrefectRefused(problem)


def _not_prefect(response: httpx.Response, request: str, address: str) -> PrefectUnreachable:
    return PrefectUnreachable(
        f"something that is not Prefect's API answers {response.status_code} to {request}: {_text(response)}",
        where=address,
        fix=_IS_API,
    )


def _no_object(what: str) -> PrefectUnreachable:
    return PrefectUnreachable(f"something that is not Prefect answered: {what}", fix="Check PREFECT_API_URL")


def _detail(response: httpx.Response) -> str | None:
    """Return what Prefect says about an error, or `None` if the answer is not Prefect's."""
    try:
        data = response.json()
    except ValueError:
        return None
    if not isinstance(data, Mapping):
        return None
    answer = cast("Mapping[str, object]", data)
    found = next((answer[name] for name in _DETAILS if answer.get(name) is not None), None)
    return None if found is None else str(found)[: 2 * _SHOWN]


def _text(response: httpx.Response) -> str:
    return " ".join(response.text.split())[:_SHOWN] or "empty"


UNAUTHORIZED = frozenset({401, 403})
_REFUSALS = UNAUTHORIZED | {400, 404, 409, 413, 422}


def refuses(status: int) -> bool:
    """Return True if Prefect's API or assetflow's refuses a request with this HTTP status, and will refuse it again.

    Any other failure comes from a server in trouble, or from something on the way: the same request may succeed later.
    """
    return status in _REFUSALS


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which a server asks to be asked again, or `None` if it names no number of seconds."""
    text = headers.get("Retry-After", "")
    return float(text) if text.replace(".", "", 1).isdigit() else None


@dataclass(frozen=True)
class AskAgain:
    """How often, and for how long, a request is sent again.

    Attributes:
        seconds: how long after the first attempt others may begin.
        times: how many attempts follow the first one at most.
        first_pause: seconds before the second attempt; each pause is twice as long as the one before.
        longest_pause: seconds that no pause exceeds.
    """

    seconds: float = math.inf
    times: float = math.inf
    first_pause: float = 0.1
    longest_pause: float = 4.0

    def start(self, clock: Callable[[], float] = time.monotonic) -> Attempts:
        """Return the attempts of one request; their time runs from now on."""
        return Attempts(self, clock)


class Attempts:
    """The attempts of one request.

    Attributes:
        policy: how often, and for how long.
    """

    def __init__(self, policy: AskAgain, clock: Callable[[], float]) -> None:
        self.policy = policy
        self._clock = clock
        self._deadline = clock() + policy.seconds
        self._pause = policy.first_pause
        self._times = policy.times

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self._deadline - self._clock()

    def pause(self, asked: float | None = None) -> float | None:
        """Return the seconds to wait before the next attempt; `None` after the last one.

        Parameters:
            asked: seconds that the other side asks for, instead of a pause that grows from one to the next.
        """
        wait = self._pause * random.uniform(0.8, 1.2) if asked is None else asked
        if self._times < 1 or wait >= self.left:
            return None
        self._times -= 1
        self._pause = min(self._pause * 2, self.policy.longest_pause)
        return wait
