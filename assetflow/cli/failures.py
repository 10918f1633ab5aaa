"""Report the failure of a command, and choose its exit status. Only `--debug` shows a traceback."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text

from assetflow.core.values.addresses import without_passwords
from assetflow.core.values.words import shown
from assetflow.errors import AssetflowError, InvalidCall, LedgerMissing, PrefectUnset, StackFailed

REFUSED = 2
BUG = 70
INTERRUPTED = 130
NO_READER = 141


def refused(error: AssetflowError) -> int:
    """Print what happened, where and what to do, and return the exit status."""
    lines = [Text.assemble(("error", "bold red"), f" [{error.code}] ", _printable(error.message))]
    fix = error.fix
    if isinstance(error, (LedgerMissing, PrefectUnset)) and (place := _stack_here()):
        fix = f"To use the stack of `assetflow dev`: . {shlex.quote(str(place))}"
    if isinstance(error, StackFailed):
        lines += [Text(f"    {_printable(line)}", "dim") for line in error.output]
    rule = f"rule {error.rule} of the contract" if error.rule else ""
    for label, value in (("where", error.where), ("do", fix), ("see", rule)):
        if value:
            lines.append(Text.assemble(f"  {label + ':':<7}", _printable(value)))
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(line)
    return REFUSED


def bad_call(message: str, command: Sequence[str]) -> InvalidCall:
    """Return the error for arguments that a command does not take, in our own style."""
    text = f"{message[:1].lower()}{message[1:].rstrip('.')}" if message[:1].isupper() else message
    return InvalidCall(text, fix=f"`{' '.join(('assetflow', *command))} --help` describes it")


def unexpected(error: BaseException, arguments: list[str]) -> int:
    """Print one line that says this is a bug in assetflow and where the full report is. Return the exit status."""
    place = _report(error, arguments)
    kept = f"The full report is in {place}" if place else "The full report could not be written; see --debug"
    sys.stderr.write(f"assetflow failed unexpectedly: {_printable(_summary(error))}. {kept}\n")
    return BUG


def output_closed() -> int:
    """Return the exit status for an output that its reader closed, as `| head` does.

    Python writes its buffers when it exits: send them to `/dev/null`, so that this does not fail too.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return NO_READER


def _printable(text: str) -> str:
    return shown(without_passwords(text))


def _stack_here() -> Path | None:
    """Return the `env` file of the stack that `assetflow dev` made here, or `None` if this shell already uses one."""
    here = Path.cwd()
    places = (folder / ".assetflow" / "dev" / "env" for folder in (here, *here.parents))
    return None if "ASSETFLOW_HOME" in os.environ else next((place for place in places if place.exists()), None)


def _summary(error: BaseException) -> str:
    message = str(error).strip().splitlines()
    return type(error).__name__ + (f": {message[0][:200].rstrip('.')}" if message else "")


def _report(error: BaseException, arguments: list[str]) -> Path | None:
    # Import the settings only here, so that a command that succeeds does not wait for them.
    from assetflow.settings import get_settings, make_private, make_private_folder

    now = datetime.now(UTC)
    try:
        home = get_settings().home
        folder = home / "errors"
        for each in (home, folder):
            make_private_folder(each)
        place = folder / f"{now:%Y%m%d-%H%M%S}-{os.getpid()}.txt"
        make_private(place)
        place.write_text(_report_text(error, arguments, now), encoding="utf-8", errors="backslashreplace")
    except (OSError, AssetflowError):
        return None
    return place


def _report_text(error: BaseException, arguments: list[str], now: datetime) -> str:
    about = f"{now.isoformat()}\nassetflow {' '.join(arguments)}\nPython {platform.python_version()}, {sys.platform}\n"
    return without_passwords(f"{about}\n{''.join(traceback.format_exception(error))}")
