"""What an extra from outside may be: small and shallow enough to be kept, shown and handed on everywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from assetflow.errors import InvalidEvent, TooLarge

EXTRA_BYTES = 64 * 1024
EXTRA_LEVELS = 50


def check_limits(extra: Mapping[str, object], *, where: str = "extra") -> None:
    """Let an extra pass that is no larger than 64 KiB as JSON and no deeper than 50 levels.

    Raises:
        InvalidEvent: it is deeper.
        TooLarge: it is larger.
    """
    level: list[object] = [extra]
    depth = 0
    while level := [inner for value in level for inner in _members(value)]:
        depth += 1
        if depth > EXTRA_LEVELS:
            raise InvalidEvent(
                f"the extra has more than {EXTRA_LEVELS} levels", where=where, fix="Make it flatter, or give a link"
            )
    size = len(json.dumps(extra, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
    if size > EXTRA_BYTES:
        raise TooLarge(
            f"the extra has {size} bytes, the limit is {EXTRA_BYTES}",
            where=where,
            fix="Store the data elsewhere, and give a link to it",
        )


def _members(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return list(cast("Mapping[str, object]", value).values())
    return list(cast("list[object]", value)) if isinstance(value, list | tuple) else []
