"""The state of the fold: what it remembers, what it changes, and where it reads the rest."""

from assetflow.core.rules.state.changes import Changes, Consumed, QueueKey, Source
from assetflow.core.rules.state.state import Limits, State

__all__ = ["Changes", "Consumed", "Limits", "QueueKey", "Source", "State"]
