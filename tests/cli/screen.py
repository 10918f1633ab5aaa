"""A terminal of some width, that what is printed goes to."""

from __future__ import annotations

import io
import sys

import pytest


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen_of(columns: int, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return a terminal that what is printed goes to."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", screen := Terminal())
    return screen
