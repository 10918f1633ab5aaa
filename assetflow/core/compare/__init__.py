"""What a deploy would change, before it. Contract 11.4 to 11.8."""

from __future__ import annotations

from assetflow.core.compare.changes import Comparison, ConsumerChange, LostAsset, RunAtOnce, options_in_words
from assetflow.core.compare.deploying import DeployedFlow, WantedFlow, compare

__all__ = [
    "Comparison",
    "ConsumerChange",
    "DeployedFlow",
    "LostAsset",
    "RunAtOnce",
    "WantedFlow",
    "compare",
    "options_in_words",
]
