"""Render the templates of pages, where text from users is always escaped, and read the forms that pages send."""

from __future__ import annotations

import json
import mimetypes
import os
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import parse_qs, parse_qsl, quote, urlencode
from uuid import UUID, uuid4, uuid5

from fastapi import Depends, Query, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from prefect.settings import PREFECT_API_URL, PREFECT_UI_URL
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from assetflow.api.requests import LARGEST, Backend
from assetflow.api.security import NONE, Right
from assetflow.core.explain import source_of
from assetflow.core.explain.events import maker_of
from assetflow.core.explain.status import short
from assetflow.core.values.addresses import redact, without_passwords
from assetflow.core.values.words import ID_IN_TEXT, ago, at, colour_of, count, iso, rounded_in_words, shown, sign_of
from assetflow.errors import AssetflowError, InvalidCall, LedgerError
from assetflow.ledger.read.events import Position
from assetflow.ledger.read.reader import Reader
from assetflow.web.troubles import is_prefect_away, troubles_of

if TYPE_CHECKING:
    from assetflow.web.login import Sessions

_TIME = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC")
_CODE = re.compile(r"`([^`]+)`")
_PLACES = {"event": "/events", "update": "/events", "decision": "/decisions", "run": "/runs"}
# The pages that show what a command lists.
_LISTED = {
    "assets": ("/assets", "Assets"),
    "backfill": ("/backfills", "Backfills"),
    "consumers": ("/consumers", "Consumers"),
    "decisions": ("/activity?show=decisions", "Activity"),
    "events": ("/activity?show=updates", "Activity"),
    "queue": ("/consumers?show=waiting", "Consumers"),
    "runs": ("/runs", "Runs"),
    "watchers": ("/assets?show=watcher", "Assets"),
}
_LIST = re.compile(r"assetflow ([a-z]+) ls\b")
_REPLAY = re.compile(r"assetflow queue replay ([0-9a-f-]{36})")
FIELDS = 100
TOKEN = "csrf_token"
# Who acts on the pages: nobody logs in by name.
SOMEBODY = "somebody on the pages"
# A form has another one each time it is shown.
ONCE = "once"
_NAMESPACE = UUID("3f0c8a52-6a0e-5d7b-9b57-52c1f1b0a4d6")


def told(text: str) -> Markup:
    """Return a sentence as HTML, with a `<time>` for each time in it, a link for each id, and its code as code."""
    found = str(escape(shown(text, keep="\n\t")))
    found = _TIME.sub(r'<time datetime="\1T\2Z" title="\g<0>" data-at>\g<0></time>', found)
    with_pages = _CODE.sub(lambda code: _code_or_page(Markup(code[1])), found)
    return Markup(ID_IN_TEXT.sub(_link, with_pages))


def _link(found: re.Match[str]) -> str:
    what, start, rest = found.groups()
    return f'{what} <a class="said" href="{_PLACES[what]}/{start}{rest}">{start}</a>'


@dataclass(frozen=True)
class PrefectLinks:
    """Links to pages of Prefect's UI; empty texts if its address is unknown."""

    base: str

    @classmethod
    def of(cls, reader: Reader) -> PrefectLinks:
        """Return links to the UI that Prefect's settings name, or that of the server to which the ledger belongs."""
        named = PREFECT_UI_URL.value()
        api = PREFECT_API_URL.value() or reader.prefect_api_url() or ""
        base = without_passwords(str(named or api.rstrip("/").removesuffix("/api")))
        return cls(base.rstrip("/") if base.startswith(("http://", "https://")) else "")

    def flow_run(self, number: UUID | str) -> str:
        return self._to("runs/flow-run", number)

    def task_run(self, number: UUID | str) -> str:
        return self._to("runs/task-run", number)

    def deployment(self, number: UUID | str) -> str:
        return self._to("deployments/deployment", number)

    def automation(self, number: UUID | str) -> str:
        return self._to("automations/automation", number)

    def _to(self, place: str, number: UUID | str) -> str:
        return f"{self.base}/{place}/{UUID(str(number))}" if self.base else ""


TEMPLATES = Path(__file__).parent / "templates"
_VARY = {"vary": "HX-Request"}


@dataclass(frozen=True)
class PagePlaces:
    """Where one page of a list stands, and the addresses of the pages around it.

    Attributes:
        first: the number of the first row; rows count from 1.
        total: how many rows the whole list has.
        before, behind: the addresses of the neighbouring pages; "" where there is none.
    """

    first: int
    total: int
    before: str
    behind: str

    @classmethod
    def of(cls, at: Callable[[int], str], offset: int, rows: int, total: int) -> PagePlaces:
        """Return the places around the page that begins at `offset`; `at` returns the address of a page."""
        before = at(max(0, offset - rows)) if offset else ""
        behind = at(offset + rows) if offset + rows < total else ""
        return cls(offset + 1, total, before, behind)


class Pages:
    """The renderer of pages.

    Templates extend `base.html`, and can use `ui` (the macros of `ui.html`) without importing it.

    Parameters:
        run_state: returns the state of a flow run in Prefect, or "" if it is not known.

    Attributes:
        sessions: the logins, and the tokens of forms.
    """

    def __init__(self, backend: Backend, sessions: Sessions, run_state: Callable[[UUID | None], str]) -> None:
        self.sessions = sessions
        self._backend = backend
        self._templates = _environment(backend, run_state)

    def show(
        self, request: Request, template: str, *, fragment: str = "", status: int = 200, **content: object
    ) -> HTMLResponse:
        """Render a page.

        Parameters:
            fragment: the block of the template to send if htmx asks, which puts it into the open page.
            content: the variables of the template.
        """
        evaluators = self._backend.ledger.reader.evaluators()
        known = {
            "prefect": PrefectLinks.of(self._backend.ledger.reader),
            "prefect_away": is_prefect_away(self._backend, evaluators),
        }
        if not (fragment and wants_fragment(request)):
            return self.bare(
                request,
                template,
                status=status,
                **known | {"troubles": troubles_of(self._backend, evaluators)} | content,
            )
        found = self._templates.get_template(template)
        context = found.new_context(self._always(request) | known | content)
        return HTMLResponse("".join(found.blocks[fragment](context)), status, _VARY)

    def bare(self, request: Request, template: str, *, status: int = 200, **content: object) -> HTMLResponse:
        """Render a page without reading the ledger: one that shows an error, or asks for the key."""
        nothing = {"troubles": (), "prefect": PrefectLinks(""), "prefect_away": False}
        context = self._always(request) | nothing | content
        return HTMLResponse(self._templates.get_template(template).render(context), status, _VARY)

    def newest(self) -> Position:
        """Return the position of the newest change, which a page made now has seen."""
        return self._backend.ledger.reader.feed.end()

    def _always(self, request: Request) -> dict[str, object]:
        return {
            "seen": getattr(request.state, "seen", None),
            "path": request.url.path,
            "csrf_token": self.sessions.token(request.headers),
            "can_log_out": bool(self.sessions.needed and self.sessions.of(request.headers)),
            "may_operate": Right.OPERATE in getattr(request.state, "rights", NONE),
        }


def wants_fragment(request: Request) -> bool:
    """Return True if htmx asks for a part of a page. To restore its history, it needs the whole page."""
    return "hx-request" in request.headers and "hx-history-restore-request" not in request.headers


def pages_of(request: Request) -> Pages:
    pages: Pages = request.app.state.pages
    # Note the position before the page reads the ledger: its stream then begins with the changes in between.
    with suppress(LedgerError):
        request.state.seen = pages.newest()
    return pages


ThePages = Annotated[Pages, Depends(pages_of)]
# A number that the ledger can hold, if the address has one: where a page of a list begins, or how many there were.
NumberOrNone = Annotated[int | None, Query(ge=0, le=LARGEST)]


def _environment(backend: Backend, run_state: Callable[[UUID | None], str]) -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def ago_now(moment: datetime) -> str:
        return _ago(moment, backend.now())

    # Its dictionaries have no types.
    names = cast(Any, made)
    names.filters |= {
        "ago": ago_now,
        "at": at,
        "iso": iso,
        "json": _json,
        "brief": _brief,
        "code": _code,
        "address": address,
        "maker": maker_of,
        "source": source_of,
        "told": told,
        "middle": middle,
        "span": rounded_in_words,
        "version": _version,
    }
    names.globals |= {"static": address_of, "count": count, "url": url, "run_state": run_state, "sign_of": sign_of}
    names.globals["colour_of"] = colour_of
    names.globals["new_id"] = uuid4
    names.globals["ui"] = made.get_template("ui.html").module
    return made


def url(path: str, *parts: object, **query: object) -> str:
    """Return the address of a page: `url("/asset", asset=uri)`, `url("/events", id)`.

    Query values that are `None` or empty are left out; each value of a tuple is given. Every part and value is encoded,
    so that a user's text stays one part.
    """
    whole = "/".join((path.rstrip("/"), *(quote(str(part).encode("utf-8", "replace"), safe="") for part in parts)))
    given = [
        (name, str(each).encode("utf-8", "replace"))
        for name, value in query.items()
        for each in (cast(tuple[object, ...], value) if isinstance(value, tuple) else (value,))
        if each not in (None, "")
    ]
    return f"{whole}?{urlencode(given)}" if given else whole


def address(uri: str) -> str:
    """Return the address of an asset's page."""
    return url("/asset", asset=uri)


def middle(text: str, most: int = 60) -> str:
    """Return a text of at most `most` characters, cut in its middle: the end of a URI tells it from others."""
    if len(text) <= most:
        return text
    return f"{text[: most // 3]}…{text[most // 3 + 1 - most :]}"


def _visible(value: object) -> object:
    """Return a value as a page shows it: `None` as an empty text, text with its control characters written out."""
    if value is None:
        return ""
    return shown(value, keep="\n\t") if isinstance(value, str) and not isinstance(value, Markup) else value


def _code(message: str) -> Markup:
    """Return a message with the code in it as HTML: what stands between two backticks."""
    parts = [escape(shown(part, keep="\n\t")) for part in message.split("`")]
    if len(parts) % 2 == 0:
        # A backtick without its partner is a character of the text.
        parts[-2:] = [Markup("`").join(parts[-2:])]
    return Markup().join(_code_or_page(part) if n % 2 else part for n, part in enumerate(parts))


def _code_or_page(command: Markup) -> Markup:
    """Return code as HTML, or a link to the page that does what the command does."""
    if (named := _LIST.match(command)) and named[1] in _LISTED:
        return Markup('<a href="{}">{}</a>').format(*_LISTED[named[1]])
    if named := _REPLAY.fullmatch(command):
        return Markup('<a href="{}">Try again</a>').format(url("/decisions", named[1]))
    return Markup("<code>{}</code>").format(command)


def _ago(moment: datetime, now: datetime) -> str:
    # A producer's clock may be a little ahead.
    return ago(min(moment, now) if (moment - now).total_seconds() < 60 else moment, now)


def _version(text: str | None) -> str:
    return "" if text is None else short(text)


def _json(value: object, indent: int | None = 2) -> str:
    """Return indented JSON, without the values that look like secrets."""
    return json.dumps(redact(value), ensure_ascii=False, indent=indent, default=_plain)


def _plain(value: object) -> object:
    return iso(value.astimezone(UTC)) if isinstance(value, datetime) else str(value)


def _brief(value: object, length: int = 80) -> str:
    """Return JSON in one line, cut at `length`."""
    text = _json(value, indent=None)
    return text if len(text) <= length else f"{text[: length - 1]}…"


# Python does not know it.
mimetypes.add_type("font/woff2", ".woff2")

FOLDER = Path(__file__).parent / "static"
_FOREVER = "public, max-age=31536000, immutable"


def address_of(path: str) -> str:
    """Return the address of a file, with the hash of its content."""
    return f"/static/{path}?v={mark_of(FOLDER / path)}"


@cache
def mark_of(file: Path) -> str:
    """Return the hash of a file's content."""
    return blake2b(file.read_bytes(), digest_size=6).hexdigest()


class MarkedFiles(StaticFiles):
    """The files below `/static`. Browsers cache a file for ever if they ask for it with the right hash."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("v")
        # An address with another hash comes from a page of another version, which wants another content.
        if asked == [mark_of(Path(full_path))]:
            response.headers["cache-control"] = _FOREVER
        return response


class StaleForm(AssetflowError):
    """A form without the token of this server and session.

    Attributes:
        fields: what was typed.
    """

    code = "stale-form"
    fields: Mapping[str, str]

    @classmethod
    def with_fields(cls, fields: Mapping[str, str]) -> StaleForm:
        """Return the error with what was typed."""
        error = cls(
            "this form is older than the server or your login, so nothing was changed",
            fix="Look at what you typed, and send it again",
        )
        error.fields = fields
        return error


@dataclass(frozen=True)
class Form:
    """The fields of a form, and the `errors` to show beside them when the page shows the form again."""

    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    errors: Mapping[str, str] = field(default_factory=dict[str, str])

    def text(self, name: str) -> str:
        return self.fields.get(name, "")

    def error(self, name: str) -> str:
        return self.errors.get(name, "")

    def key(self) -> UUID:
        """Return the idempotency key of what this form starts: the same if a browser sends it again.

        Contract 4.5
        """
        return uuid5(_NAMESPACE, json.dumps(self.fields, sort_keys=True)) if self.text(ONCE) else uuid4()

    def refused(self, **errors: str) -> Form:
        """Return the same fields with these errors."""
        return Form(self.fields, errors)

    def refused_by(self, error: AssetflowError, fields: Collection[str]) -> Form:
        """Return the same fields with an error: at the one of these fields that it is about, else at the form."""
        return self.refused(**{error.where if error.where in fields else "form": in_words(error)})


async def read_fields(request: Request) -> dict[str, str]:
    """Read the fields of the form that a request sends.

    Raises:
        InvalidCall: the body is not a form.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise InvalidCall("this address takes a form", where="body")
    try:
        text = (await request.body()).decode()
        sent = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=FIELDS)
    except ValueError as error:
        raise InvalidCall("the form cannot be read", where="body") from error
    # Browsers send a line break as CR LF, whatever the page had.
    return {name: value.replace("\r\n", "\n") for name, value in sent}


async def checked_form(request: Request) -> Form:
    """Read the form of a request, and check its token.

    Raises:
        StaleForm: the form has no token, or one of another session.
        InvalidCall: the body is not a form.
    """
    fields = await read_fields(request)
    if not request.app.state.pages.sessions.holds(request.headers, fields.pop(TOKEN, "")):
        raise StaleForm.with_fields(fields)
    return Form(fields)


def in_words(error: AssetflowError) -> str:
    """Return the sentences about an error for a page: what happened, and what to do about it."""
    return f"{error.message[:1].upper()}{error.message[1:].rstrip('.')}. {error.fix}".strip()


TheForm = Annotated[Form, Depends(checked_form)]
