"""Turn the sentences of explanations into HTML: times that the browser shows in local time, ids as links."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from assetflow.core.visible import shown

_TIME = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC")
_ID = re.compile(r"\b(event|update|decision|run) ([0-9a-f]{8})(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b")
_PLACES = {"event": "/events", "update": "/events", "decision": "/decisions", "run": "/runs"}


def told(text: str) -> Markup:
    """Return a sentence as HTML, with a `<time>` for each time in it, and a link of eight characters for each id."""
    found = str(escape(shown(text, keep="\n\t")))
    found = _TIME.sub(r'<time datetime="\1T\2Z" title="\g<0>" data-at>\g<0></time>', found)
    return Markup(_ID.sub(_link, found))


def _link(found: re.Match[str]) -> str:
    what, start, rest = found.groups()
    return f'{what} <a class="said" href="{_PLACES[what]}/{start}{rest}">{start}</a>'
