"""Log in with the API key, and keep the login in a cookie that does not contain the key."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.requests import cookie_parser

from assetflow.api.security import ALL, NONE, Access, Keys, Right, address_of, is_same
from assetflow.ledger import Ledger
from assetflow.web.pages import Pages, StaleForm, TheForm, ThePages, in_words

router = APIRouter()

LOGIN, LOGOUT = "/login", "/logout"
# Before the name of each field that somebody had typed when the login had expired.
_TYPED = "typed."
COOKIE = "assetflow_session"
SECONDS = 7 * 24 * 3600
_EVERYTHING = "everything"
_ONLY_EMITS = "This API key may only send updates. Log in with one that may read."


class Sessions:
    """Makes, checks and ends sessions, and makes the CSRF tokens of forms.

    Cookies and tokens are signed with a secret derived from the server's keys. The ledger keeps the sessions that were
    ended, so that all of its servers know them, also after a restart.
    """

    def __init__(self, keys: Keys, ledger: Ledger) -> None:
        self.needed = bool(keys.everything)
        self._ledger = ledger
        # A changed key ends all sessions. Without a key nobody logs in, and the tokens last as long as the process.
        known = f"{keys.everything}\n{keys.read}".encode()
        self._secret = hmac.digest(known, b"assetflow pages", "sha256") if self.needed else secrets.token_bytes(32)

    def new(self, rights: frozenset[Right]) -> str:
        """Return the value of a cookie: the time, a random text, the rights, and a signature."""
        allows = _EVERYTHING if rights == ALL else Right.READ
        text = f"{int(time.time())}.{secrets.token_urlsafe(16)}.{allows}"
        return f"{text}.{self._sign('session', text)}"

    def rights(self, headers: Mapping[str, str]) -> frozenset[Right]:
        """Return the rights of the session of a request; none without a session, or if it was ended.

        Raises:
            LedgerError: the ledger cannot be asked whether the session was ended.
        """
        session = self.of(headers) if self.needed else ""
        if not session or self._ledger.reader.is_session_ended(session):
            return NONE
        return ALL if session.endswith(f".{_EVERYTHING}") else frozenset({Right.READ})

    def end(self, headers: Mapping[str, str]) -> None:
        """End the session of a request: no server of this ledger accepts its cookie any more.

        Raises:
            LedgerError: the ledger cannot be written, and the session is still valid.
        """
        session = self.of(headers)
        if self.needed and session:
            now = datetime.now(UTC)
            self._ledger.writer.end_session(session, now + timedelta(seconds=SECONDS), now)

    def of(self, headers: Mapping[str, str]) -> str:
        """Return the session in the cookies, even if it was ended, or an empty text without one."""
        value = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        text, _, signature = value.rpartition(".")
        made = text.partition(".")[0]
        if not is_same(signature, self._sign("session", text)):
            return ""
        return text if int(made) + SECONDS > time.time() else ""

    def token(self, headers: Mapping[str, str]) -> str:
        """Return the CSRF token of a session, which pages of other origins cannot read."""
        return self._sign("form", self.of(headers))

    def holds(self, headers: Mapping[str, str], token: str) -> bool:
        return is_same(token, self.token(headers))

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}|{text}".encode("utf-8", "replace"), "sha256").hexdigest()


def with_login(access: Access, sessions: Sessions) -> Access:
    """Return the same access, which also accepts the sessions of users who have logged in."""
    return replace(access, open_paths=access.open_paths | {LOGIN, "/static/"}, logged_in=sessions.rights)


@router.get(LOGIN)
def ask(
    request: Request, pages: ThePages, next_page: Annotated[str, Query(alias="next", max_length=4000)] = "/"
) -> Response:
    """Show the page that asks for the API key."""
    if not pages.sessions.needed or pages.sessions.rights(request.headers):
        return RedirectResponse(_own(next_page), 303)
    return ask_for_key(request, pages, next_page)


def ask_for_key(
    request: Request,
    pages: Pages,
    next_page: str,
    *,
    typed: Mapping[str, str] | None = None,
    refused: str = "",
    status: int = 200,
) -> Response:
    """Show the page that asks for the API key.

    Parameters:
        next_page: where the login leads to.
        typed: the fields of the form that was sent there without a login; `None` if none was.
        refused: why the key was not taken.
    """
    kept = None if typed is None else {f"{_TYPED}{name}": text for name, text in typed.items()}
    return pages.bare(request, "login.html", status=status, next_page=_own(next_page), kept=kept, refused=refused)


def typed_in(fields: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return the fields that the login keeps for the form that was sent before it; `None` if none was."""
    if "again" not in fields:
        return None
    return {name.removeprefix(_TYPED): text for name, text in fields.items() if name.startswith(_TYPED)}


def ask_again(
    request: Request, pages: Pages, fields: Mapping[str, str], action: str, *, status: int, **content: object
) -> Response:
    """Show what was typed into a form that was too old to count, to be sent once more."""
    refused = in_words(StaleForm.with_fields(fields))
    return pages.bare(
        request, "stale_form.html", status=status, fields=fields, action=action, refused=refused, **content
    )


@router.post(LOGIN)
async def log_in(request: Request, pages: ThePages, form: TheForm) -> Response:
    """Set the cookie if the API key is right, and continue, or show the form that was sent before."""
    next_page, typed = _own(form.text("next")), typed_in(form.fields)
    access: Access = request.app.state.access
    rights = access.keys.rights(form.text("key"))
    if Right.READ not in rights:
        status, refused = (403, _ONLY_EMITS) if rights else await _wrong(access, request)
        return ask_for_key(request, pages, next_page, typed=typed, refused=refused, status=status)
    session, response = pages.sessions.new(rights), RedirectResponse(next_page, 303)
    if typed is not None:
        token = pages.sessions.token({"cookie": f"{COOKIE}={session}"})
        response = ask_again(request, pages, typed, next_page, status=200, csrf_token=token)
    response.set_cookie(
        COOKIE,
        session,
        max_age=SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


async def _wrong(access: Access, request: Request) -> tuple[int, str]:
    """Wait as long as a wrong key has to, and return the status and the message of the answer."""
    seconds = await access.wrong_keys.pause(address_of(request.scope))
    if seconds:
        return 429, f"Too many wrong API keys came from your address. Try again in {seconds} seconds."
    return 401, "The API key is wrong."


@router.post(LOGOUT)
def log_out(request: Request, pages: ThePages, _form: TheForm) -> Response:
    """End the session, and forget the cookie."""
    pages.sessions.end(request.headers)
    response = RedirectResponse(LOGIN, 303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


def _own(path: str) -> str:
    """Return the path to continue to, which is always on this server, never on another host."""
    is_path = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_path and not path.startswith((LOGIN, LOGOUT)) else "/"
