"""`scripts/setup` installs nothing whose version it does not name."""

from __future__ import annotations

import re
from pathlib import Path

SETUP = (Path(__file__).parents[2] / "scripts" / "setup").read_text()


def test_uv_is_pinned() -> None:
    assert re.search(r"^uv_version=\d+\.\d+\.\d+$", SETUP, re.M)
    installs = re.findall(r"-m pip install .*", SETUP)
    assert len(installs) == 2
    assert all('"uv==$uv_version"' in line for line in installs)
