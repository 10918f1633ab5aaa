"""Pages, and the values that requests hold: numbers that a ledger can hold, times in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Path, Query
from pydantic import AfterValidator, Field

LARGEST = 2**63 - 1
MOST = 1000


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError as error:
        raise ValueError("it is outside of the years 1 to 9999") from error


def _without_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("it holds the character NUL")
    return text


Moment = Annotated[datetime, AfterValidator(_in_utc)]
Text = Annotated[str, Field(max_length=1500), AfterValidator(_without_nul)]
Number = Annotated[int, Path(ge=0, le=LARGEST)]
Limit = Annotated[int, Query(ge=1, le=MOST, description="At most so many.")]
Offset = Annotated[int, Query(ge=0, le=LARGEST, description="Leave so many out; to page on, a cursor is faster.")]
After = Annotated[int, Query(ge=0, le=LARGEST, description="The `next` of the page before.")]


def page(items: list[dict[str, object]], following: object = None) -> dict[str, object]:
    """A page: `items`, and `next`, which asks for the page behind; none behind the last one."""
    return {"items": items, "next": following}


def following(items: list[dict[str, object]], limit: int, key: str) -> object:
    """What asks for the next page: the key of the last item, if the page is full."""
    return items[-1][key] if len(items) == limit else None
