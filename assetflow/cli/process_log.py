"""What a process that goes on and on logs, as a person reads it."""

from __future__ import annotations

import logging
import sys


def log_for_people() -> None:
    """Send assetflow's log to standard error, a line for each thing that happens."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s  %(levelname)-7s  %(message)s", "%H:%M:%S"))
    ours = logging.getLogger("assetflow")
    ours.handlers = [handler]
    ours.setLevel(logging.INFO)
    ours.propagate = False
