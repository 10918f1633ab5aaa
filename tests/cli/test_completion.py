"""Completion of commands and options in a shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Call

# Completes the last word of a line as bash does when the Tab key is pressed.
PRESS_TAB = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
"$(complete -p assetflow | sed 's/.*-F \\([^ ]*\\).*/\\1/')"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("assetflow con", {"consumers"}),
        ("assetflow consumers l", {"ls"}),
        ("assetflow consumers ls --w", {"--watch", "--wide"}),
        ("assetflow lineage --w", {"--watch"}),
    ],
)
def test_bash_completes_commands_and_options(tmp_path: Path, call: Call, words: str, completed: set[str]) -> None:
    script = tmp_path / "completion"
    installed = call("--install-completion", "--shell", "bash", "--output", str(script))
    assert installed.code == 0, installed.err
    pressed = subprocess.run(
        ["bash", "-c", PRESS_TAB, "bash", script, *words.split()], capture_output=True, text=True, check=True
    )
    assert set(pressed.stdout.split()) == completed
