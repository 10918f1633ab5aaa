"""`scripts/commands`: the site's page of commands has what the command line says of itself."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from assetflow.cli.app import app

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "commands"))


# It imports all that any command imports, Prefect too.
@pytest.mark.long
def test_the_page_has_every_command_with_what_its_help_shows() -> None:
    page = SCRIPT["commands_page"]()
    assert [name for name in app if not name.startswith("-") and f"## assetflow {name}" not in page] == []
    assert "* `--key STR`: The key of the partition that was updated." in page
    assert "* `--json`: Print one JSON document." in page
    assert "--no-json" not in page
