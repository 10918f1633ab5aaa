"""`scripts/setup` installs nothing whose version it does not name, and chooses a Python that is fast."""

import re
from pathlib import Path

SETUP = Path(__file__).parents[2] / "scripts" / "setup"


def test_uv_is_pinned() -> None:
    text = SETUP.read_text()
    assert re.search(r"^uv_version=\d+\.\d+\.\d+$", text, re.M)
    installs = re.findall(r"-m pip install .*", text)
    assert len(installs) == 2
    assert all('"uv==$uv_version"' in line for line in installs)
