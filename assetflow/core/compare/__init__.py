"""What a deploy would change, before it. Contract 11.4 to 11.7."""

from __future__ import annotations

from assetflow.core.compare.changes import (
    CURSOR,
    Comparison,
    DeployedFlow,
    Replayed,
    RunDiffers,
    ShownDiff,
    Stage,
    compare,
    options_in_words,
    replay_in_words,
    stages_of,
)
from assetflow.core.compare.replaying import Beginning, Change, Fold, History, replay

__all__ = [
    "CURSOR",
    "Beginning",
    "Change",
    "Comparison",
    "DeployedFlow",
    "Fold",
    "History",
    "Replayed",
    "RunDiffers",
    "ShownDiff",
    "Stage",
    "compare",
    "options_in_words",
    "replay",
    "replay_in_words",
    "stages_of",
]
