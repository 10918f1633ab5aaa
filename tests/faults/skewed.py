"""`assetflow evaluator start` on a machine whose clock is wrong by the seconds in a file, which a test may change."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

from assetflow.cli import main
from assetflow.evaluator import ledger_thread
from assetflow.evaluator.process import evaluator

SKEW = Path(sys.argv.pop(1))


class SkewedTime(datetime):
    """The time that this machine tells."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) + timedelta(seconds=float(SKEW.read_text()))


ledger_thread.datetime = SkewedTime  # pyright: ignore[reportAttributeAccessIssue]
evaluator.datetime = SkewedTime  # pyright: ignore[reportAttributeAccessIssue]

if __name__ == "__main__":
    main()
