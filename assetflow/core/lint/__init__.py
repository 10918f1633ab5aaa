"""What is wrong with schedules, found without a server. Contract 11.1 to 11.3."""

from __future__ import annotations

from assetflow.core.lint.checking import lint
from assetflow.core.lint.findings import CHECKS, Finding, SeenFlow
from assetflow.core.lint.source import Source

__all__ = ["CHECKS", "Finding", "SeenFlow", "Source", "lint"]
