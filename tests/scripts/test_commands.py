"""`scripts/commands`: docs/commands.md is what the command line says of itself."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "commands"))
PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")


# It imports all that any command imports, Prefect too.
@pytest.mark.long
def test_the_page_of_commands_is_that_of_the_command_line() -> None:
    assert SCRIPT["commands_page"]() == PAGE, (
        "the commands say something else: write `.venv/bin/python scripts/commands > docs/commands.md`"
    )


def test_the_page_has_only_what_help_shows() -> None:
    assert "* `--key STR`: The key of the partition that was updated." in PAGE
    assert "* `--json`: Print one JSON document." in PAGE
    assert "--no-json" not in PAGE
