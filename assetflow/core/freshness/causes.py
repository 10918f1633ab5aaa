"""Why an item is out of date, or why a run was asked for (contract 8.5, 8.9)."""

from __future__ import annotations

from typing import Literal, NamedTuple

CauseKind = Literal["missing", "data", "code", "dependency", "freshness", "backfill"]


class Cause(NamedTuple):
    """Why an item is out of date, or why a run was asked for.

    Attributes:
        uri, key: the output that is missing, the item that was updated, the input that is new or gone, or the asset
            whose policy asks; "" for code and backfills.
    """

    kind: CauseKind
    uri: str = ""
    key: str | None = None
