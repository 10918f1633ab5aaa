"""Read the forms of the pages, and refuse a form without the token that only our own pages have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import parse_qsl
from uuid import UUID, uuid4, uuid5

from fastapi import Depends, Request

from assetflow.errors import AssetflowError, InvalidCall

FIELDS = 100
TOKEN = "csrf_token"
# Who acts on the pages: nobody logs in by name.
SOMEBODY = "somebody on the pages"
# A form has another one each time it is shown.
ONCE = "once"
_NAMESPACE = UUID("3f0c8a52-6a0e-5d7b-9b57-52c1f1b0a4d6")


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
