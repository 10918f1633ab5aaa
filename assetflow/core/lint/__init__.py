"""What is wrong with schedules, found without a server. Contract 11.1 to 11.3."""

from __future__ import annotations

from assetflow.core.lint.checking import lint
from assetflow.core.lint.source import CHECKS, Finding, SeenFlow, Source

__all__ = ["CHECKS", "Finding", "SeenFlow", "Source", "lint"]
