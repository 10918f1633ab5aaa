"""The log of a long-running process: lines of text or of JSON, as `ASSETFLOW_LOG_FORMAT` says."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from assetflow.core.values.addresses import without_passwords
from assetflow.core.values.words import shown
from assetflow.settings import get_settings

_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def log_to_stderr() -> None:
    """Send assetflow's log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonLines()
        if get_settings().log_format == "json"
        else Lines("%(asctime)s  %(levelname)-7s  %(message)s", "%H:%M:%S")
    )
    ours = logging.getLogger("assetflow")
    ours.handlers = [handler]
    ours.setLevel(logging.INFO)
    ours.propagate = False


class Lines(logging.Formatter):
    """Formats a record as a line of text, without passwords in addresses: libraries put those into their errors.

    Names come from users: what would control a terminal or reverse text is written as an escape.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the name of logging)
        return shown(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return without_passwords(super().format(record))


class JsonLines(logging.Formatter):
    """Formats a record as a JSON object: time, level, logger, message, and the ids that the record is about.

    The ids are in `consumer`, `decision`, `flow_run` and `recordings`: search for one to find all its lines.
    """

    def format(self, record: logging.LogRecord) -> str:
        about = {name: value for name, value in vars(record).items() if name not in _ORDINARY}
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": shown(without_passwords(record.getMessage()), keep="\n"),
            **about,
        }
        if record.exc_info:
            line["traceback"] = without_passwords(self.formatException(record.exc_info))
        return json.dumps(line, default=str, ensure_ascii=False)
