"""Read the `--from` and `--to` options, which name a range of keys: both ends are included."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from assetflow.core.partitions.ranges import read_periods
from assetflow.errors import InvalidCall

From = Annotated[str | None, Parameter(name="--from")]
To = Annotated[str | None, Parameter(name="--to")]


def read_range(start: str | None, end: str | None) -> tuple[datetime, datetime]:
    """Return the start of the first period and the end of the last one, as wall times.

    Raises:
        InvalidCall: one of them is missing, or the end is before the start.
        InvalidPartition: one of them is not a time.
    """
    if start is None or end is None:
        raise InvalidCall("a range needs --from and --to", fix="Write --from 2026-11-01 --to 2026-11-20, both included")
    return read_periods(start, end)
