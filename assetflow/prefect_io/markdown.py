"""Escape users' text in Markdown, which Prefect's UI renders with raw HTML."""

from __future__ import annotations

import re


def code_span(text: str) -> str:
    """Return the text as inline code, shown as it is, whatever Markdown or HTML it contains.

    The fence is longer than any run of backticks in the text, and the text is on one line, so that nothing in it can
    end the span.
    """
    line = _one_line(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if "`" in line or not line else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def plain_text(text: str) -> str:
    """Escape each character that has a meaning in Markdown, also in a table. Addresses do not become links."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", _one_line(text))


def _one_line(text: str) -> str:
    return re.sub(r"[\x00-\x20\x7f\u0085\u2028\u2029]+", " ", text).strip()
