"""The end of a log as a person reads it."""

from __future__ import annotations

from assetflow.stack.environment import last_words

RICH = """\x1b[34m╭────────────────╮\x1b[0m
│ Deploying shop │
╰────────────────╯
A work pool is required.
"""

TRACEBACKS = """Starting
Traceback (most recent call last):
  File "a.py", line 1, in <module>
    1 / 0
ZeroDivisionError: division by zero

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 1, in <module>
prefect.exceptions.ScriptError: Script at 'b.py' encountered an exception
An exception occurred.
"""


def test_boxes_and_colours_are_left_out() -> None:
    assert [line.strip() for line in last_words(RICH)] == ["Deploying shop", "A work pool is required."]


def test_of_a_traceback_the_error_is_told() -> None:
    assert last_words(TRACEBACKS) == [
        "Starting",
        "ZeroDivisionError: division by zero",
        "prefect.exceptions.ScriptError: Script at 'b.py' encountered an exception",
    ]


def test_a_long_log_is_cut_at_its_beginning() -> None:
    assert last_words("\n".join(map(str, range(100))), most=3) == ["97", "98", "99"]
    assert last_words("") == []
