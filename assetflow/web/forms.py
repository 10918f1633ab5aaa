"""What forms send: read, and refused without the token that only our own pages know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from assetflow.errors import AssetflowError, InvalidCall

FIELDS = 100
TOKEN = "csrf_token"


class StaleForm(AssetflowError):
    """A form without the token of this server and session."""

    code = "stale-form"


@dataclass(frozen=True)
class Form:
    """The fields of a form; `errors` are told beside the fields when it is shown again."""

    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    errors: Mapping[str, str] = field(default_factory=dict[str, str])

    def text(self, name: str) -> str:
        return self.fields.get(name, "")

    def error(self, name: str) -> str:
        return self.errors.get(name, "")

    def refused(self, **errors: str) -> Form:
        """The same fields with what is wrong with them."""
        return Form(self.fields, errors)


async def checked_form(request: Request) -> Form:
    """The form of a request.

    Raises:
        StaleForm: it has no token, or one of another session.
        InvalidCall: it is no form.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise InvalidCall("this address takes a form", where="body")
    try:
        text = (await request.body()).decode()
        fields = dict(parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=FIELDS))
    except ValueError as error:
        raise InvalidCall("the form cannot be read", where="body") from error
    if not request.app.state.pages.sessions.holds(request.headers, fields.pop(TOKEN, "")):
        raise StaleForm(
            "this form is older than the server or your login, so nothing was changed",
            fix="Go back, reload the page, and send it again",
        )
    return Form(fields)


TheForm = Annotated[Form, Depends(checked_form)]
