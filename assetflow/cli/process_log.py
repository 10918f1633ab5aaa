"""What a process that goes on and on logs: lines for a person, or JSON for a machine (ASSETFLOW_LOG_FORMAT)."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from assetflow.settings import get_settings

_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def log_to_stderr() -> None:
    """Send assetflow's log to standard error, a line for each thing that happens."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonLines()
        if get_settings().log_format == "json"
        else logging.Formatter("%(asctime)s  %(levelname)-7s  %(message)s", "%H:%M:%S")
    )
    ours = logging.getLogger("assetflow")
    ours.handlers = [handler]
    ours.setLevel(logging.INFO)
    ours.propagate = False


class JsonLines(logging.Formatter):
    """Each record as a JSON object: time, level, logger, message, and what the record is about.

    That is `consumer`, `decision`, `flow_run`, `recordings`: ids, by which lines of one thing are found.
    """

    def format(self, record: logging.LogRecord) -> str:
        about = {name: value for name, value in vars(record).items() if name not in _ORDINARY}
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **about,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)
