"""What the answers of all routes share. Each field of an answer is always there: null or empty if there is nothing."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

Extra = dict[str, Any]


class Page(BaseModel):
    next: str | None = Field(
        description="The token of the next page, to be given as `page` with the same parameters; null on the last one."
    )
