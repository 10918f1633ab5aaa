"""The text that a command prints in place of an empty list."""

from __future__ import annotations

from assetflow.evaluator.liveness import downtime
from assetflow.ledger.read.reader import Reader

NOTHING_KEPT = "No flow keeps assets up to date: none has the schedule Eager, OnMissing or Lazy."


def empty_message(reader: Reader, message: str) -> str:
    """Return the message for an empty list, with a warning added if no evaluator is alive."""
    down = downtime(reader.evaluators())
    return message if down is None else f"{message} {down}."
