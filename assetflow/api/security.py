"""Decide who may call the API, by host name, key, and the origin of the page that sends a request.

Any web page can make its visitor's browser send requests to 127.0.0.1. The guard keeps them out with three checks. The
host name has to be ours, so that no page can rebind its own name to this server. A write has to be JSON, which a
browser sends to another origin only after a preflight request, and the API does not answer those. And the origin of a
page that writes has to be ours.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assetflow.api.connections import Strangers, WrongKeys, ip_of
from assetflow.api.problems import problem, problem_of
from assetflow.errors import AssetflowError, InvalidSettings

SHORTEST = 16


class Right(StrEnum):
    """The right that a request needs; each route needs exactly one."""

    READ = "read"
    EMIT = "emit"
    OPERATE = "operate"


ALL = frozenset(Right)
NONE = frozenset[Right]()
SETTINGS = {
    Right.READ: "ASSETFLOW_API_KEY_READ",
    Right.EMIT: "ASSETFLOW_API_KEY_EMIT",
    Right.OPERATE: "ASSETFLOW_API_KEY",
}
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
# POST requests that only read, because their question does not fit in a URL, and those that every session may send.
_POSTS_TO_READ = frozenset({"/api/v1/events/known", "/api/v1/simulate", "/logout"})
_POSTS_TO_EMIT = frozenset({"/api/v1/events", "/api/v2/assets/events", "/asset/events"})


def right_for(method: str, path: str) -> Right:
    """Return the right that a request needs. A request that changes something and is not listed needs `operate`."""
    if method in _READING or (method == "POST" and path in _POSTS_TO_READ):
        return Right.READ
    emits = path in _POSTS_TO_EMIT or (path.startswith("/api/v1/assets/") and path.endswith("/observations"))
    return Right.EMIT if method == "POST" and emits else Right.OPERATE


@dataclass(frozen=True)
class Keys:
    """The keys of a server. An empty text means that the key is not set.

    Attributes:
        everything: the key that may do everything. If it is not set, the server does not ask for a key.
        read: the key that may only read.
        emit: the key that may only send updates.
    """

    everything: str = ""
    read: str = ""
    emit: str = ""

    def rights(self, shown: str) -> frozenset[Right]:
        """Return the rights of a key, or an empty set for a wrong one."""
        allowed = ((self.everything, ALL), (self.read, frozenset({Right.READ})), (self.emit, frozenset({Right.EMIT})))
        # Compare all keys, each in constant time, so that the time tells nothing about them.
        found = [rights for key, rights in allowed if is_same(key, shown) and key]
        return found[0] if found else NONE

    def check(self, *, others_can_reach: bool) -> None:
        """Check that the keys fit in a header, are hard to guess, and differ from each other.

        Raises:
            InvalidSettings: they do not; the error says what to change.
        """
        given = {SETTINGS[Right.OPERATE]: self.everything, SETTINGS[Right.READ]: self.read}
        given = {name: key for name, key in (given | {SETTINGS[Right.EMIT]: self.emit}).items() if key}
        for name, key in given.items():
            _check_key(name, key, SHORTEST if others_can_reach else 1)
        if given and not self.everything:
            raise _invalid(
                f"{', '.join(given)} is set without ASSETFLOW_API_KEY, so that the server asks nobody for an API key",
                "Set ASSETFLOW_API_KEY too, to another API key; `openssl rand -hex 32` makes a good one",
            )
        if len(set(given.values())) < len(given):
            raise _invalid(f"{' and '.join(given)} are the same API key", "Set each to an API key of its own")


def _check_key(name: str, key: str, shortest: int) -> None:
    if not key.isascii() or not key.isprintable() or key != key.strip():
        raise _invalid(
            f"{name} (its value is not shown) cannot be sent in a header",
            "Use printable ASCII characters without blanks around them; `openssl rand -hex 32` makes a good one",
        )
    if len(key) < shortest:
        raise _invalid(
            f"{name} has fewer than {shortest} characters, and others who can reach the server could guess it",
            "Set it to a long random text; `openssl rand -hex 32` makes one",
        )


def _invalid(message: str, fix: str) -> InvalidSettings:
    return InvalidSettings(message, where="environment", fix=fix)


def is_same(one: str, other: str) -> bool:
    """Return True if two texts are the same, in a time that does not tell where they differ."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
HEALTH = frozenset({"/health", "/api/v1/health"})
# Whoever posts there signs what he posts.
HOOKS = "/hooks/"
# Paths outside /api, where load balancers, orchestrators and Prometheus look for them.
FOR_MACHINES = frozenset({"/health", "/ready", "/metrics"})
BULK = "/api/v1/events"
BULK_BYTES = 16 * 1024 * 1024
BODY_BYTES = 1024 * 1024
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_MAY = {Right.READ: "read", Right.EMIT: "send updates", Right.OPERATE: "operate"}
ALWAYS = {
    "x-content-type-options": "nosniff",
    # With "no-referrer", browsers would send the forms of our own pages with the origin "null".
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
}


def _nobody(_headers: Headers) -> frozenset[Right]:
    return NONE


@dataclass(frozen=True)
class Access:
    """The rules for who may call the API.

    Attributes:
        keys: the keys that requests have to show.
        hosts: the host names under which the API may be called, in lower case, without ports.
        open_paths: the paths that need no key; a path that ends with a slash includes all below it.
        logged_in: returns the rights of a request without a key, by the session cookie of the pages. Asks the ledger.
        wrong_keys: the wrong keys that clients have shown so far.
    """

    keys: Keys = field(default_factory=Keys)
    hosts: frozenset[str] = LOCAL_NAMES
    open_paths: frozenset[str] = HEALTH | {HOOKS}
    logged_in: Callable[[Headers], frozenset[Right]] = _nobody
    wrong_keys: WrongKeys = field(default_factory=WrongKeys)

    def is_open(self, path: str) -> bool:
        return path in self.open_paths or any(each.endswith("/") and path.startswith(each) for each in self.open_paths)

    def by_key(self, headers: Headers) -> frozenset[Right]:
        """Return the rights that a request has by its keys."""
        return frozenset[Right]().union(*map(self.keys.rights, shown_keys(headers)))

    async def rights(self, headers: Headers) -> frozenset[Right]:
        """Return the rights that a request has, by a key or by a session; all of them if the server has no keys.

        Raises:
            LedgerError: the ledger cannot be asked whether the session is still valid.
        """
        if not self.keys.everything:
            return ALL
        return self.by_key(headers) or await run_in_threadpool(self.logged_in, headers)


def shown_keys(headers: Headers) -> list[str]:
    """Return the keys that a request shows: `Authorization: Bearer …`, `X-API-Key: …`."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    shown = (headers.get("x-api-key", ""), bearer.strip() if scheme.lower() == "bearer" else "")
    return [each for each in shown if each]


def access_for(host: str, keys: Keys, hosts: Iterable[str] = ()) -> Access:
    """Return the access for an API that listens on `host`.

    Raises:
        InvalidSettings: others can reach the address, and no key is set, or one that is easy to guess.
    """
    keys.check(others_can_reach=not is_loopback(host))
    if not keys.everything and not is_loopback(host):
        raise InvalidSettings(
            f"the API would listen on {host}, where others can reach it, without an API key",
            where="--host",
            fix="Set ASSETFLOW_API_KEY to the output of `openssl rand -hex 32`, or leave out --host, so that only this "
            "machine can call",
        )
    named = {_name(each) for each in hosts if each.strip()}
    address = ip_of(host)
    own = set[str]() if address is not None and address.is_unspecified else {_name(host)}
    return Access(keys, frozenset(LOCAL_NAMES | named | own))


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach a server that listens on this address."""
    address = ip_of(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


class Guard:
    """The middleware that checks every request first."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access
        self._strangers = Strangers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = await self._refusal(scope, headers)
        if refused is not None:
            await refused(scope, receive, with_headers(send))
            return
        is_open = self._access.is_open(scope["path"])
        limit = BULK_BYTES if scope["path"] == BULK else BODY_BYTES
        if _announced(headers) > limit:
            words = f"the body is larger than {limit} bytes"
            refused = problem(413, words, code="too-large", fix="Send it in several parts")
            await refused(scope, receive, with_headers(send))
            return
        with self._strangers.reading(receive) if is_open else nullcontext(receive) as read:
            await self._app(scope, limited(read, limit), with_headers(send))

    async def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if _name(headers.get("host", "")) not in self._access.hosts:
            return problem(
                400,
                "the API does not have this host name",
                code="unknown-host",
                fix="Call it by a name in ASSETFLOW_API_HOSTS, or add this one there",
            )
        if not self._access.is_open(scope["path"]):
            refused = await self._not_allowed(scope, headers)
            if refused is not None:
                return refused
        if scope["method"] in _WRITES:
            return _refused_write(scope, headers, bool(self._access.by_key(headers)))
        return None

    async def _not_allowed(self, scope: Scope, headers: Headers) -> Response | None:
        try:
            rights = await self._access.rights(headers)
        except AssetflowError as error:
            return problem_of(error)
        if not rights:
            return await self._not_let_in(scope, headers)
        scope.setdefault("state", {})["rights"] = rights
        needed = right_for(scope["method"], scope["path"])
        return None if needed in rights else _refused_right(needed, rights)

    async def _not_let_in(self, scope: Scope, headers: Headers) -> Response:
        seconds = await self._access.wrong_keys.pause(address_of(scope)) if shown_keys(headers) else 0
        if seconds:
            return too_many_wrong_keys(seconds)
        return problem(
            401,
            "the API key is missing or wrong",
            fix="Send the header Authorization: Bearer <API key>",
            headers={"www-authenticate": "Bearer"},
        )


def address_of(scope: Scope) -> str:
    """Return the address that a request comes from, as a trusted proxy reports it."""
    client = scope.get("client")
    return client[0] if client else ""


def too_many_wrong_keys(seconds: int) -> Response:
    """Return the response to a wrong API key from an address that has shown too many."""
    return problem(
        429,
        "the API key is wrong, and too many wrong ones came from your address",
        code="too-many-wrong-keys",
        fix=f"Try again in {seconds} seconds, with the right API key",
        headers={"retry-after": str(seconds)},
    )


def _refused_right(needed: Right, rights: frozenset[Right]) -> Response:
    allowed = " and ".join(_MAY[each] for each in sorted(rights))
    keys = " or ".join(dict.fromkeys((SETTINGS[needed], SETTINGS[Right.OPERATE])))
    return problem(
        403,
        f"this API key may only {allowed}, and this request needs one that may {_MAY[needed]}",
        code="not-allowed",
        fix=f"Use the API key {keys}",
    )


def _refused_write(scope: Scope, headers: Headers, has_key: bool) -> Response | None:
    if not has_key and not is_same_origin(headers):
        return problem(
            403,
            "a page from another origin may not change anything here",
            code="cross-origin",
            fix="Send the request from assetflow's own pages, or with an API key",
        )
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    # No route takes PUT or PATCH: what is wrong there is the method, not the type.
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if scope["method"] == "POST" and has_body and kind != "application/json" and scope["path"].startswith("/api/"):
        return problem(415, "a write has to be JSON", fix="Send the header Content-Type: application/json")
    return None


def is_same_origin(headers: Headers) -> bool:
    """Return True if the request comes from our own pages, or not from a page."""
    if headers.get("sec-fetch-site", "none").lower() not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    if origin is None:
        return True
    # Do not compare the scheme: behind a proxy with TLS, the page has another scheme than this server.
    return origin.partition("://")[2].lower() == headers.get("host", "").lower()


def limited(receive: Receive, limit: int) -> Receive:
    """Return a `receive` that stops reading the body at the limit, whatever its Content-Length says."""
    left = limit

    async def read() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise HTTPException(413)
        return message

    return read


def with_headers(send: Send, wanted: Mapping[str, str] = ALWAYS) -> Send:
    """Return a `send` that gives each answer those of the wanted headers that it lacks."""

    async def secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            for name, value in wanted.items():
                headers.setdefault(name, value)
        await send(message)

    return secured


def _announced(headers: Headers) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def _name(host: str) -> str:
    """Return the name in a Host header or a setting: lower case, without port and brackets."""
    text = host.strip().lower()
    if text.count(":") > 1 and not text.startswith("["):
        return text
    try:
        return urlsplit(f"//{text}").hostname or ""
    except ValueError:
        return ""
