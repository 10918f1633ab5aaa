"""The scripts that make pages and pictures write what the code says today."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assetflow.cli.app import app

ROOT = Path(__file__).parents[2]


def script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / name))


# It imports all that any command imports, Prefect too.
@pytest.mark.long
def test_the_page_has_every_command_with_what_its_help_shows() -> None:
    page = script("commands")["commands_page"]()
    assert [name for name in app if not name.startswith("-") and f"## assetflow {name}" not in page] == []
    assert "* `--key STR`: The key of the partition that was updated." in page
    assert "* `--json`: Print one JSON document." in page
    assert "--no-json" not in page


def test_the_page_has_every_operation_of_the_document() -> None:
    rest = script("rest")
    document = json.loads(rest["DOCUMENT"].read_text(encoding="utf-8"))
    operations = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    rows = re.findall(r"^\| `([A-Z]+ [^`]+)` \| [^|]+ \| [^|]*\|$", rest["rest_page"](document), re.M)
    assert sorted(rows) == sorted(operations)


def test_the_pictures_are_as_the_simulator_answers(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / "time_pictures", tmp_path], check=True, timeout=120)
    drawn = {each.name: each.read_text(encoding="utf-8") for each in tmp_path.iterdir()}
    stored = {each.name: each.read_text(encoding="utf-8") for each in (ROOT / "docs" / "images").glob("time-*.svg")}
    assert drawn == stored


def test_the_page_shows_all_pictures_with_their_words() -> None:
    page = (ROOT / "docs" / "conditions.md").read_text(encoding="utf-8")
    pictures = list((ROOT / "docs" / "images").glob("time-*.svg"))
    assert pictures
    for picture in pictures:
        says = picture.read_text(encoding="utf-8").partition("<title>")[2].partition("</title>")[0]
        assert f"![{says}](images/{picture.name})" in page
