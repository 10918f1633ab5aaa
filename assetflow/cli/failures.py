"""What a command that fails prints, and its exit status. Nobody sees a traceback who did not ask for it."""

from __future__ import annotations

import os
import platform
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text

from assetflow.core.visible import shown
from assetflow.errors import AssetflowError

REFUSED = 2
BUG = 70
INTERRUPTED = 130
NO_READER = 141


def refused(error: AssetflowError) -> int:
    """Say what happened, where and what to do; the exit status."""
    lines = [Text.assemble(("error", "bold red"), f" [{error.code}] ", shown(error.message))]
    rule = f"rule {error.rule} of the contract" if error.rule else ""
    for label, value in (("where", error.where), ("do", error.fix), ("see", rule)):
        if value:
            lines.append(Text.assemble(f"  {label + ':':<7}", shown(value)))
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(line)
    return REFUSED


def unexpected(error: BaseException, arguments: list[str]) -> int:
    """Say in one line that this is a mistake of assetflow's, and where the full report is; the exit status."""
    place = _report(error, arguments)
    kept = f"The full report is in {place}" if place else "The full report could not be written; see --debug"
    sys.stderr.write(f"assetflow failed unexpectedly: {shown(_in_short(error))}. {kept}\n")
    return BUG


def output_closed() -> int:
    """Nobody reads on, as with `| head`: be quiet, also when Python empties its buffers at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return NO_READER


def _in_short(error: BaseException) -> str:
    message = str(error).strip().splitlines()
    return type(error).__name__ + (f": {message[0][:200].rstrip('.')}" if message else "")


def _report(error: BaseException, arguments: list[str]) -> Path | None:
    # Only here: a command that succeeds need not wait for the settings.
    from assetflow.settings import get_settings

    now = datetime.now(UTC)
    try:
        folder = get_settings().home / "errors"
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / f"{now:%Y%m%d-%H%M%S}-{os.getpid()}.txt"
        place.write_text(_text(error, arguments, now), encoding="utf-8")
    except (OSError, AssetflowError):
        return None
    return place


def _text(error: BaseException, arguments: list[str], now: datetime) -> str:
    about = f"{now.isoformat()}\nassetflow {' '.join(arguments)}\nPython {platform.python_version()}, {sys.platform}\n"
    return f"{about}\n{''.join(traceback.format_exception(error))}"
