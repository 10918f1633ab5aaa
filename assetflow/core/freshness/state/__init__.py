"""What chapter 8 remembers: where it reads the rest, and what a unit of work has to write."""

from assetflow.core.freshness.state.book import Book
from assetflow.core.freshness.state.source import FreshnessSource

__all__ = ["Book", "FreshnessSource"]
