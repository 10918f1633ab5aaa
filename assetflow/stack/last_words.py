"""The last lines of a process's output, cleaned for an error message: no colours, no boxes, no tracebacks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MOST = 8

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# The characters that Rich draws boxes and rules with.
_BOXES = re.compile(r"[\u2500-\u257f]+")
_TRACEBACK = "Traceback (most recent call last)"
# The lines between the tracebacks of chained errors, and those that Prefect's commands print after one.
_NOISE = ("The above exception was", "During handling of the above exception", "An exception occurred.")


def last_words(output: str, *, most: int = MOST) -> list[str]:
    """Return the last lines of a process's output, with only the final error of each traceback."""
    return list(_without_tracebacks(map(_plain, output.splitlines())))[-most:]


def _plain(line: str) -> str:
    return _BOXES.sub("", _ESCAPES.sub("", line)).rstrip()


def _without_tracebacks(lines: Iterable[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        if _TRACEBACK in line:
            inside = True
        elif not line.strip() or line.startswith(_NOISE):
            continue
        elif not (inside and line.startswith((" ", "\t"))):
            inside = False
            yield line
