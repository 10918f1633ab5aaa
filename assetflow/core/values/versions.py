"""Code versions and data versions: texts that assetflow only compares (contract 8.2)."""

from __future__ import annotations

from typing import TypeGuard

from assetflow.core.json_data import is_plain_text
from assetflow.errors import InvalidEvent, InvalidSchedule

LONGEST_VERSION = 250
RULE = "8.2"
FIX = f"Give a text of 1 to {LONGEST_VERSION} characters that is not blank"

_SHOWN = 60


def check_code_version(version: object) -> str:
    """Return a code version, unchanged.

    Raises:
        InvalidSchedule: it is not a text of 1 to 250 characters, or it is blank.
    """
    if _is_version(version):
        return version
    raise InvalidSchedule(
        f"the code version must be a text of 1 to 250 characters, not {_shown(version)}", rule=RULE, fix=FIX
    )


def check_data_version(version: object, path: str = "data_version", *, where: str = "") -> str:
    """Return a data version, unchanged.

    Parameters:
        path: what the error calls it, such as "data_version".
        where: the place that the error names: an asset, an option.

    Raises:
        InvalidEvent: it is not a text of 1 to 250 characters, or it is blank.
    """
    if _is_version(version):
        return version
    raise InvalidEvent(f"{path} is {_shown(version)}", where=where, rule=RULE, fix=FIX)


def _is_version(version: object) -> TypeGuard[str]:
    return (
        isinstance(version, str)
        and bool(version.strip())
        and len(version) <= LONGEST_VERSION
        and is_plain_text(version)
    )


def _shown(version: object) -> str:
    shown = repr(version)
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "…"
