"""Pages of lists, and the types of request values: numbers that the ledger can store, times in UTC, plain text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, LiteralString

from fastapi import Path, Query
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from assetflow.core.json_data import is_plain_text

LARGEST = 2**63 - 1
MOST = 1000


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError as error:
        raise _wrong("not in the years 1 to 9999", "Write a time in these years, in UTC") from error


def _plain(text: str) -> str:
    if not is_plain_text(text):
        raise _wrong("contains the character NUL or a lone surrogate", "Leave it out")
    return text


def _wrong(message: LiteralString, fix: str) -> PydanticCustomError:
    return PydanticCustomError("wrong_value", message, {"fix": fix})


Moment = Annotated[datetime, AfterValidator(_in_utc)]
Text = Annotated[str, Field(max_length=1500), AfterValidator(_plain)]
Number = Annotated[int, Path(ge=0, le=LARGEST)]
Limit = Annotated[int, Query(ge=1, le=MOST, description="The largest number of items.")]
Offset = Annotated[int, Query(ge=0, le=LARGEST, description="Skip this many items; a cursor is faster.")]
After = Annotated[int, Query(ge=0, le=LARGEST, description="The `next` of the previous page.")]


def page(items: list[dict[str, object]], following: object = None) -> dict[str, object]:
    """Return a page: `items`, and `next`, the cursor of the next page, or `None` on the last one."""
    return {"items": items, "next": following}


def following(items: list[dict[str, object]], limit: int, key: str) -> object:
    """Return the cursor of the next page: the key of the last item if the page is full, else `None`."""
    return items[-1][key] if len(items) == limit else None
