"""Logging in once with the key: the cookie says that somebody did, and is no way to learn the key."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from assetflow.api.security import Access
from assetflow.web.forms import TheForm
from assetflow.web.pages import ThePages

router = APIRouter()

LOGIN = "/login"
COOKIE = "assetflow_session"
SECONDS = 7 * 24 * 3600


class Sessions:
    """Makes and checks cookies and CSRF tokens. Both are signed with what only this server, or its key, can make."""

    def __init__(self, key: str) -> None:
        self.needed = bool(key)
        # Without a key there is nothing to log in for; tokens hold as long as the process.
        self._key = key
        self._secret = hmac.digest(key.encode(), b"assetflow pages", "sha256") if key else secrets.token_bytes(32)

    def is_key(self, text: str) -> bool:
        return self.needed and hmac.compare_digest(text.encode("utf-8", "replace"), self._key.encode())

    def new(self) -> str:
        """The value of a cookie: when it was made, something random, and a signature."""
        text = f"{int(time.time())}.{secrets.token_urlsafe(16)}"
        return f"{text}.{self._sign('session', text)}"

    def of(self, headers: Mapping[str, str]) -> str:
        """The session that the cookies name; empty if there is none that holds."""
        value = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        text, _, signature = value.rpartition(".")
        made = text.partition(".")[0]
        if not _same(signature, self._sign("session", text)):
            return ""
        return text if int(made) + SECONDS > time.time() else ""

    def token(self, headers: Mapping[str, str]) -> str:
        """The CSRF token of a session: pages of other origins cannot read it."""
        return self._sign("form", self.of(headers))

    def holds(self, headers: Mapping[str, str], token: str) -> bool:
        return _same(token, self.token(headers))

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}|{text}".encode("utf-8", "replace"), "sha256").hexdigest()


def with_login(access: Access, sessions: Sessions) -> Access:
    """The same access, and whoever has logged in may call too."""

    def logged_in(headers: Headers) -> bool:
        return bool(sessions.of(headers))

    return replace(access, open_paths=access.open_paths | {LOGIN, "/static/"}, logged_in=logged_in)


@router.get(LOGIN)
def ask(
    request: Request, pages: ThePages, following: Annotated[str, Query(alias="next", max_length=4000)] = "/"
) -> Response:
    """The page that asks for the key."""
    if not pages.sessions.needed or pages.sessions.of(request.headers):
        return RedirectResponse(_own(following), 303)
    return pages.bare(request, "login.html", following=_own(following), wrong=False)


@router.post(LOGIN)
def log_in(request: Request, pages: ThePages, form: TheForm) -> Response:
    """Set the cookie, if the key is right."""
    following = _own(form.text("next"))
    if not pages.sessions.is_key(form.text("key")):
        return pages.bare(request, "login.html", status=401, following=following, wrong=True)
    response = RedirectResponse(following, 303)
    response.set_cookie(
        COOKIE,
        pages.sessions.new(),
        max_age=SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.post("/logout")
def log_out(_form: TheForm) -> Response:
    """Forget the cookie."""
    response = RedirectResponse(LOGIN, 303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


def _own(path: str) -> str:
    """Where to go on to: a path of these pages, never another host."""
    is_path = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_path and not path.startswith(LOGIN) else "/"


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))
