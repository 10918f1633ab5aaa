"""What is said of a target: whether it is to be run, and what holds it back (contract 8.5, 8.14)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from assetflow.core.freshness.causes import Cause
from assetflow.core.freshness.records import Item, Target

VerdictName = Literal[
    "run",
    "owed",
    "in_progress",
    "paused",
    "backfill",
    "history",
    "missing_input",
    "tried",
    "waived",
    "retry",
    "waits",
    "ignored",
    "not_needed",
    "no_gain",
]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a target: it runs, or something holds it back.

    Attributes:
        because: the causes that count, or the policies that pull it.
        missing: the inputs that are missing.
        waits_for: the targets that it waits for.
        at: when a failed run is repeated.
    """

    target: Target
    name: VerdictName
    because: tuple[Cause, ...] = ()
    missing: tuple[Item, ...] = ()
    waits_for: tuple[Target, ...] = ()
    at: datetime | None = None
