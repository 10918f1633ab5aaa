"""What leaves the house, as it was when somebody last looked at it: a change shows as a difference of a file."""

import json
import os
from pathlib import Path
from typing import Any

FILES = Path(__file__).parent / "files"
WRITE = "WRITE_GOLDEN"


def agrees(name: str, found: Any) -> None:
    """Compare a JSON value with its file."""
    agrees_as_text(f"{name}.json", json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def agrees_as_text(name: str, text: str) -> None:
    """Compare a text with its file, or write the file anew."""
    file = FILES / name
    if os.environ.get(WRITE):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    assert text.splitlines() == before.splitlines(), (
        f"tests/golden/files/{name} says something else. If that is meant, run `make golden`, and look at the diff"
    )
