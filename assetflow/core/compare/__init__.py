"""What a deploy would change, before it. Contract 11.4 to 11.8."""

from __future__ import annotations

from assetflow.core.compare.changes import (
    LIMITS,
    Comparison,
    ConsumerChange,
    LostAsset,
    Replayed,
    RunAtOnce,
    RunDiffers,
    options_in_words,
)
from assetflow.core.compare.deploying import DeployedFlow, WantedFlow, compare
from assetflow.core.compare.replaying import Beginning, Change, Ended, Fold, History, replay

__all__ = [
    "LIMITS",
    "Beginning",
    "Change",
    "Comparison",
    "ConsumerChange",
    "DeployedFlow",
    "Ended",
    "Fold",
    "History",
    "LostAsset",
    "Replayed",
    "RunAtOnce",
    "RunDiffers",
    "WantedFlow",
    "compare",
    "options_in_words",
    "replay",
]
