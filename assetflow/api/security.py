"""Who may call: names of the host, the key, and whether a browser's page from elsewhere is behind a write.

Any web page can make its visitor's browser send requests to 127.0.0.1. Three things keep them out: a request under a
name that is not ours is refused (so no page can rebind its own name to us), a write has to be JSON (which browsers do
not send elsewhere without asking first, and nobody answers them), and a page's origin has to be ours.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assetflow.api.problems import problem
from assetflow.errors import InvalidSettings

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
HEALTH = frozenset({"/health", "/api/v1/health"})
# Outside of /api, where load balancers, orchestrators and Prometheus look for them.
FOR_MACHINES = frozenset({"/health", "/ready", "/metrics"})
BULK = "/api/v1/events"
BULK_BYTES = 16 * 1024 * 1024
BODY_BYTES = 1024 * 1024
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
ALWAYS = {
    "x-content-type-options": "nosniff",
    # With "no-referrer" browsers send forms of our own pages with the origin "null".
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
}


def _never(_headers: Headers) -> bool:
    return False


@dataclass(frozen=True)
class Access:
    """Who may call.

    Attributes:
        key: what every request has to show; empty for none.
        hosts: the names under which the API may be called, lower case, without ports.
        open_paths: paths, or with a slash at the end all below, that need no key.
        logged_in: whether a request without the key is let in by its headers: the cookie of the pages.
    """

    key: str = ""
    hosts: frozenset[str] = LOCAL_NAMES
    open_paths: frozenset[str] = HEALTH
    logged_in: Callable[[Headers], bool] = _never

    def is_open(self, path: str) -> bool:
        return path in self.open_paths or any(each.endswith("/") and path.startswith(each) for each in self.open_paths)

    def shows_key(self, headers: Headers) -> bool:
        """Whether the request has the key: `Authorization: Bearer …`, or `X-API-Key: …`."""
        if not self.key:
            return False
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        shown = [headers.get("x-api-key", ""), bearer.strip() if scheme.lower() == "bearer" else ""]
        # Each comparison takes a time that says nothing about the key.
        return any(hmac.compare_digest(each.encode(), self.key.encode()) for each in shown)


def access_for(host: str, key: str, hosts: Iterable[str] = ()) -> Access:
    """The access for an API that listens on `host`.

    Raises:
        InvalidSettings: others can reach the address, and there is no key.
    """
    if not key and not is_loopback(host):
        raise InvalidSettings(
            f"the API would listen on {host}, where others can reach it, without a key",
            where="--host",
            fix="Set ASSETFLOW_API_KEY to a long random text, or leave --host out: then only this machine can call",
        )
    if key and (not key.isascii() or not key.isprintable() or key != key.strip()):
        raise InvalidSettings(
            "ASSETFLOW_API_KEY is a value that is not shown, which it cannot be",
            where="environment",
            fix="Use printable ASCII characters without blanks around them; `openssl rand -hex 32` makes a good one",
        )
    named = {_name(each) for each in hosts if each.strip()}
    own = {_name(host)} if not _is_any(host) else set[str]()
    return Access(key, frozenset(LOCAL_NAMES | named | own))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """The middleware before everything else."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = self._refusal(scope, headers)
        if refused is not None:
            await refused(scope, receive, _with_headers(send))
            return
        limit = BULK_BYTES if scope["path"] == BULK else BODY_BYTES
        if _announced(headers) > limit:
            await _too_large(limit)(scope, receive, _with_headers(send))
            return
        await self._app(scope, _limited(receive, limit), _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if _name(headers.get("host", "")) not in self._access.hosts:
            return problem(400, "the API is not called by this name", code="unknown-host")
        has_key = self._access.shows_key(headers)
        let_in = not self._access.key or has_key or self._access.is_open(scope["path"])
        if not let_in and not self._access.logged_in(headers):
            return problem(401, "the key is missing or wrong", headers={"www-authenticate": "Bearer"})
        if scope["method"] in _WRITES:
            return _refused_write(scope, headers, has_key)
        return None


def _refused_write(scope: Scope, headers: Headers, has_key: bool) -> Response | None:
    if not has_key and not _same_origin(headers):
        return problem(403, "a page of another origin may not change anything here", code="cross-origin")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if scope["method"] != "DELETE" and kind != "application/json" and scope["path"].startswith("/api/"):
        return problem(415, "a write has to be JSON", fix="Send the header Content-Type: application/json")
    return None


def _same_origin(headers: Headers) -> bool:
    """Whether the request comes from our own pages, or from no page at all."""
    if headers.get("sec-fetch-site", "none").lower() not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    if origin is None:
        return True
    # Not the scheme: behind a proxy with TLS, ours is another one than the page's.
    return origin.partition("://")[2].lower() == headers.get("host", "").lower()


def _limited(receive: Receive, limit: int) -> Receive:
    """A body that is read no further than its limit, whatever length it announces."""
    left = limit

    async def read() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise HTTPException(413)
        return message

    return read


def _with_headers(send: Send) -> Send:
    async def secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            for name, value in ALWAYS.items():
                headers.setdefault(name, value)
        await send(message)

    return secured


def _too_large(limit: int) -> Response:
    return problem(413, f"the body is larger than {limit} bytes", code="too-large", fix="Send it in several parts")


def _announced(headers: Headers) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def _name(host: str) -> str:
    """The name in a Host header or a setting: lower case, without port and brackets."""
    text = host.strip().lower()
    if text.count(":") > 1 and not text.startswith("["):
        return text
    try:
        return urlsplit(f"//{text}").hostname or ""
    except ValueError:
        return ""


def _is_any(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
