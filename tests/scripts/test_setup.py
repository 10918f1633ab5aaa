"""`scripts/setup` installs nothing whose version it does not name, and chooses a Python that is fast."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "scripts" / "setup"
SYSTEM = Path("/usr/bin/python3")
UV = '#!/bin/sh\n[ "$1" = --version ] || echo "${UV_PYTHON:-any}" >> "$SEEN"\n'


def test_uv_is_pinned() -> None:
    text = SETUP.read_text()
    assert re.search(r"^uv_version=\d+\.\d+\.\d+$", text, re.M)
    installs = re.findall(r"-m pip install .*", text)
    assert len(installs) == 2
    assert all('"uv==$uv_version"' in line for line in installs)


def chosen(folder: Path, **given: str) -> str:
    """The Python for which `scripts/setup` asks uv, `any` for the first one that uv finds."""
    seen, uv = folder / "seen", folder / "bin" / "uv"
    for each in ("bin", "scripts"):
        (folder / each).mkdir()
    uv.write_text(UV)
    uv.chmod(0o700)
    copy = shutil.copy(SETUP, folder / "scripts" / "setup")
    inherited = {name: value for name, value in os.environ.items() if name != "UV_PYTHON"}
    env = inherited | {"PATH": f"{uv.parent}:{os.environ['PATH']}", "SEEN": str(seen)} | given
    subprocess.run([copy], env=env, capture_output=True, check=True)
    return seen.read_text().strip()


def test_the_python_that_somebody_names_is_taken(tmp_path: Path) -> None:
    assert chosen(tmp_path, UV_PYTHON="3.12") == "3.12"


@pytest.mark.skipif(sys.platform != "linux", reason="on macOS the system's Python is not for others")
def test_the_system_python_is_taken_if_it_is_one_for_assetflow(tmp_path: Path) -> None:
    ask = "import sqlite3, ssl, sys; print((3, 11) <= sys.version_info < (3, 14))"
    told = subprocess.run([SYSTEM, "-c", ask], capture_output=True, text=True, check=False).stdout.strip()
    assert chosen(tmp_path) == (str(SYSTEM) if told == "True" else "any")
