"""docs/settings.md lists every extra that can be installed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (`[a-z0-9]+`(?:, `[a-z0-9]+`)*) \| ", re.M)


def test_every_extra_stands_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = re.findall(r"`([a-z0-9]+)`", " ".join(ROW.findall((ROOT / "docs" / "settings.md").read_text())))
    assert sorted(listed) == sorted(project["optional-dependencies"])
