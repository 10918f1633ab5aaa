"""`--watch`: show a command's result anew every two seconds, until Ctrl+C; `--plain`: list it with tabs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import wraps
from time import sleep
from typing import Annotated, Any

from cyclopts import Parameter

from assetflow.cli.output import TABS, print_json, show, text
from assetflow.core.values.words import at, count
from assetflow.errors import InvalidCall
from assetflow.operations.what_if import Preview

EVERY = 2.0
# To the upper left corner, and nothing below it.
_CLEAR = "\x1b[H\x1b[J"
Watch = Annotated[bool, Parameter(help="Show it anew every two seconds, until Ctrl+C.")]

Command = Callable[..., int | None]


def watchable(command: Command) -> Command:
    """Give a command that only shows something the option `--watch`."""

    @wraps(command)
    def run(*given: Any, watch: bool = False, **options: Any) -> int | None:
        if not watch:
            return command(*given, **options)
        if not sys.stdout.isatty() or options.get("json") or options.get("plain"):
            raise InvalidCall("--watch needs a terminal", fix="Leave it out, or leave out --json and the pipe")
        return _again_and_again(lambda: command(*given, **options))

    return _with_option(run, command, "watch", Watch)


Plain = Annotated[bool, Parameter(help="Print lines whose columns are separated by tabs, uncut.")]


def lists(command: Command) -> Command:
    """Give a command that lists something the options `--watch` and `--plain`."""

    @wraps(command)
    def run(*given: Any, plain: bool = False, **options: Any) -> int | None:
        before = TABS.set(plain)
        try:
            return command(*given, **options)
        finally:
            TABS.reset(before)

    return watchable(_with_option(run, command, "plain", Plain))


def _with_option(run: Command, command: Command, name: str, kind: object) -> Command:
    """Return the function with the signature of the command and one more option; Cyclopts reads them from these."""
    signature = inspect.signature(command)
    option = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])  # pyright: ignore[reportFunctionMemberAccess]
    run.__annotations__ = command.__annotations__ | {name: kind}
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


def show_preview(preview: Preview, json: bool, *, meant: str = "") -> None:
    """Print what an action would lead to, as lines or as one JSON document.

    Parameters:
        meant: a sentence on what the user probably meant.
    """
    if json:
        print_json(preview)
    else:
        show(*(text(line) for line in (*_lines(preview), *([f"  {meant}"] if meant else []))))


def _lines(preview: Preview) -> Iterator[str]:
    yield "Nothing is written. This would happen:"
    if preview.known:
        yield "  nothing: the update is recorded already"
        return
    for run in preview.starts:
        yield f"  {run.consumer} runs{_for(run.target_key)} now, with {count(run.updates, 'update')}"
    for queue in preview.waits:
        yield f"  {queue.consumer}{_for(queue.target_key)} {queue.words}"
    yield from (f"  {words}" for words in preview.refused)
    if preview.is_empty:
        yield "  no consumer queues it: no deployed flow is scheduled on this asset"
    if preview.further:
        yield f"  {preview.further_words}"


def _for(target_key: str | None) -> str:
    return "" if target_key is None else f" for the partition {target_key}"
