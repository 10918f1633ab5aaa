"""Why an item is out of date, or why a run was asked for (contract 8.5, 8.9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

CauseKind = Literal["missing", "data", "code", "dependency", "freshness", "backfill"]


_MOST = 3


class Cause(NamedTuple):
    """Why an item is out of date, or why a run was asked for.

    Attributes:
        uri, key: the output that is missing, the item that was updated, the input that is new or gone, or the asset
            whose policy asks; "" for code and backfills.
    """

    kind: CauseKind
    uri: str = ""
    key: str | None = None

    def as_json(self) -> dict[str, object]:
        """Return the cause as the API and `--json` show it."""
        return {"kind": self.kind, "uri": self.uri or None, "partition_key": self.key}

    def describe(self) -> str:
        """Return the cause in words: "s3://lake/raw was updated"."""
        item = self.uri if self.key is None else f"{self.uri} ({self.key})"
        words: dict[CauseKind, str] = {
            "missing": f"{item} was never made",
            "data": f"{item} was updated",
            "code": "its code has another version",
            "dependency": f"it reads {item} since its last deploy, or no more",
            "freshness": f"{item} has to be as new as its policy says",
            "backfill": "a backfill asked for it",
        }
        return words[self.kind]


def causes_in_words(causes: Sequence[Cause]) -> str:
    """Return the first causes in words, and how many more there are."""
    words = ", ".join(cause.describe() for cause in causes[:_MOST])
    return words if len(causes) <= _MOST else f"{words}, and {len(causes) - _MOST} more"
