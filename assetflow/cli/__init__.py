"""The command line: thin entry points, one module for each command."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from types import ModuleType
from typing import NoReturn, cast

# A short command makes 200,000 objects and hardly any garbage. With Python's 700, it spends a tenth of its time on it.
_OBJECTS_BEFORE_COLLECTION = 300_000


def main() -> NoReturn:
    """Run the command that the process was started with, and exit."""
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
    # httpx imports its own command line if it can, with click, rich and pygments: a third of its import.
    sys.modules.setdefault("httpx._main", cast("ModuleType", None))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Print the number of a character that the terminal cannot show, instead of failing.
            stream.reconfigure(errors="backslashreplace")
    status = run(sys.argv[1:])
    # While it ends, Python looks for garbage several times in all that it frees: a quarter of a short command's time.
    gc.freeze()
    sys.exit(status)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status.

    0: done. 1: done, and the answer is no. 2: refused, with a message on standard error. 70: a bug in assetflow, with a
    report in `ASSETFLOW_HOME/errors`. 130: interrupted. 141: the reader of the output closed it early.
    """
    import cyclopts

    from assetflow.cli import failures
    from assetflow.cli.app import app
    from assetflow.errors import AssetflowError

    given = [argument for argument in arguments if argument != "--debug"]
    try:
        _check(given)
        # The list of all commands has no Markdown, which a quarter of its time would go into.
        app.help_format = "plaintext" if given in ([], ["--help"], ["-h"]) else "markdown"
        result: object = app(given, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except cyclopts.CycloptsError as error:
        return failures.refused(failures.bad_call(str(error), error.command_chain or ()))
    except AssetflowError as error:
        return failures.refused(error)
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BrokenPipeError:
        return failures.output_closed()
    except KeyboardInterrupt:
        return failures.INTERRUPTED
    except Exception as error:
        if len(given) < len(arguments):
            raise
        return failures.unexpected(error, given)
    return result if isinstance(result, int) else 0


def _check(arguments: Sequence[str]) -> None:
    """Refuse text that neither a ledger nor Prefect can hold, such as a name typed on a terminal that is not UTF-8.

    Raises:
        InvalidCall: an argument has such text.
    """
    from assetflow.core.json_data import is_plain_text
    from assetflow.errors import InvalidCall

    for argument in arguments:
        if not is_plain_text(argument):
            raise InvalidCall(f"the argument {argument!a} is not valid text", fix="Write it in UTF-8, without NUL")
