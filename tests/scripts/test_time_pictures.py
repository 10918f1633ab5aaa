"""`scripts/time_pictures`: the pictures of docs/conditions.md are what the simulator answers today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_pictures_are_as_the_simulator_answers(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / "time_pictures", tmp_path], check=True, timeout=120)

    drawn = {each.name: each.read_text(encoding="utf-8") for each in tmp_path.iterdir()}
    stored = {each.name: each.read_text(encoding="utf-8") for each in (ROOT / "docs" / "images").glob("time-*.svg")}
    assert drawn == stored


def test_the_page_shows_all_pictures_with_their_words() -> None:
    page = (ROOT / "docs" / "conditions.md").read_text(encoding="utf-8")

    for picture in (ROOT / "docs" / "images").glob("time-*.svg"):
        says = picture.read_text(encoding="utf-8").partition("<title>")[2].partition("</title>")[0]
        assert f"![{says}](images/{picture.name})" in page
