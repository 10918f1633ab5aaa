"""`--watch`: show a command's result anew every two seconds, until Ctrl+C."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from time import sleep
from typing import Any

from assetflow.core.values.words import at
from assetflow.errors import InvalidCall

EVERY = 2.0
# To the upper left corner, and nothing below it.
_CLEAR = "\x1b[H\x1b[J"
_WORDS = """
    watch
        Show it anew every two seconds, until Ctrl+C.
    """

Command = Callable[..., int | None]


def watchable(command: Command) -> Command:
    """Give a command that only shows something the option `--watch`."""

    @wraps(command)
    def run(*given: Any, watch: bool = False, **options: Any) -> int | None:
        if not watch:
            return command(*given, **options)
        if not sys.stdout.isatty() or options.get("json"):
            raise InvalidCall("--watch needs a terminal", fix="Leave it out, or leave out --json and the pipe")
        return _again_and_again(lambda: command(*given, **options))

    # Cyclopts reads options and their words from these.
    signature = inspect.signature(command)
    option = inspect.Parameter("watch", inspect.Parameter.KEYWORD_ONLY, default=False, annotation="bool")
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])  # pyright: ignore[reportAttributeAccessIssue]
    run.__annotations__ = command.__annotations__ | {"watch": "bool"}
    run.__doc__ = (command.__doc__ or "").rstrip() + _WORDS
    return run


def _again_and_again(show: Callable[[], int | None]) -> int | None:
    """Show something every two seconds until Ctrl+C, and return its last exit status."""
    status = None
    try:
        while True:
            sys.stdout.write(f"{_CLEAR}{at(datetime.now(UTC))}, every {EVERY:g} s; Ctrl+C ends it\n\n")
            status = show()
            sys.stdout.flush()
            sleep(EVERY)
    except KeyboardInterrupt:
        return status
