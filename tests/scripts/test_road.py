"""`scripts/road`: it counts what docs/design.md walks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Lower it whenever the road gets shorter.
MOST_FILES = 33


def test_each_file_of_the_road_is_counted() -> None:
    script = ROOT / "scripts" / "road"
    told = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    *rows, last = told.splitlines()
    files = [row.split()[1] for row in rows]
    assert files[0] == "authoring/tasks.py"
    assert files[-1] == "authoring/triggering.py"
    assert all(
        len((ROOT / "assetflow" / row.split()[1]).read_text().splitlines()) == int(row.split()[0]) for row in rows
    )
    assert re.fullmatch(rf"{len(files)} files, [\d,]+ lines", last)
    assert len(files) <= MOST_FILES, "an update passes more files than before: put what is one idea into one file"
