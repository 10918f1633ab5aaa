"""What is wrong with schedules, found without a server. Contract 11.1 to 11.3."""

from __future__ import annotations

from assetflow.core.lint.checking import Project, lint
from assetflow.core.lint.findings import CHECKS, Finding, Level, SeenFlow
from assetflow.core.lint.source import Source

__all__ = ["CHECKS", "Finding", "Level", "Project", "SeenFlow", "Source", "lint"]
