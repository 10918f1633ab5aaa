"""Files that the pages name are there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pieces import PAGES, ROOT

PLACES = (ROOT, ROOT / "assetflow", ROOT / "tests")
FILE = re.compile(r"(?<![\w/.-])((?:\w+/)+\w+\.py)\b")


def files(page: Path) -> list[str]:
    """The files of this repository that the text of a page names; what stands in blocks is the reader's."""
    return FILE.findall(re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S))


def test_the_files_that_pages_name_are_there() -> None:
    named = [(page.name, file) for page in PAGES for file in files(page)]
    assert len(named) > 50
    assert [(page, file) for page, file in named if not any((place / file).exists() for place in PLACES)] == []
