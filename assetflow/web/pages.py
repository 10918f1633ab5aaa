"""Pages from templates: text of users is escaped always, and what cannot be seen in it is written out."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import quote, urlencode

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from assetflow.api.backend import Backend
from assetflow.core.explanation import source_of
from assetflow.core.explanation.words import ago, at, count, iso
from assetflow.core.redaction import redact
from assetflow.core.visible import shown
from assetflow.errors import LedgerError
from assetflow.ledger.news import Seen
from assetflow.web.prefect_links import PrefectLinks
from assetflow.web.state import troubles_of

if TYPE_CHECKING:
    from assetflow.web.login import Sessions

TEMPLATES = Path(__file__).parent / "templates"
VERSION = version("assetflow")
_VARY = {"vary": "HX-Request"}


class Pages:
    """What turns data into pages.

    Templates extend `base.html` and have `ui` (the macros of `ui.html`) without importing it.

    Attributes:
        sessions: who is logged in, and the tokens of forms.
    """

    def __init__(self, backend: Backend, sessions: Sessions) -> None:
        self.sessions = sessions
        self._backend = backend
        self._templates = _environment(backend)

    def show(
        self, request: Request, template: str, *, fragment: str = "", status: int = 200, **content: object
    ) -> HTMLResponse:
        """A page.

        Parameters:
            fragment: the block of the template that is sent alone to htmx, which puts it into the page that is there.
            content: what the template needs.
        """
        reader = self._backend.ledger.reader
        if not (fragment and wants_fragment(request)):
            return self.bare(
                request,
                template,
                status=status,
                **{"prefect": PrefectLinks.of(reader), "troubles": troubles_of(self._backend)} | content,
            )
        found = self._templates.get_template(template)
        context = found.new_context(self._always(request) | {"prefect": PrefectLinks.of(reader)} | content)
        return HTMLResponse("".join(found.blocks[fragment](context)), status, _VARY)

    def bare(self, request: Request, template: str, *, status: int = 200, **content: object) -> HTMLResponse:
        """A page that needs no ledger: it shows what went wrong, or asks for the key."""
        context = self._always(request) | {"troubles": (), "prefect": PrefectLinks("")} | content
        return HTMLResponse(self._templates.get_template(template).render(context), status, _VARY)

    def newest(self) -> Seen:
        """What a page has seen that is made now."""
        return self._backend.ledger.reader.newest()

    def _always(self, request: Request) -> dict[str, object]:
        return {
            "seen": getattr(request.state, "seen", None),
            "path": request.url.path,
            "csrf_token": self.sessions.token(request.headers),
            "can_log_out": bool(self.sessions.needed and self.sessions.of(request.headers)),
        }


def wants_fragment(request: Request) -> bool:
    """Whether htmx asks for a part of a page; when it restores its history, it needs all of it."""
    return "hx-request" in request.headers and "hx-history-restore-request" not in request.headers


def pages_of(request: Request) -> Pages:
    pages: Pages = request.app.state.pages
    # Before the page reads anything: what comes in between is told as soon as its stream begins.
    with suppress(LedgerError):
        request.state.seen = pages.newest()
    return pages


ThePages = Annotated[Pages, Depends(pages_of)]


def _environment(backend: Backend) -> Environment:
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
        "address": address,
        "source": source_of,
    }
    names.globals |= {"static": _static, "count": count, "url": url}
    names.globals["ui"] = made.get_template("ui.html").module
    return made


def url(path: str, *parts: object, **query: object) -> str:
    """An address of the pages: `url("/asset", asset=uri)`, `url("/events", id)`; what is none or empty is left out.

    Every part and value is encoded, so that a text of a user stays one part.
    """
    whole = "/".join((path.rstrip("/"), *(quote(str(part).encode("utf-8", "replace"), safe="") for part in parts)))
    given = {name: str(value).encode("utf-8", "replace") for name, value in query.items() if value not in (None, "")}
    return f"{whole}?{urlencode(given)}" if given else whole


def address(uri: str) -> str:
    """The page of an asset."""
    return url("/asset", asset=uri)


def _static(path: str) -> str:
    return f"/static/{path}?v={VERSION}"


def _visible(value: object) -> object:
    """What is put into a page: none as nothing, text with its control characters written out."""
    if value is None:
        return ""
    return shown(value, keep="\n\t") if isinstance(value, str) and not isinstance(value, Markup) else value


def _ago(moment: datetime, now: datetime) -> str:
    # A producer's clock may be a little ahead.
    return ago(min(moment, now) if (moment - now).total_seconds() < 60 else moment, now)


def _json(value: object, indent: int | None = 2) -> str:
    """JSON to read, without the values that look like secrets."""
    return json.dumps(redact(value), ensure_ascii=False, indent=indent, default=_plain)


def _plain(value: object) -> object:
    return iso(value.astimezone(UTC)) if isinstance(value, datetime) else str(value)


def _brief(value: object, length: int = 80) -> str:
    """JSON in a line, cut off."""
    text = _json(value, indent=None)
    return text if len(text) <= length else f"{text[: length - 1]}…"
