"""Places with a name at which a test can end the process, as a power cut would.

Only the environment variable ASSETFLOW_CRASH_AT makes them work; without it they do nothing.
"""

from __future__ import annotations

import os
import signal
from typing import Literal

PublishPoint = Literal["between-staging-and-swap"]
TaskPoint = Literal["between-publish-and-record", "between-record-and-event"]
EvaluatorPoint = Literal[
    "between-event-and-ledger",
    "between-ledger-and-launch",
    "between-launch-and-mark",
    "between-mark-and-announcement",
    "between-note-and-mark",
]
InstantPoint = Literal["between-reading-and-instant"]
FreshnessPoint = Literal[
    "between-state-and-freshness-event", "between-freshness-event-and-log", "between-freshness-event-and-mark"
]
BackfillPoint = Literal["between-backfill-and-begin", "between-begin-and-answer"]
WatcherPoint = Literal[
    "between-message-and-ledger", "between-ledger-and-acknowledgement", "between-acknowledgement-and-note"
]
CrashPoint = PublishPoint | TaskPoint | EvaluatorPoint | InstantPoint | FreshnessPoint | BackfillPoint | WatcherPoint

VARIABLE = "ASSETFLOW_CRASH_AT"


def reach(point: CrashPoint) -> None:
    """End this process at once (SIGKILL) if it was told to end here."""
    if os.environ.get(VARIABLE) == point:
        os.kill(os.getpid(), signal.SIGKILL)
