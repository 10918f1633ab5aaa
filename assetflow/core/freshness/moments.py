"""Data times: up to when an asset holds all data (contract 8.12)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, Literal


class Current(Enum):
    """The data time of what holds everything there is."""

    CURRENT = "current"


CURRENT: Final = Current.CURRENT

DataTime = datetime | Literal[Current.CURRENT]
"""Up to when all data is there; `CURRENT` if nothing newer is known."""


def least(moments: Iterable[DataTime]) -> DataTime:
    """Return the earliest data time; `CURRENT` if none is earlier."""
    return min((moment for moment in moments if isinstance(moment, datetime)), default=CURRENT)


def is_before(data_time: DataTime, moment: datetime) -> bool:
    """Return True if data is missing that came before a moment."""
    return isinstance(data_time, datetime) and data_time < moment


def lag_at(data_time: DataTime, moment: datetime) -> timedelta:
    """Return how old data is at a moment; below zero if it is newer."""
    return moment - data_time if isinstance(data_time, datetime) else timedelta()
