"""The reason of an error of Spark in one line: the last line of its cause, and the place in the user's code."""

from __future__ import annotations

import re

_JAVA = re.compile(r"An error occurred while calling .*\n: (?:\w+\.)*(.+)")
_PYTHON = "Traceback (most recent call last):"
# In a traceback of a worker, and in what Spark says of the call of a DataFrame's method.
_PLACE = re.compile(r'^ *File "(?!.*/site-packages/)(.+)", line (\d+)|was called from\n(.+):(\d+)', re.MULTILINE)


def reason_of(error: BaseException) -> str:
    """Return what went wrong, and where in the user's code if Spark knows it.

    Spark puts the reason behind the traceback of a Python worker, or before that of a JVM, of hundreds of lines.
    """
    text = str(error).partition("\n\nJVM stacktrace:")[0].strip()
    _, in_worker, trace = text.rpartition(_PYTHON)
    raised = [line for line in trace.splitlines()[1:] if line[:1].strip()] if in_worker else []
    java = _JAVA.match(text)
    first = java[1] if java else f"{type(error).__name__}: {''.join(text.splitlines()[:1])}"
    reason = raised[0] if raised else first
    places = [":".join(filter(None, each)) for each in _PLACE.findall(text)]
    return f"{reason} ({places[-1]})" if places else reason
